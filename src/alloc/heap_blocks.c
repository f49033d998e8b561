/* SPDX-License-Identifier: MIT */
/* Blocks of a heap: cut, handed out, freed, joined, and given another key. */
#include "alloc/heap_parts.h"

#include "alloc/allocator_internal.h"
#include "alloc/stream_use.h"
#include "base/check.h"

/* What an alloc does to the free parts of split segments. */
struct split_change {
    int32_t count;
    int64_t bytes;
};

static inline struct split_change change_of_split(const struct cca_block *block, bool was_split,
                                                  size_t rest_bytes)
{
    if (CCA_UNLIKELY(cca_segment_is_expandable(block->segment))) {
        return (struct split_change){0, 0}; /* its parts do not count */
    }
    if (was_split) {
        return (struct split_change){rest_bytes == 0 ? -1 : 0, -(int64_t)block->bytes};
    }
    return (struct split_change){rest_bytes != 0, (int64_t)rest_bytes};
}

/* Events are built apart from what is counted: most of the time nobody listens. */
static CCA_NOINLINE void tell_alloc(struct cca_heap *heap, const struct cca_block *block,
                                    const struct cca_request *request, unsigned flags,
                                    struct split_change split)
{
    struct cca_event event = cca_heap_event(CCA_EVENT_ALLOC, request, block->alloc_time_ns);
    event.flags = flags;
    event.split_count_delta = split.count;
    event.split_bytes_delta = split.bytes;
    cca_heap_describe_block(&event, block);
    cca_heap_tell(heap, &event);
}

static CCA_NOINLINE void tell_free_requested(struct cca_heap *heap, const struct cca_block *block,
                                             const struct cca_request *request, uint64_t now_ns)
{
    struct cca_event event = cca_heap_event(CCA_EVENT_FREE_REQUESTED, request, now_ns);
    cca_heap_describe_block(&event, block);
    event.stream = block->key == CCA_KEY_READY ? 0 : block->key;
    event.stack = request->stack != 0 ? request->stack : block->stack;
    cca_heap_tell(heap, &event);
}

/* To be told once the block has joined its neighbours. */
static CCA_NOINLINE void describe_free_completed(struct cca_event *event,
                                                 const struct cca_block *block, uint32_t stack,
                                                 uint64_t now_ns)
{
    *event = (struct cca_event){
        .kind = CCA_EVENT_FREE_COMPLETED,
        .time_ns = now_ns,
        .stack = stack,
        .thread = block->thread,
        .stream = block->key == CCA_KEY_READY ? 0 : block->key,
    };
    cca_heap_describe_block(event, block);
}

static CCA_ALWAYS_INLINE void hand_out(struct cca_heap *heap, struct cca_block *block,
                                       const struct cca_request *request, bool was_split,
                                       size_t rest_bytes, unsigned flags, uint64_t now_ns)
{
    block->state = CCA_BLOCK_LIVE;
    block->uses = NULL;
    block->requested_bytes = request->bytes;
    block->key = request->key;
    block->alloc_time_ns = now_ns;
    block->stack = request->stack;
    block->thread = request->thread;
    block->was_oversize = cca_policy_is_oversize(&heap->allocator->policy, block->bytes);

    struct split_change split = change_of_split(block, was_split, rest_bytes);
    struct cca_event counted = {.kind = CCA_EVENT_ALLOC, .flags = flags, .time_ns = now_ns};
    cca_heap_weigh_block(&counted, block);
    counted.split_count_delta = split.count;
    counted.split_bytes_delta = split.bytes;
    cca_heap_count(heap, &counted);
    if (cca_heap_is_heard(heap)) {
        tell_alloc(heap, block, request, flags, split);
    }
}

void cca_heap_hand_out(struct cca_heap *heap, struct cca_block *block,
                       const struct cca_request *request, bool was_split, size_t rest_bytes,
                       unsigned flags, uint64_t now_ns)
{
    hand_out(heap, block, request, was_split, rest_bytes, flags, now_ns);
}

static CCA_ALWAYS_INLINE size_t cut(struct cca_heap *heap, const struct cca_policy *policy,
                                    struct cca_block *block, size_t rounded, cca_key key)
{
    const struct cca_private_pool *pool = block->segment->pool;
    if (!cca_policy_should_split(policy, block->bytes, rounded, heap->expands) ||
        (pool != NULL && pool->no_split)) {
        return 0;
    }
    struct cca_block *rest = cca_pool_take_uncleared(&heap->block_records);
    if (rest == NULL) {
        return 0;
    }
    cca_block_split(block, rest, rounded);
    rest->key = key;
    rest->freed_seq = block->freed_seq;
    cca_block_pool_insert(block->segment->blocks, rest);
    return rest->bytes;
}

size_t cca_heap_cut(struct cca_heap *heap, const struct cca_policy *policy, struct cca_block *block,
                    size_t rounded, cca_key key)
{
    return cut(heap, policy, block, rounded, key);
}

void cca_heap_count_search(struct cca_heap *heap, const struct cca_policy *policy,
                           const struct cca_request *request, size_t rounded)
{
    if (heap->limit_bytes != CCA_NO_LIMIT && policy->gc_threshold > 0) {
        cca_heap_pool(heap, request->pool, cca_policy_is_small(rounded))->searches++;
    }
}

