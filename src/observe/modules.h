/* SPDX-License-Identifier: MIT */
/* The objects that are loaded now: path, load address, span, build id. Taken on the
 * dump thread only (dl_iterate_phdr holds the loader's lock). */
#ifndef CCA_OBSERVE_MODULES_H
#define CCA_OBSERVE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/sysmem.h"

struct cca_module {
    const char *path;    /* absolute where known; "[vdso]"; "" when it has no name */
    uint64_t base;       /* load bias: address minus this = the ELF file's virtual address */
    uint64_t start, end; /* span of its loaded segments */
    unsigned char build_id[32];
    unsigned build_id_len;
    bool is_unloaded; /* is gone, or something else lies there now */
};

struct cca_modules {
    struct cca_module *list; /* ascending by start */
    size_t count;
};

struct dl_phdr_info;

/* Span, load address and build id of an object; false when it has no span. The path is left out. */
bool cca_module_measure(struct cca_module *module, const struct dl_phdr_info *info);

/* Its path, copied into the arena; NULL when that is full. Makes system calls, no loader calls. */
const char *cca_module_path(const struct cca_module *module, const struct dl_phdr_info *info,
                            struct cca_arena *arena);

/* Whether two are the same file, loaded at the same place. The paths are not compared. */
bool cca_module_is_same(const struct cca_module *a, const struct cca_module *b);

/* Fills the list from `arena`; -ENOMEM when it is too small. */
int cca_modules_list(struct cca_modules *modules, struct cca_arena *arena) CCA_MUST_CHECK;

/* The module that holds the address, or NULL. */
const struct cca_module *cca_modules_find(const struct cca_modules *modules, uint64_t addr);

#endif
