/* SPDX-License-Identifier: MIT */
/* Blocks of a heap: cut, handed out, freed, joined, and given another key. */
#include "alloc/heap_parts.h"

#include "alloc/allocator_internal.h"
#include "alloc/stream_use.h"
#include "base/check.h"

void cca_heap_describe_block(struct cca_event *event, const struct cca_block *block)
{
    event->flags |= cca_segment_flags(block->segment) |
                    (block->was_oversize ? CCA_EVENT_OVERSIZE : 0);
    event->pool = cca_segment_pool_number(block->segment);
    event->addr = block->addr;
    event->requested_bytes = block->requested_bytes;
    event->block_bytes = block->bytes;
}

void cca_heap_hand_out(struct cca_heap *heap, struct cca_block *block,
                       const struct cca_request *request, bool was_split, size_t rest_bytes,
                       unsigned flags, uint64_t now_ns)
{
    block->state = CCA_BLOCK_LIVE;
    block->uses = NULL;
    block->requested_bytes = request->bytes;
    block->key = request->key;
    block->alloc_time_ns = now_ns;
    block->stack = request->stack;
    block->thread = request->thread;
    block->was_oversize = cca_policy_is_oversize(&heap->allocator->policy, block->bytes);

    struct cca_event event = cca_heap_event(CCA_EVENT_ALLOC, request, now_ns);
    cca_heap_describe_block(&event, block);
    event.flags |= flags;
    if (cca_segment_is_expandable(block->segment)) {
        /* Its parts do not count. */
    } else if (was_split) {
        event.split_count_delta = rest_bytes == 0 ? -1 : 0;
        event.split_bytes_delta = -(int64_t)block->bytes;
    } else if (rest_bytes != 0) {
        event.split_count_delta = 1;
        event.split_bytes_delta = (int64_t)rest_bytes;
    }
    cca_heap_report(heap, &event);
}

size_t cca_heap_cut(struct cca_heap *heap, const struct cca_policy *policy, struct cca_block *block,
                    size_t rounded, cca_key key)
{
    const struct cca_private_pool *pool = block->segment->pool;
    if (!cca_policy_should_split(policy, block->bytes, rounded, heap->expands) ||
        (pool != NULL && pool->no_split)) {
        return 0;
    }
    struct cca_block *rest = cca_pool_take(&heap->block_records);
    if (rest == NULL) {
        return 0;
    }
    cca_block_split(block, rest, rounded);
    rest->key = key;
    rest->freed_seq = block->freed_seq;
    cca_block_pool_insert(cca_segment_pool(heap, block->segment), rest);
    return rest->bytes;
}

void cca_heap_count_search(struct cca_heap *heap, const struct cca_policy *policy,
                           const struct cca_request *request, size_t rounded)
{
    if (heap->limit_bytes != CCA_NO_LIMIT && policy->gc_threshold > 0) {
        cca_heap_pool(heap, request->pool, cca_policy_is_small(rounded))->searches++;
    }
}

/* A FREE block that is in no pool (any more). */
static struct cca_block *give(struct cca_heap *heap, struct cca_block *block,
                              const struct cca_policy *policy, const struct cca_request *request,
                              size_t rounded, unsigned flags, uint64_t now_ns)
{
    bool was_split = cca_block_is_split(block);
    size_t rest_bytes = cca_heap_cut(heap, policy, block, rounded, block->key);
    cca_heap_hand_out(heap, block, request, was_split, rest_bytes, flags, now_ns);
    return block;
}

struct cca_block *cca_heap_take_block(struct cca_heap *heap, struct cca_block *block,
                                      const struct cca_request *request, size_t rounded,
                                      uint64_t now_ns)
{
    cca_block_pool_remove(cca_segment_pool(heap, block->segment), block);
    return give(heap, block, &heap->allocator->policy, request, rounded, 0, now_ns);
}

/* Best fit of one pool. */
static struct cca_block *take_from(struct cca_heap *heap, struct cca_block_pool *pool,
                                   const struct cca_policy *policy,
                                   const struct cca_request *request, size_t rounded,
                                   uint64_t now_ns)
{
    bool is_dedicated = request->pool != NULL && request->pool->is_dedicated;
    struct cca_block *block = cca_block_pool_take(
        pool, is_dedicated ? &heap->allocator->dedicated : policy, request->key, rounded,
        heap->expands && !is_dedicated);
    return block == NULL ? NULL
                         : give(heap, block, policy, request, rounded, CCA_EVENT_HIT, now_ns);
}

struct cca_block *cca_heap_take_cached(struct cca_heap *heap, const struct cca_policy *policy,
                                       const struct cca_request *request, size_t rounded,
                                       uint64_t now_ns)
{
    struct cca_block_pool *pool = cca_heap_pool(heap, request->pool, cca_policy_is_small(rounded));
    return take_from(heap, pool, policy, request, rounded, now_ns);
}

struct cca_block *cca_heap_borrow(struct cca_heap *heap, const struct cca_policy *policy,
                                  const struct cca_request *request, size_t rounded,
                                  uint64_t now_ns)
{
    CCA_LIST_EACH (link, &heap->private_pools) {
        struct cca_private_pool *lender = CCA_LIST_ENTRY(link, struct cca_private_pool, link);
        struct cca_block_pool *pool = &lender->pools[cca_policy_is_small(rounded)];
        struct cca_block *block = lender->use_on_oom && !lender->is_graphs
                                      ? take_from(heap, pool, policy, request, rounded, now_ns)
                                      : NULL;
        if (block != NULL) {
            return block;
        }
    }
    return NULL;
}

