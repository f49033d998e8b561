/* SPDX-License-Identifier: MIT */
#include "alloc/block_pool.h"

#include <string.h>

#include "base/check.h"

/* A place in the order of blocks. */
struct place {
    cca_key key;
    size_t bytes;
    uint64_t addr;
};

static inline bool is_before(const struct cca_block *block, struct place place)
{
    if (CCA_UNLIKELY(block->key != place.key)) {
        return block->key < place.key;
    }
    return block->bytes != place.bytes ? block->bytes < place.bytes : block->addr < place.addr;
}

static inline struct place place_of(const struct cca_block *block)
{
    return (struct place){block->key, block->bytes, block->addr};
}

/* Trees are treaps: a block stands below one of higher priority. It depends on the record's address
 * alone, and no two blocks tie. */
static inline uint64_t priority(const struct cca_block *block)
{
    return (uint64_t)(uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15);
}

void cca_block_pool_tree_insert(struct cca_block **root, struct cca_block *block)
{
    struct place place = place_of(block);
    while (*root != NULL && priority(*root) > priority(block)) {
        root = is_before(*root, place) ? &(*root)->right : &(*root)->left;
    }
    /* What stood here is divided between both sides of the block. */
    struct cca_block *rest = *root, **left = &block->left, **right = &block->right;
    *root = block;
    while (rest != NULL) {
        if (is_before(rest, place)) {
            *left = rest;
            left = &rest->right;
            rest = rest->right;
        } else {
            *right = rest;
            right = &rest->left;
            rest = rest->left;
        }
    }
    *left = *right = NULL;
}

void cca_block_pool_tree_erase(struct cca_block **root, struct cca_block *block)
{
    struct place place = place_of(block);
    while (*root != block) {
        root = is_before(*root, place) ? &(*root)->right : &(*root)->left;
    }
    struct cca_block *left = block->left, *right = block->right;
    while (left != NULL && right != NULL) {
        if (priority(left) > priority(right)) {
            *root = left;
            root = &left->right;
            left = left->right;
        } else {
            *root = right;
            root = &right->left;
            right = right->left;
        }
    }
    *root = left != NULL ? left : right;
}

/* The first block that is not before the place, or NULL. */
static struct cca_block *tree_at_or_after(struct cca_block *block, struct place place)
{
    struct cca_block *best = NULL;
    while (block != NULL) {
        if (is_before(block, place)) {
            block = block->right;
        } else {
            best = block;
            block = block->left;
        }
    }
    return best;
}

/* The last block before the place, or NULL. */
static struct cca_block *tree_before(struct cca_block *block, struct place place)
{
    struct cca_block *best = NULL;
    while (block != NULL) {
        if (is_before(block, place)) {
            best = block;
            block = block->right;
        } else {
            block = block->left;
        }
    }
    return best;
}

/* The first bin from this one up to `end` that holds something, or `end`. Shelves begin with a word
 * of the bitmap. */
static inline unsigned occupied_from(const struct cca_block_pool *pool, unsigned bin, unsigned end)
{
    for (; bin < end; bin = (bin / 64 + 1) * 64) {
        uint64_t word = pool->occupied[bin / 64] >> bin % 64;
        if (word != 0) {
            return bin + (unsigned)__builtin_ctzll(word);
        }
    }
    return end;
}

void cca_block_pool_init(struct cca_block_pool *pool)
{
    memset(pool, 0, sizeof(*pool));
}

uint32_t cca_block_pool_age(const struct cca_block_pool *pool, const struct cca_block *block)
{
    return pool->searches - block->born;
}

/* The first block of the place's key that is not before the place. */
static inline struct cca_block *find(const struct cca_block_pool *pool, struct place place)
{
    unsigned shelf = cca_block_pool_shelf(place.key), end = shelf + CCA_BINS;
    unsigned bin = occupied_from(pool, shelf + cca_block_pool_bin(place.bytes), end);
    for (; bin < end; bin = occupied_from(pool, bin + 1, end)) {
        struct cca_block *found = tree_at_or_after(pool->bins[bin], place);
        if (found != NULL && found->key == place.key) {
            return found;
        }
    }
    return NULL;
}

/* The last block of the place's key before the place. */
static struct cca_block *find_before(const struct cca_block_pool *pool, struct place place)
{
    unsigned shelf = cca_block_pool_shelf(place.key);
    for (unsigned bin = shelf + cca_block_pool_bin(place.bytes) + 1; bin-- > shelf;) {
        struct cca_block *found = tree_before(pool->bins[bin], place);
        if (found != NULL && found->key == place.key) {
            return found;
        }
    }
    return NULL;
}

