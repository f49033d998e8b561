/* SPDX-License-Identifier: MIT */
/* The dynamic symbols of one loaded object, read from its memory. The object must stay loaded
 * meanwhile; no lock, no malloc. */
#ifndef CCA_PRELOAD_SYMBOLS_H
#define CCA_PRELOAD_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cca_symbols {
    uintptr_t base;
    const ElfW(Sym) * entries;
    const char *texts;
    size_t texts_bytes;
    const ElfW(Half) * versions;  /* NULL = none */
    const ElfW(Verneed) * needed; /* NULL = no versions of others */
    bool has_versions;            /* of its own, for what it defines */
    const uint32_t *gnu_hash;     /* one of the two, or none */
    const uint32_t *sysv_hash;
};

/* False: it has none. */
bool cca_symbols_read(struct cca_symbols *symbols_out, const struct dl_phdr_info *info);

/* As the GNU hash table has it. */
uint32_t cca_symbols_hash(const char *name);

/* How many current definitions of a name it has, anything but a plain function counted twice, since
 * it is no answer; the address of the last one. `hash` is the name's. */
int cca_symbols_define(const struct cca_symbols *symbols, const char *name, uint32_t hash,
                       void **function_out);

/* Whether it refers to a name without defining it, and at which place of the table. */
bool cca_symbols_import(const struct cca_symbols *symbols, const char *name, uint32_t *index_out);

/* The version that the reference at this place asks for, or NULL. */
const char *cca_symbols_needed_version(const struct cca_symbols *symbols, uint32_t index);

#endif
