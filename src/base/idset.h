/* SPDX-License-Identifier: MIT */
/* A set of numbers other than 0 that keeps them in the order in which they came, in mapped memory.
 * No lock of its own. */
#ifndef CCA_BASE_IDSET_H
#define CCA_BASE_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct cca_idset {
    uint64_t *items; /* `count` of them, room for half of the slots; NULL before the first */
    uint32_t *slots; /* 1 + position in items, 0 = empty; behind items in the same mapping */
    size_t capacity; /* slots: a power of two */
    size_t count;
};

/* 1 when the number is new, 0 when it was there, -ENOMEM (the set is as it was). */
int cca_idset_add(struct cca_idset *set, uint64_t id) CCA_MUST_CHECK;
bool cca_idset_has(const struct cca_idset *set, uint64_t id);

/* Empty again; the memory is kept. */
void cca_idset_clear(struct cca_idset *set);
void cca_idset_fini(struct cca_idset *set);

#endif
