/* SPDX-License-Identifier: MIT */
/* Free blocks in the order key, size, address, and the best fit in it. Guarded by the heap lock. */
#ifndef CCA_ALLOC_BLOCK_POOL_H
#define CCA_ALLOC_BLOCK_POOL_H

#include "alloc/block.h"
#include "alloc/policy.h"

struct cca_block_pool {
    struct cca_tree tree;
    size_t free_bytes;  /* sum over the blocks in it */
    size_t whole_bytes; /* of these, what could go back to the driver */
    uint32_t searches;  /* that count for ageing; wraps */
};

void cca_block_pool_init(struct cca_block_pool *pool);

/* The block's key, size and address, and whether it is split, must not change while it is in. */
void cca_block_pool_insert(struct cca_block_pool *pool, struct cca_block *block);
void cca_block_pool_remove(struct cca_block_pool *pool, struct cca_block *block);

/* The smallest block of this key, lowest address among equals, of at least `bytes`; not removed. */
struct cca_block *cca_block_pool_lower_bound(const struct cca_block_pool *pool, cca_key key,
                                             size_t bytes);

/* The largest block of this key, or NULL. */
struct cca_block *cca_block_pool_largest(const struct cca_block_pool *pool, cca_key key);

/* The block for a request, removed from the pool, or NULL. A stream takes the better of its own and
 * of the READY blocks, by size, then address. When the best fit may not be used by the oversize
 * rules no other one is tried, as in PyTorch. `expands`: the request may grow an expandable
 * segment; blocks of such segments are used only then, and one that could still grow counts as
 * large as it could become. */
struct cca_block *cca_block_pool_take(struct cca_block_pool *pool, const struct cca_policy *policy,
                                      cca_key key, size_t rounded, bool expands);

/* How many of the searches that count the block has sat through. */
uint32_t cca_block_pool_age(const struct cca_block_pool *pool, const struct cca_block *block);

/* All blocks in order: first, then next until NULL. */
struct cca_block *cca_block_pool_first(const struct cca_block_pool *pool);
struct cca_block *cca_block_pool_next(const struct cca_block *block);

/* The next larger or smaller one of the same key, or NULL. */
struct cca_block *cca_block_pool_next_of_key(const struct cca_block *block);
struct cca_block *cca_block_pool_previous_of_key(const struct cca_block *block);

#endif
