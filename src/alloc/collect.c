/* SPDX-License-Identifier: MIT */
#include "alloc/collect.h"

#include "alloc/allocator_internal.h"
#include "alloc/expandable.h"
#include "alloc/private_pool.h"
#include "alloc/release.h"
#include "base/clock.h"

/* Whether nothing that is not over can use the block any more. */
static bool is_usable_by_all(const struct cca_heap *heap, const struct cca_block *block)
{
    return block->key == CCA_KEY_READY || !heap->rekeys;
}

/* Whether the block may go back to the driver unwaited: what streams hold may still be in use, but
 * for a core driven in stream order, where the driver's own free waits. */
static bool may_release(const struct cca_heap *heap, const struct cca_block *block)
{
    return cca_block_is_whole(block) && is_usable_by_all(heap, block);
}

/* In a core driven in stream order all keys are alike. */
static struct cca_block *largest_of_all(struct cca_block_pool *pool)
{
    struct cca_block *largest = NULL;
    size_t most = 0;
    for (struct cca_block *block = cca_block_pool_first(pool); block != NULL;
         block = cca_block_pool_next(pool, block)) {
        size_t bytes = cca_block_releasable_bytes(block);
        largest = bytes > most ? block : largest;
        most = bytes > most ? bytes : most;
    }
    return largest;
}

/* The READY block of the pool with most to give back, or NULL. Blocks that give nothing back may be
 * many: `left` of them are looked at, and the next search goes on behind them. */
static struct cca_block *largest_idle(struct cca_heap *heap, int small, unsigned *left)
{
    struct cca_block_pool *pool = &heap->pools[small];
    struct cca_idle_search *search = &heap->idle_search[small];
    struct cca_block *largest = NULL, *block = NULL;
    size_t most = 0;
    if (!heap->rekeys) {
        return largest_of_all(pool);
    }
    block = search->bytes == 0
                ? cca_block_pool_largest(pool, CCA_KEY_READY)
                : cca_block_pool_before(pool, CCA_KEY_READY, search->bytes, search->addr);
    search->bytes = 0;
    while (block != NULL && block->bytes > most) {
        size_t bytes = cca_block_releasable_bytes(block);
        largest = bytes > most ? block : largest;
        most = bytes > most ? bytes : most;
        if (bytes == 0 && --*left == 0) {
            *search = (struct cca_idle_search){block->bytes, block->addr};
            break;
        }
        block = cca_block_pool_previous_of_key(pool, block);
    }
    return largest;
}

unsigned cca_collect_down_to(struct cca_heap *heap, size_t limit, bool has_waited)
{
    unsigned left = CCA_IDLE_VISITS_MAX;
    struct cca_detached detached;
    cca_heap_detached_init(&detached);
    bool is_proven_by_wait = has_waited && !heap->device.has_context_events;
    if (!cca_release_is_allowed(heap) || (!is_proven_by_wait && !cca_release_is_idle(heap))) {
        return 0;
    }
    for (size_t idle = 0; (idle = cca_collect_idle_bytes(heap)) > limit && left > 0;) {
        struct cca_block *block = largest_idle(heap, 0, &left);
        block = block != NULL || left == 0 ? block : largest_idle(heap, 1, &left);
        if (block == NULL) {
            break;
        }
        uint64_t now_ns = cca_clock_ns();
        if (cca_block_is_whole(block)) {
            cca_heap_detach_segment(heap, block->segment, now_ns, &detached);
        } else if (!cca_expandable_detach(heap, block, idle - limit, now_ns, &detached.pages)) {
            break;
        }
    }
    cca_release_detached(heap, &detached);
    return CCA_IDLE_VISITS_MAX - left;
}

/* Releases the candidates of at least average age; their number and the sum of their ages are kept
 * up to date. False when there was none. */
static bool collect_old(struct cca_heap *heap, double *ages, size_t *count,
                        struct cca_detached *out)
{
    struct cca_block_pool *pool = &heap->pools[0];
    double average = *ages / (double)*count;
    struct cca_block *block = cca_block_pool_first(pool);
    bool has_released = false;
    while (block != NULL) {
        struct cca_block *next = cca_block_pool_next(pool, block);
        double age = cca_block_pool_age(pool, block);
        if (may_release(heap, block) && age >= average) {
            *ages -= age;
            --*count;
            has_released = true;
            cca_heap_detach_segment(heap, block->segment, cca_clock_ns(), out);
        }
        block = next;
    }
    return has_released;
}

void cca_collect_old(struct cca_heap *heap)
{
    double threshold = heap->allocator->policy.gc_threshold, ages = 0;
    struct cca_block_pool *pool = &heap->pools[0];
    struct cca_detached detached;
    size_t count = 0;
    cca_heap_detached_init(&detached);
    if (heap->limit_bytes == CCA_NO_LIMIT || !(threshold > 0) || !cca_release_is_allowed(heap)) {
        return;
    }
    size_t wanted = (size_t)(threshold * (double)heap->limit_bytes);
    if (heap->reserved_bytes <= wanted || !cca_release_is_idle(heap)) {
        return;
    }
    for (struct cca_block *block = cca_block_pool_first(pool); block != NULL;
         block = cca_block_pool_next(pool, block)) {
        count += may_release(heap, block);
        ages += may_release(heap, block) ? cca_block_pool_age(pool, block) : 0;
    }
    while (heap->reserved_bytes > wanted && count > 0 &&
           collect_old(heap, &ages, &count, &detached)) {
    }
    cca_release_detached(heap, &detached);
}

bool cca_collect_oversize(struct cca_heap *heap, const struct cca_request *request, size_t rounded)
{
    const struct cca_policy *policy = &heap->allocator->policy;
    if (policy->max_split_size == CCA_NO_LIMIT || !cca_release_is_allowed(heap) ||
        (heap->device.has_context_events && !cca_release_is_idle(heap))) {
        return false;
    }
    size_t wanted = rounded > policy->max_split_size ? rounded : policy->max_split_size, found = 0;
    struct cca_block_pool *pool = cca_heap_pool(heap, request->pool, cca_policy_is_small(rounded));
    /* Memory in a stream's order may still be in use; only what is READY may go back unwaited. */
    cca_key key = heap->rekeys ? CCA_KEY_READY : request->key;
    struct cca_detached detached;
    cca_heap_detached_init(&detached);
    struct cca_block *block = cca_block_pool_lower_bound(pool, key, wanted);
    while (block != NULL && cca_segment_is_expandable(block->segment)) {
        block = cca_block_pool_next_of_key(pool, block);
    }
    if (block != NULL && !cca_block_is_split(block)) {
        found = block->bytes;
        cca_heap_detach_segment(heap, block->segment, cca_clock_ns(), &detached);
    }
    block = found < wanted ? cca_block_pool_largest(pool, key) : NULL;
    while (block != NULL && found < wanted && block->bytes >= policy->max_split_size) {
        struct cca_block *smaller = cca_block_pool_previous_of_key(pool, block);
        if (cca_block_is_whole(block)) {
            found += block->bytes;
            cca_heap_detach_segment(heap, block->segment, cca_clock_ns(), &detached);
        }
        block = smaller;
    }
    cca_release_detached(heap, &detached);
    return found >= wanted;
}
