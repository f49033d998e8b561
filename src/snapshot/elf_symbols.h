/* SPDX-License-Identifier: MIT */
/* Function names out of an ELF file's own symbol tables. The file is read, never mapped: one that
 * is cut short meanwhile costs a name, not the process. One pass over the symbols for all addresses
 * of a module, so nothing is sorted or kept. No malloc; used by one thread. */
#ifndef CCA_SNAPSHOT_ELF_SYMBOLS_H
#define CCA_SNAPSHOT_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sysmem.h"
#include "observe/modules.h"

struct cca_symbol_query {
    uint64_t vaddr; /* the file's virtual address, inside the function that is asked for */
    uint32_t frame; /* the caller's */
    const struct cca_module *module; /* the caller's */
    const char *name;                /* out: in the arena; NULL = not known */
    /* The best symbol so far. */
    uint64_t start;
    uint32_t name_offset, rank; /* rank 0 = none */
};

/* Names the queries, which ascend by vaddr, from the module's .symtab and .dynsym. Leaves them as
 * they are when its file is gone, is another one (by build id), or has no symbols. */
void cca_elf_symbols_find(const struct cca_module *module, struct cca_symbol_query *queries,
                          size_t count, struct cca_arena *arena);

/* Whether the module's file is there, and still the one that was loaded. */
bool cca_elf_symbols_have_file(const struct cca_module *module);

#endif
