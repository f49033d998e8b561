/* SPDX-License-Identifier: MIT */
/* Texts of the program (metadata, annotations), each distinct one stored once and named by a 32-bit
 * id. Insert-only: ids and pointers stay valid for the life of the table. Thread-safe; no malloc.
 */
#ifndef CCA_OBSERVE_TEXTS_H
#define CCA_OBSERVE_TEXTS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"

enum { CCA_TEXT_BYTES_MAX = 4096 }; /* with the NUL; longer ones are cut */

struct cca_texts {
    struct cca_lock lock;    /* leaf rank: writers */
    char *records;           /* an id is 1 + the record's offset in units of 8 bytes */
    size_t bytes_max;        /* reserved for them */
    _Atomic size_t used;     /* bytes of records that are complete */
    uint32_t *slots;         /* open addressing, by hash; 0 = empty */
    size_t slot_count, kept; /* a power of two; texts stored */
    _Atomic uint64_t refused;
};

/* Reserves address space only. `slot_count`: a power of two, above the number of texts. -ENOMEM. */
int cca_texts_init(struct cca_texts *texts, size_t slot_count, size_t bytes_max) CCA_MUST_CHECK;

/* The id of a text; 0 for NULL, for an empty one, and when the table is full. */
uint32_t cca_texts_intern(struct cca_texts *texts, const char *text);

/* The text, "" for 0 and for what is no id. Lock-free. */
const char *cca_texts_get(const struct cca_texts *texts, uint32_t id);

void cca_texts_fini(struct cca_texts *texts);

#endif
