/* SPDX-License-Identifier: MIT */
/* Which row of hooks.def a name or an address of the driver belongs to. Filled on first use, by
 * whoever comes: all threads write the same, so that none waits for another one. Any thread. */
#ifndef CCA_PRELOAD_DRIVER_INDEX_H
#define CCA_PRELOAD_DRIVER_INDEX_H

#include <stdbool.h>

#include "preload/rows.h"

/* The row of an exported name, of either door, or -1. */
int cca_index_of_name(const char *name);

/* The newest row of the entry point that this base name stands for in the driver's resolver, or
 * -1: cuMemFree for cuMemFree_v2. Suffixes of forms and variants are left out of account. */
int cca_index_of_base(const char *name);

/* The n in name_vn, else 1; variants are left out of account. */
int cca_index_form(const char *name);

/* The row of that entry point, any form and variant of it, whose genuine function in the loaded
 * driver is at `found`, by whichever route it was found; or -1. Looks up all rows when that was not
 * done yet: enters the loader then, and leaves no error for dlerror. */
int cca_index_of_function(const char *name, const void *found);

#endif
