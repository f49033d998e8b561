/* SPDX-License-Identifier: MIT */
/* Names of exported functions out of a loaded module's own memory, for modules whose file is gone.
 */
#ifndef CCA_SNAPSHOT_LOADED_SYMBOLS_H
#define CCA_SNAPSHOT_LOADED_SYMBOLS_H

#include <stddef.h>

#include "base/sysmem.h"
#include "observe/modules.h"
#include "snapshot/elf_symbols.h"

/* Names the queries, which ascend by vaddr, from the dynamic symbols. The module is loaded and
 * stays so meanwhile. */
void cca_loaded_symbols_find(const struct cca_module *module, struct cca_symbol_query *queries,
                             size_t count, struct cca_arena *arena);

#endif
