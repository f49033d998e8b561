/* SPDX-License-Identifier: MIT */
/* A hash map from non-zero 64-bit keys to 32-bit numbers, in an arena. Only grows; the tables it
 * outgrew stay in the arena until that is given back. Used by one thread. */
#ifndef CCA_SNAPSHOT_IDMAP_H
#define CCA_SNAPSHOT_IDMAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/sysmem.h"

struct cca_idmap_slot {
    uint64_t key; /* 0 = empty */
    uint32_t value;
};

struct cca_idmap {
    struct cca_arena *arena;
    struct cca_idmap_slot *slots;
    size_t slot_count; /* a power of two, or 0 before the first key */
    size_t used;
};

void cca_idmap_init(struct cca_idmap *map, struct cca_arena *arena);

/* The number of `key`, 0 when it is new; valid until the next call. NULL when the arena is full and
 * the key is new. */
CCA_MUST_CHECK uint32_t *cca_idmap_at(struct cca_idmap *map, uint64_t key);

#endif
