/* SPDX-License-Identifier: MIT */
#include "alloc/block_pool.h"

#include "base/check.h"

static struct cca_block *block_of(const struct cca_tree_node *node)
{
    return node == NULL ? NULL : CCA_CONTAINER_OF(node, struct cca_block, node);
}

static int compare(const struct cca_tree_node *a, const struct cca_tree_node *b)
{
    const struct cca_block *x = block_of(a), *y = block_of(b);
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    if (x->bytes != y->bytes) {
        return x->bytes < y->bytes ? -1 : 1;
    }
    return (x->addr > y->addr) - (x->addr < y->addr);
}

void cca_block_pool_init(struct cca_block_pool *pool)
{
    cca_tree_init(&pool->tree, compare);
    pool->free_bytes = pool->whole_bytes = 0;
    pool->searches = 0;
}

void cca_block_pool_insert(struct cca_block_pool *pool, struct cca_block *block)
{
    block->state = CCA_BLOCK_FREE;
    block->born = pool->searches;
    cca_tree_insert(&pool->tree, &block->node);
    pool->free_bytes += block->bytes;
    pool->whole_bytes += cca_block_releasable_bytes(block);
}

void cca_block_pool_remove(struct cca_block_pool *pool, struct cca_block *block)
{
    CCA_ASSERT(block->state == CCA_BLOCK_FREE);
    cca_tree_erase(&pool->tree, &block->node);
    pool->free_bytes -= block->bytes;
    pool->whole_bytes -= cca_block_releasable_bytes(block);
}

uint32_t cca_block_pool_age(const struct cca_block_pool *pool, const struct cca_block *block)
{
    return pool->searches - block->born;
}

struct cca_block *cca_block_pool_lower_bound(const struct cca_block_pool *pool, cca_key key,
                                             size_t bytes)
{
    struct cca_block wanted = {.key = key, .bytes = bytes, .addr = 0};
    struct cca_block *found = block_of(cca_tree_lower_bound(&pool->tree, &wanted.node));
    return found != NULL && found->key == key ? found : NULL;
}

struct cca_block *cca_block_pool_largest(const struct cca_block_pool *pool, cca_key key)
{
    struct cca_block beyond = {.key = key, .bytes = SIZE_MAX, .addr = UINT64_MAX};
    struct cca_block *found = block_of(cca_tree_floor(&pool->tree, &beyond.node));
    return found != NULL && found->key == key ? found : NULL;
}

/* What the block could become without any new segment. */
static size_t growable_bytes(const struct cca_block *block)
{
    const struct cca_block *next = block->next;
    return block->bytes + (next != NULL && next->state == CCA_BLOCK_UNMAPPED ? next->bytes : 0);
}

/* The first block of this key that is big enough, with PyTorch's two exceptions for expandable
 * segments: the end of one that can still grow is left alone while the next larger block grows
 * less, and without `expands` they are passed over. */
static struct cca_block *best_fit(const struct cca_block_pool *pool, cca_key key, size_t rounded,
                                  bool expands)
{
    struct cca_block *found = cca_block_pool_lower_bound(pool, key, rounded);
    while (found != NULL && cca_segment_is_expandable(found->segment)) {
        struct cca_block *next = cca_block_pool_next_of_key(found);
        if (expands && (next == NULL || growable_bytes(next) >= growable_bytes(found))) {
            break;
        }
        found = next;
    }
    return found;
}

/* By size, then address; either may be NULL. */
static struct cca_block *better(struct cca_block *a, struct cca_block *b)
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
    struct cca_block *found = best_fit(pool, CCA_KEY_READY, rounded, expands);
    if (key != CCA_KEY_READY) {
        found = better(found, best_fit(pool, key, rounded, expands));
    }
    if (found == NULL || !cca_policy_may_use(policy, found->bytes, rounded)) {
        return NULL;
    }
    cca_block_pool_remove(pool, found);
    return found;
}

struct cca_block *cca_block_pool_first(const struct cca_block_pool *pool)
{
    return block_of(cca_tree_first(&pool->tree));
}

struct cca_block *cca_block_pool_next(const struct cca_block *block)
{
    return block_of(cca_tree_next(&block->node));
}

struct cca_block *cca_block_pool_next_of_key(const struct cca_block *block)
{
    struct cca_block *next = cca_block_pool_next(block);
    return next != NULL && next->key == block->key ? next : NULL;
}

struct cca_block *cca_block_pool_previous_of_key(const struct cca_block *block)
{
    struct cca_block *previous = block_of(cca_tree_prev(&block->node));
    return previous != NULL && previous->key == block->key ? previous : NULL;
}
