/* SPDX-License-Identifier: MIT */
/* Private pools: memory that serves only the requests routed to it, such as those of one graph
 * capture, whose addresses must stay its own. Guarded by the heap lock. */
#ifndef CCA_ALLOC_PRIVATE_POOL_H
#define CCA_ALLOC_PRIVATE_POOL_H

#include <stdbool.h>

#include "alloc/heap.h"

/* Freed once nobody uses it and it holds no segment. */
struct cca_private_pool {
    struct cca_list link; /* in heap->private_pools, in the order they were made */
    struct cca_pool_id id;
    struct cca_block_pool pools[2]; /* [0] large, [1] small */
    size_t segments;
    unsigned uses;    /* who retained it; 0: its idle segments may go back to the driver */
    unsigned holders; /* allocations under way in it */
    uint16_t number;  /* in events */
    bool use_on_oom, no_split;
    bool is_dedicated; /* see cca_private_pool_dedicated */
    bool is_graphs;    /* a capture was opened on it: graphs use what is free in it, too */
};

/* While it is open, requests that it takes go to its pool. */
struct cca_route {
    struct cca_list link; /* in heap->routes, oldest first */
    struct cca_private_pool *pool;
    struct cca_pool_scope scope;
    uint64_t capture; /* CCA_SCOPE_CAPTURE: its id, once it is known */
};

void cca_private_pools_init(struct cca_heap *heap);

/* The pool of a request that names none: that of the newest route that takes it, or NULL. */
struct cca_private_pool *cca_private_pool_route(struct cca_heap *heap,
                                                const struct cca_request *request);

/* The pool of this id, or NULL. */
struct cca_private_pool *cca_private_pool_find(struct cca_heap *heap, struct cca_pool_id id);

/* The pool of blocks that are a segment each, for IPC, which nobody retains; NULL when memory is
 * refused. */
struct cca_private_pool *cca_private_pool_dedicated(struct cca_heap *heap);

/* Frees the pools that nobody needs any more. */
void cca_private_pool_sweep(struct cca_heap *heap);

/* The context is gone: captures are over, pools are empty. Called after all blocks were dropped. */
void cca_private_pool_drop(struct cca_heap *heap);

/* The free blocks of a pool; NULL: the default one. */
static inline struct cca_block_pool *
cca_heap_pool(struct cca_heap *heap, struct cca_private_pool *private_pool, bool is_small)
{
    return private_pool != NULL ? &private_pool->pools[is_small] : &heap->pools[is_small];
}

#endif
