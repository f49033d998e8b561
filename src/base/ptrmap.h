/* SPDX-License-Identifier: MIT */
/* Address -> record, for exact addresses. Sharded; each shard is an open-addressing table under its
 * own lock, so threads that free different blocks rarely meet. Thread-safe; ranks: CCA_RANK_PTRMAP.
 * Tables live in mapped memory and grow by doubling; no malloc. */
#ifndef CCA_BASE_PTRMAP_H
#define CCA_BASE_PTRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"

enum { CCA_PTRMAP_SHARDS = 64 };

struct cca_ptrmap_slot {
    uint64_t addr; /* 0 = empty */
    void *value;
};

struct cca_ptrmap_shard {
    struct cca_lock lock;
    struct cca_ptrmap_slot *slots;
    size_t capacity, used;
} __attribute__((aligned(64)));

struct cca_ptrmap {
    struct cca_ptrmap_shard shards[CCA_PTRMAP_SHARDS];
};

void cca_ptrmap_init(struct cca_ptrmap *map);

/* 0, -EEXIST when the address is there already, -ENOMEM. `addr` and `value` are never 0. */
int cca_ptrmap_insert(struct cca_ptrmap *map, uint64_t addr, void *value) CCA_MUST_CHECK;

/* The record, or NULL. The record may be removed by another thread at any time. */
void *cca_ptrmap_find(struct cca_ptrmap *map, uint64_t addr);

/* Takes the address out and returns its record; exactly one of several callers gets it. */
void *cca_ptrmap_remove(struct cca_ptrmap *map, uint64_t addr);

size_t cca_ptrmap_count(struct cca_ptrmap *map);

/* Around fork: every shard lock is taken in order, and released on both sides. */
void cca_ptrmap_lock_all(struct cca_ptrmap *map);
void cca_ptrmap_unlock_all(struct cca_ptrmap *map);

void cca_ptrmap_fini(struct cca_ptrmap *map);

#endif
