/* SPDX-License-Identifier: MIT */
/* Memory that the program got from CUDA by calls we do not serve: how much is live, by device, by
 * call, and by the object that asked. Thread-safe; no lock may be held. Mapped memory only, no
 * malloc; what finds no room is left out and counted. */
#ifndef CCA_PROCESS_UNMANAGED_H
#define CCA_PROCESS_UNMANAGED_H

#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/ptrmap.h"
#include "base/sysmem.h"

enum { CCA_UNMANAGED_ROWS_MAX = 128, CCA_UNMANAGED_NAME_BYTES = 64, CCA_UNMANAGED_HOST = -1 };

/* What an address or handle is: equal numbers of different kinds are different things. */
enum cca_unmanaged_kind {
    CCA_UNMANAGED_DEVICE, /* an address that cuMemFree takes */
    CCA_UNMANAGED_PINNED, /* host memory */
    CCA_UNMANAGED_ARRAY,
    CCA_UNMANAGED_PHYSICAL /* a handle of cuMemCreate */
};

struct cca_unmanaged_row {
    int device; /* CCA_UNMANAGED_HOST: host memory */
    const char *api;
    char library[CCA_UNMANAGED_NAME_BYTES];
    uint64_t bytes, count; /* live */
};

struct cca_unmanaged {
    struct cca_lock lock;
    struct cca_ptrmap live; /* address and kind -> record */
    struct cca_pool records;
    struct cca_unmanaged_row rows[CCA_UNMANAGED_ROWS_MAX];
    size_t row_count;
    uint64_t left_out;
};

/* Empty, and every lock free. Also for a forked child: whatever a thread of the parent was about,
 * mapped memory of the accounts is left as it is. */
void cca_unmanaged_init(struct cca_unmanaged *unmanaged);

/* `api` is kept, `library` is copied. An address that is there already was freed unseen. */
void cca_unmanaged_add(struct cca_unmanaged *unmanaged, enum cca_unmanaged_kind kind,
                       uint64_t address, int device, const char *api, const char *library,
                       uint64_t bytes);

/* Nothing happens for addresses that are not known. */
void cca_unmanaged_remove(struct cca_unmanaged *unmanaged, enum cca_unmanaged_kind kind,
                          uint64_t address);

/* The rows with live memory; returns how many, at most `max`. */
size_t cca_unmanaged_read(struct cca_unmanaged *unmanaged, struct cca_unmanaged_row *rows_out,
                          size_t max);

#endif
