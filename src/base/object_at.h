/* SPDX-License-Identifier: MIT */
/* The loaded object around an address, without a lock and without entering the loader, where the C
 * library can tell (_dl_find_object: glibc from 2.35 on). Any thread, signal handlers too. */
#ifndef CCA_BASE_OBJECT_AT_H
#define CCA_BASE_OBJECT_AT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct link_map;

struct cca_object_place {
    struct link_map *map; /* the loader's own entry, which is also what dlopen returned */
    uintptr_t start, end;
};

/* `function`: the address of _dl_find_object, or NULL. Once, before threads ask. */
void cca_object_at_use(void *function);

/* Whether the C library can tell. */
bool cca_object_at_works(void);

/* False: it cannot tell, or no object is there. */
bool cca_object_at(const void *addr, struct cca_object_place *place_out) CCA_MUST_CHECK;

#endif