void cca_heap_request_free(struct cca_heap *heap, struct cca_block *block,
                           const struct cca_request *request, uint64_t now_ns)
{
    cca_stream_use_drop(heap, cca_stream_use_detach(block));
    struct cca_event event = cca_heap_event(CCA_EVENT_FREE_REQUESTED, request, now_ns);
    cca_heap_describe_block(&event, block);
    event.stream = block->key == CCA_KEY_READY ? 0 : block->key;
    event.stack = event.stack != 0 ? event.stack : block->stack;
    block->free_stack = event.stack;
    block->state = CCA_BLOCK_PENDING;
    block->use_events = 0;
    block->wait = (struct cca_list){NULL, NULL};
    heap->pending_bytes += block->bytes;
    cca_heap_report(heap, &event);
}

/* Neighbours join when one key serves both: equal ones, or READY and a stream's, which becomes the
 * stream's. */
static bool may_join(const struct cca_block *neighbour, cca_key key, bool ready_only)
{
    if (neighbour == NULL || neighbour->state != CCA_BLOCK_FREE) {
        return false;
    }
    if (neighbour->key == key) {
        return true;
    }
    return !ready_only && (neighbour->key == CCA_KEY_READY || key == CCA_KEY_READY);
}

struct cca_joined cca_heap_join(struct cca_heap *heap, struct cca_block *block, bool ready_only)
{
    struct cca_block_pool *pool = cca_segment_pool(heap, block->segment);
    struct cca_joined result = {.block = block};
    /* Until there is no more to join: a READY block that becomes a stream's may then join what lies
     * beyond it. */
    for (;;) {
        bool upper = !may_join(block->prev, block->key, ready_only);
        struct cca_block *neighbour = upper ? block->next : block->prev;
        if (upper && !may_join(neighbour, block->key, ready_only)) {
            break;
        }
        cca_block_pool_remove(pool, neighbour);
        if (cca_block_is_part(neighbour)) {
            result.count_delta--;
            result.bytes_delta -= (int64_t)neighbour->bytes;
        }
        struct cca_block *lower = upper ? block : neighbour;
        struct cca_block *gone = upper ? neighbour : block;
        cca_key key = block->key != CCA_KEY_READY ? block->key : neighbour->key;
        uint64_t seq = cca_block_last_use(block, neighbour);
        cca_block_merge(lower, gone);
        cca_pool_give(&heap->block_records, gone);
        lower->key = key;
        lower->freed_seq = seq;
        block = lower;
    }
    block->requested_bytes = 0;
    block->stack = 0;
    cca_block_pool_insert(pool, block);
    if (cca_block_is_part(block)) {
        result.count_delta++;
        result.bytes_delta += (int64_t)block->bytes;
    }
    result.block = block;
    return result;
}

struct cca_block *cca_heap_complete_free(struct cca_heap *heap, struct cca_block *block,
                                         cca_key key, uint64_t now_ns)
{
    CCA_ASSERT(block->state == CCA_BLOCK_PENDING && !cca_list_is_linked(&block->wait));
    CCA_ASSERT(block->use_events == 0);
    struct cca_event event = {.kind = CCA_EVENT_FREE_COMPLETED,
                              .time_ns = now_ns,
                              .stack = block->free_stack,
                              .thread = block->thread,
                              .stream = block->key == CCA_KEY_READY ? 0 : block->key};
    cca_heap_describe_block(&event, block);
    heap->pending_bytes -= block->bytes;
    block->key = key;
    block->freed_seq = ++heap->frees;
    struct cca_joined joined = cca_heap_join(heap, block, false);
    event.split_count_delta = joined.count_delta;
    event.split_bytes_delta = joined.bytes_delta;
    cca_heap_report(heap, &event);
    return joined.block;
}

/* The next free block that a rekey concerns, or NULL. */
static struct cca_block *find_keyed(struct cca_block_pool *pool, cca_key key, uint64_t before_seq)
{
    struct cca_block *block = key == CCA_KEY_READY ? cca_block_pool_first(pool)
                                                   : cca_block_pool_lower_bound(pool, key, 0);
    for (; block != NULL; block = cca_block_pool_next(block)) {
        if (block->key == CCA_KEY_READY || (key != CCA_KEY_READY && block->key != key)) {
            return NULL;
        }
        if (block->freed_seq < before_seq) {
            return block;
        }
    }
    return NULL;
}

static void rekey_pools(struct cca_heap *heap, struct cca_block_pool *pools, cca_key key,
                        uint64_t before_seq, uint64_t now_ns)
{
    for (int small = 0; small < 2; small++) {
        struct cca_block_pool *pool = &pools[small];
        struct cca_block *block;
        while ((block = find_keyed(pool, key, before_seq)) != NULL) {
            bool was_part = cca_block_is_part(block);
            size_t bytes = block->bytes;
            cca_block_pool_remove(pool, block);
            block->key = CCA_KEY_READY;
            struct cca_event event = {.kind = CCA_EVENT_REKEY, .time_ns = now_ns};
            event.flags = cca_segment_flags(block->segment);
            struct cca_joined joined = cca_heap_join(heap, block, true);
            event.split_count_delta = joined.count_delta - (was_part ? 1 : 0);
            event.split_bytes_delta = joined.bytes_delta - (was_part ? (int64_t)bytes : 0);
            cca_heap_report(heap, &event);
        }
    }
}

void cca_heap_rekey(struct cca_heap *heap, cca_key key, uint64_t before_seq, uint64_t now_ns)
{
    rekey_pools(heap, heap->pools, key, before_seq, now_ns);
    CCA_LIST_EACH (link, &heap->private_pools) {
        struct cca_private_pool *pool = CCA_LIST_ENTRY(link, struct cca_private_pool, link);
        rekey_pools(heap, pool->pools, key, before_seq, now_ns);
    }
}