struct cca_block *cca_block_pool_lower_bound(const struct cca_block_pool *pool, cca_key key,
                                             size_t bytes)
{
    return find(pool, (struct place){key, bytes, 0});
}

struct cca_block *cca_block_pool_before(const struct cca_block_pool *pool, cca_key key,
                                        size_t bytes, uint64_t addr)
{
    return find_before(pool, (struct place){key, bytes, addr});
}

struct cca_block *cca_block_pool_largest(const struct cca_block_pool *pool, cca_key key)
{
    return find_before(pool, (struct place){key, SIZE_MAX, UINT64_MAX});
}

struct cca_block *cca_block_pool_next_of_key(const struct cca_block_pool *pool,
                                             const struct cca_block *block)
{
    return find(pool, (struct place){block->key, block->bytes, block->addr + 1});
}

struct cca_block *cca_block_pool_previous_of_key(const struct cca_block_pool *pool,
                                                 const struct cca_block *block)
{
    return find_before(pool, place_of(block));
}

/* The smallest key of a stream, from this one on, of which there is a block; READY: none. */
static cca_key stream_from(const struct cca_block_pool *pool, cca_key key)
{
    cca_key least = CCA_KEY_READY;
    const unsigned end = CCA_ARRAY_LEN(pool->bins);
    unsigned bin = occupied_from(pool, CCA_BINS, end);
    for (; bin < end; bin = occupied_from(pool, bin + 1, end)) {
        const struct cca_block *block = tree_at_or_after(pool->bins[bin],
                                                         (struct place){key, 0, 0});
        least = block != NULL && block->key < least ? block->key : least;
    }
    return least;
}

struct cca_block *cca_block_pool_first(const struct cca_block_pool *pool)
{
    return cca_block_pool_lower_bound(pool, stream_from(pool, 0), 0);
}

struct cca_block *cca_block_pool_next(const struct cca_block_pool *pool,
                                      const struct cca_block *block)
{
    struct cca_block *next = cca_block_pool_next_of_key(pool, block);
    if (next != NULL || block->key == CCA_KEY_READY) {
        return next;
    }
    return cca_block_pool_lower_bound(pool, stream_from(pool, block->key + 1), 0);
}

/* What the block could become without any new segment. */
static inline size_t growable_bytes(const struct cca_block *block)
{
    const struct cca_block *next = block->next;
    return block->bytes + (next != NULL && next->state == CCA_BLOCK_UNMAPPED ? next->bytes : 0);
}

/* The first block of this key that is big enough, with PyTorch's two exceptions for expandable
 * segments: the end of one that can still grow is left alone while the next larger block grows
 * less, and without `expands` they are passed over. */
static inline struct cca_block *best_fit(const struct cca_block_pool *pool, cca_key key,
                                         size_t rounded, bool expands)
{
    struct cca_block *found = cca_block_pool_lower_bound(pool, key, rounded);
    while (found != NULL && CCA_UNLIKELY(cca_segment_is_expandable(found->segment))) {
        struct cca_block *next = cca_block_pool_next_of_key(pool, found);
        if (expands && (next == NULL || growable_bytes(next) >= growable_bytes(found))) {
            break;
        }
        found = next;
    }
    return found;
}

/* By size, then address; either may be NULL. */
static inline struct cca_block *better(struct cca_block *a, struct cca_block *b)
{
    if (a == NULL || b == NULL) {
        return a == NULL ? b : a;
    }
    size_t a_bytes = growable_bytes(a), b_bytes = growable_bytes(b);
    if (a_bytes != b_bytes) {
        return a_bytes < b_bytes ? a : b;
    }
    return a->addr < b->addr ? a : b;
}

struct cca_block *cca_block_pool_take(struct cca_block_pool *pool, const struct cca_policy *policy,
                                      cca_key key, size_t rounded, bool expands)
{
    struct cca_block *found = NULL;
    if (key == CCA_KEY_READY || (pool->occupied[0] | pool->occupied[1]) != 0) {
        found = best_fit(pool, CCA_KEY_READY, rounded, expands);
    }
    if (key != CCA_KEY_READY) {
        found = better(found, best_fit(pool, key, rounded, expands));
    }
    if (found == NULL || !cca_policy_may_use(policy, found->bytes, rounded)) {
        return NULL;
    }
    cca_block_pool_remove(pool, found);
    return found;
}
