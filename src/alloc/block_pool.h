/* SPDX-License-Identifier: MIT */
/* Free blocks in the order key, size, address, and the best fit in it. Guarded by the heap lock.
 *
 * Sizes are sorted into bins, eight to each power of two, with a bitmap of those that hold
 * something; each bin is a small tree in the order above. The bins of one key stand on a shelf:
 * READY has its own, streams share the others. All of it is part of
 * the pool or of its blocks, so that putting a block back never needs memory. */
#ifndef CCA_ALLOC_BLOCK_POOL_H
#define CCA_ALLOC_BLOCK_POOL_H

#include "alloc/block.h"
#include "alloc/policy.h"

enum { CCA_BINS = 128, CCA_SHELVES = 17 };

struct cca_block_pool {
    size_t whole_bytes; /* of the blocks in it, what could go back to the driver */
    uint32_t searches;  /* that count for ageing; wraps */
    uint64_t occupied[CCA_SHELVES * CCA_BINS / 64]; /* bit i: bin i holds a block */
    struct cca_block *bins[CCA_SHELVES * CCA_BINS]; /* roots; shelf 0 is READY's */
};

void cca_block_pool_init(struct cca_block_pool *pool);

/* The rarer half of insert and remove: more than one block in the bin. */
void cca_block_pool_tree_insert(struct cca_block **root, struct cca_block *block);
void cca_block_pool_tree_erase(struct cca_block **root, struct cca_block *block);

/* The first bin of the key's shelf. Keys are numbers of streams; those of threads' own streams have
 * the thread further up. */
static inline unsigned cca_block_pool_shelf(cca_key key)
{
    return key == CCA_KEY_READY ? 0 : (1 + ((key ^ key >> 29) & 15)) * CCA_BINS;
}

/* Its bin for a size: eight to each power of two, counted from 8 units below, so that the smallest
 * sizes have one each; the last one takes all that is larger. */
static inline unsigned cca_block_pool_bin(size_t bytes)
{
    size_t scaled = bytes / CCA_MIN_BLOCK + 8;
    unsigned log = 60 - (unsigned)__builtin_clzll(scaled); /* of scaled / 8 */
    size_t bin = log * 8 + (scaled >> log) - 8;
    return bin < CCA_BINS ? (unsigned)bin : CCA_BINS - 1;
}

/* The block's key, size and address, and whether it is split, must not change while it is in. */
static inline void cca_block_pool_insert(struct cca_block_pool *pool, struct cca_block *block)
{
    unsigned bin = cca_block_pool_shelf(block->key) + cca_block_pool_bin(block->bytes);
    block->state = CCA_BLOCK_FREE;
    block->born = pool->searches;
    block->bin = (uint16_t)bin;
    pool->whole_bytes += cca_block_releasable_bytes(block);
    if (pool->bins[bin] == NULL) {
        block->left = block->right = NULL;
        pool->bins[bin] = block;
        pool->occupied[bin / 64] |= UINT64_C(1) << bin % 64;
    } else {
        cca_block_pool_tree_insert(&pool->bins[bin], block);
    }
}

static inline void cca_block_pool_remove(struct cca_block_pool *pool, struct cca_block *block)
{
    unsigned bin = block->bin;
    CCA_ASSERT(block->state == CCA_BLOCK_FREE);
    pool->whole_bytes -= cca_block_releasable_bytes(block);
    if (pool->bins[bin] != block || block->left != NULL || block->right != NULL) {
        cca_block_pool_tree_erase(&pool->bins[bin], block);
    } else {
        pool->bins[bin] = NULL;
        pool->occupied[bin / 64] &= ~(UINT64_C(1) << bin % 64);
    }
}

/* The smallest block of this key, lowest address among equals, of at least `bytes`; not removed. */
struct cca_block *cca_block_pool_lower_bound(const struct cca_block_pool *pool, cca_key key,
                                             size_t bytes);

/* The largest block of this key, or NULL; and the last one before this size and address. */
struct cca_block *cca_block_pool_largest(const struct cca_block_pool *pool, cca_key key);
struct cca_block *cca_block_pool_before(const struct cca_block_pool *pool, cca_key key,
                                        size_t bytes, uint64_t addr);

/* The block for a request, removed from the pool, or NULL. A stream takes the better of its own and
 * of the READY blocks, by size, then address. When the best fit may not be used by the oversize
 * rules no other one is tried, as in PyTorch. `expands`: the request may grow an expandable
 * segment; blocks of such segments are used only then, and one that could still grow counts as
 * large as it could become. */
struct cca_block *cca_block_pool_take(struct cca_block_pool *pool, const struct cca_policy *policy,
                                      cca_key key, size_t rounded, bool expands);

/* How many of the searches that count the block has sat through. */
uint32_t cca_block_pool_age(const struct cca_block_pool *pool, const struct cca_block *block);

/* All blocks in order: first, then next until NULL. Each step costs a search. */
struct cca_block *cca_block_pool_first(const struct cca_block_pool *pool);
struct cca_block *cca_block_pool_next(const struct cca_block_pool *pool,
                                      const struct cca_block *block);

/* The next larger or smaller one of the same key, or NULL. */
struct cca_block *cca_block_pool_next_of_key(const struct cca_block_pool *pool,
                                             const struct cca_block *block);
struct cca_block *cca_block_pool_previous_of_key(const struct cca_block_pool *pool,
                                                 const struct cca_block *block);

#endif