/* A FREE block that is in no pool (any more). */
static CCA_ALWAYS_INLINE struct cca_block *give(struct cca_heap *heap, struct cca_block *block,
                                                const struct cca_policy *policy,
                                                const struct cca_request *request, size_t rounded,
                                                unsigned flags, uint64_t now_ns)
{
    bool was_split = cca_block_is_split(block);
    size_t rest_bytes = cut(heap, policy, block, rounded, block->key);
    hand_out(heap, block, request, was_split, rest_bytes, flags, now_ns);
    return block;
}

struct cca_block *cca_heap_take_block(struct cca_heap *heap, struct cca_block *block,
                                      const struct cca_request *request, size_t rounded,
                                      uint64_t now_ns)
{
    cca_block_pool_remove(block->segment->blocks, block);
    return give(heap, block, &heap->allocator->policy, request, rounded, 0, now_ns);
}

/* Best fit of one pool. */
static CCA_ALWAYS_INLINE struct cca_block *
take_from(struct cca_heap *heap, struct cca_block_pool *pool, const struct cca_policy *policy,
          const struct cca_request *request, size_t rounded, uint64_t now_ns)
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

static CCA_ALWAYS_INLINE void report_free_requested(struct cca_heap *heap,
                                                    const struct cca_block *block,
                                                    const struct cca_request *request,
                                                    uint64_t now_ns)
{
    struct cca_event counted = {.kind = CCA_EVENT_FREE_REQUESTED};
    cca_heap_weigh_block(&counted, block);
    cca_heap_count(heap, &counted);
    if (cca_heap_is_heard(heap)) {
        tell_free_requested(heap, block, request, now_ns);
    }
}

void cca_heap_request_free(struct cca_heap *heap, struct cca_block *block,
                           const struct cca_request *request, uint64_t now_ns)
{
    cca_stream_use_drop(heap, cca_stream_use_detach(block));
    report_free_requested(heap, block, request, now_ns);
    block->free_stack = request->stack != 0 ? request->stack : block->stack;
    block->state = CCA_BLOCK_PENDING;
    block->use_events = 0;
    block->wait = (struct cca_list){NULL, NULL};
    heap->pending_bytes += block->bytes;
}

/* Neighbours join when one key serves both: equal ones, or READY and a stream's, which becomes the
 * stream's. */
static inline bool may_join(const struct cca_block *neighbour, cca_key key, bool ready_only)
{
    if (neighbour == NULL || neighbour->state != CCA_BLOCK_FREE) {
        return false;
    }
    if (neighbour->key == key) {
        return true;
    }
    return !ready_only && (neighbour->key == CCA_KEY_READY || key == CCA_KEY_READY);
}

static CCA_ALWAYS_INLINE struct cca_joined join(struct cca_heap *heap, struct cca_block *block,
                                                bool ready_only)
{
    struct cca_block_pool *pool = block->segment->blocks;
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

struct cca_joined cca_heap_join(struct cca_heap *heap, struct cca_block *block, bool ready_only)
{
    return join(heap, block, ready_only);
}

/* A block that is nobody's becomes FREE. */
static CCA_ALWAYS_INLINE struct cca_block *complete_free(struct cca_heap *heap,
                                                         struct cca_block *block, cca_key key,
                                                         uint32_t stack, uint64_t now_ns)
{
    struct cca_event told, counted = {.kind = CCA_EVENT_FREE_COMPLETED};
    bool is_heard = cca_heap_is_heard(heap);
    cca_heap_weigh_block(&counted, block);
    if (is_heard) {
        describe_free_completed(&told, block, stack, now_ns);
    }
    block->key = key;
    block->freed_seq = ++heap->frees;
    struct cca_joined joined = join(heap, block, false);
    counted.split_count_delta = joined.count_delta;
    counted.split_bytes_delta = joined.bytes_delta;
    cca_heap_count(heap, &counted);
    if (is_heard) {
        told.split_count_delta = joined.count_delta;
        told.split_bytes_delta = joined.bytes_delta;
        cca_heap_tell(heap, &told);
    }
    return joined.block;
}

struct cca_block *cca_heap_complete_free(struct cca_heap *heap, struct cca_block *block,
                                         cca_key key, uint64_t now_ns)
{
    CCA_ASSERT(block->state == CCA_BLOCK_PENDING && !cca_list_is_linked(&block->wait));
    CCA_ASSERT(block->use_events == 0);
    heap->pending_bytes -= block->bytes;
    return complete_free(heap, block, key, block->free_stack, now_ns);
}

void cca_heap_free_now(struct cca_heap *heap, struct cca_block *block,
                       const struct cca_request *request, cca_key key, uint64_t now_ns)
{
    uint32_t stack = request->stack != 0 ? request->stack : block->stack;
    CCA_ASSERT(block->state == CCA_BLOCK_LIVE && block->uses == NULL);
    report_free_requested(heap, block, request, now_ns);
    (void)complete_free(heap, block, key, stack, now_ns);
}

/* The next free block that a rekey concerns, or NULL. */
static struct cca_block *find_keyed(struct cca_block_pool *pool, cca_key key, uint64_t before_seq)
{
    struct cca_block *block = key == CCA_KEY_READY ? cca_block_pool_first(pool)
                                                   : cca_block_pool_lower_bound(pool, key, 0);
    for (; block != NULL; block = cca_block_pool_next(pool, block)) {
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
            event.flags = block->segment->event_flags;
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
