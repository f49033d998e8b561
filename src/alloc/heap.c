/* SPDX-License-Identifier: MIT */
#include "alloc/heap.h"

#include "alloc/allocator_internal.h"
#include "alloc/fence.h"
#include "alloc/private_pool.h"
#include "alloc/stream_use.h"
#include "base/check.h"
#include "base/clock.h"

void cca_heap_init(struct cca_heap *heap, struct cca_allocator *allocator, int ordinal,
                   const struct cca_config *config)
{
    *heap = (struct cca_heap){
        .allocator = allocator,
        .generation = 1,
        .state = CCA_HEAP_DOWN,
        .limit_bytes = config->memory_limit,
        .memory_fraction = config->memory_fraction,
        .stacks_in_trace = config->context >= CCA_CONTEXT_ALLOC,
        .rekeys = true,
    };
    cca_lock_init(&heap->lock, CCA_RANK_HEAP + ordinal);
    cca_block_pool_init(&heap->pools[0]);
    cca_block_pool_init(&heap->pools[1]);
    cca_list_init(&heap->segments);
    cca_list_init(&heap->fences);
    cca_list_init(&heap->unfenced);
    cca_list_init(&heap->use_queues);
    cca_list_init(&heap->idle_use_events);
    cca_list_init(&heap->deferred);
    cca_private_pools_init(heap);
    cca_pool_init(&heap->block_records, sizeof(struct cca_block));
    cca_pool_init(&heap->segment_records, sizeof(struct cca_segment));
    cca_pool_init(&heap->fence_records, sizeof(struct cca_fence));
    cca_pool_init(&heap->use_records, sizeof(struct cca_stream_use));
    cca_pool_init(&heap->use_event_records, sizeof(struct cca_use_event));
    cca_pool_init(&heap->use_queue_records, sizeof(struct cca_use_queue));
    size_t entries = config->history == CCA_HISTORY_ALL     ? config->max_entries
                     : config->history == CCA_HISTORY_STATE ? 1
                                                            : 0;
    cca_observer_init(&heap->observer, ordinal, entries);
    heap->observer.stats.max_split_size = config->max_split_size == CCA_NO_LIMIT
                                              ? -1
                                              : (int64_t)config->max_split_size;
}

void cca_heap_fini(struct cca_heap *heap)
{
    cca_observer_fini(&heap->observer);
    cca_pool_fini(&heap->block_records);
    cca_pool_fini(&heap->segment_records);
    cca_pool_fini(&heap->fence_records);
    cca_pool_fini(&heap->use_records);
    cca_pool_fini(&heap->use_event_records);
    cca_pool_fini(&heap->use_queue_records);
    cca_pool_fini(&heap->private_pool_records);
    cca_pool_fini(&heap->route_records);
}

struct cca_event cca_heap_event(enum cca_event_kind kind, const struct cca_request *request,
                                uint64_t now_ns)
{
    struct cca_event event = {.kind = kind, .time_ns = now_ns};
    if (request != NULL) {
        event.api = request->api;
        event.stack = request->stack;
        event.thread = request->thread;
        event.stream = request->key == CCA_KEY_READY ? 0 : request->key;
    }
    return event;
}

void cca_heap_report(struct cca_heap *heap, const struct cca_event *event)
{
    CCA_ASSERT(cca_lock_is_mine(&heap->lock));
    if (heap->stacks_in_trace || event->stack == 0) {
        cca_observer_report(&heap->observer, event);
    } else {
        struct cca_event bare = *event;
        bare.stack = 0;
        cca_observer_report(&heap->observer, &bare);
    }
}

static unsigned segment_flags(const struct cca_segment *segment)
{
    return (segment->is_small ? CCA_EVENT_SMALL : 0) | (segment->is_passed ? CCA_EVENT_PASSED : 0);
}

static struct cca_block_pool *pool_of(struct cca_heap *heap, const struct cca_segment *segment)
{
    return cca_heap_pool(heap, segment->pool, segment->is_small);
}

static uint16_t pool_number(const struct cca_segment *segment)
{
    return segment->pool == NULL ? 0 : segment->pool->number;
}

/* Facts about a block that alloc and free events share. */
static void describe_block(struct cca_event *event, const struct cca_block *block)
{
    event->flags |= segment_flags(block->segment) | (block->was_oversize ? CCA_EVENT_OVERSIZE : 0);
    event->pool = pool_number(block->segment);
    event->addr = block->addr;
    event->requested_bytes = block->requested_bytes;
    event->block_bytes = block->bytes;
}

/* A block without owner becomes LIVE: the alloc event, with what it does to the free parts of split
 * segments. `was_split`: before it was cut for this request; `rest_bytes`: what was cut off, or 0.
 */
static void hand_out(struct cca_heap *heap, struct cca_block *block,
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
    describe_block(&event, block);
    event.flags |= flags;
    if (was_split) {
        event.split_count_delta = rest_bytes == 0 ? -1 : 0;
        event.split_bytes_delta = -(int64_t)block->bytes;
    } else if (rest_bytes != 0) {
        event.split_count_delta = 1;
        event.split_bytes_delta = (int64_t)rest_bytes;
    }
    cca_heap_report(heap, &event);
}

/* Cuts the block to `rounded` where the policy says so; the rest goes to the pool with `key`.
 * Returns the size of the rest, or 0. Without memory for a record the block stays whole. */
static size_t cut(struct cca_heap *heap, const struct cca_policy *policy, struct cca_block *block,
                  size_t rounded, cca_key key)
{
    const struct cca_private_pool *pool = block->segment->pool;
    if (!cca_policy_should_split(policy, block->bytes, rounded) ||
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
    cca_block_pool_insert(pool_of(heap, block->segment), rest);
    return rest->bytes;
}

void cca_heap_count_search(struct cca_heap *heap, const struct cca_policy *policy,
                           const struct cca_request *request, size_t rounded)
{
    if (heap->limit_bytes != CCA_NO_LIMIT && policy->gc_threshold > 0) {
        cca_heap_pool(heap, request->pool, cca_policy_is_small(rounded))->searches++;
    }
}

/* Best fit of one pool. */
static struct cca_block *take_from(struct cca_heap *heap, struct cca_block_pool *pool,
                                   const struct cca_policy *policy,
                                   const struct cca_request *request, size_t rounded,
                                   uint64_t now_ns)
{
    struct cca_block *block = cca_block_pool_take(pool, policy, request->key, rounded);
    if (block == NULL) {
        return NULL;
    }
    bool was_split = cca_block_is_split(block);
    size_t rest_bytes = cut(heap, policy, block, rounded, block->key);
    hand_out(heap, block, request, was_split, rest_bytes, CCA_EVENT_HIT, now_ns);
    return block;
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
        struct cca_block *block = lender->use_on_oom
                                      ? take_from(heap, pool, policy, request, rounded, now_ns)
                                      : NULL;
        if (block != NULL) {
            return block;
        }
    }
    return NULL;
}

struct cca_segment *cca_heap_take_records(struct cca_heap *heap)
{
    struct cca_segment *segment = cca_pool_take(&heap->segment_records);
    struct cca_block *block = cca_pool_take(&heap->block_records);
    if (segment == NULL || block == NULL) {
        cca_pool_give(&heap->segment_records, segment);
        cca_pool_give(&heap->block_records, block);
        return NULL;
    }
    segment->first = block;
    return segment;
}

void cca_heap_give_records(struct cca_heap *heap, struct cca_segment *segment)
{
    cca_pool_give(&heap->block_records, segment->first);
    cca_pool_give(&heap->segment_records, segment);
}

/* Fills fresh records and links them into the heap. */
static struct cca_block *link_segment(struct cca_heap *heap, struct cca_segment *segment,
                                      const struct cca_request *request, uint64_t addr,
                                      size_t bytes, uint64_t now_ns)
{
    struct cca_block *block = segment->first;
    segment->heap = heap;
    segment->addr = block->addr = addr;
    segment->bytes = block->bytes = bytes;
    segment->key = request->key;
    segment->alloc_time_ns = now_ns;
    segment->stack = request->stack;
    block->segment = segment;
    cca_list_push_back(&heap->segments, &segment->link);
    return block;
}

static struct cca_event segment_event(enum cca_event_kind kind, const struct cca_segment *segment,
                                      const struct cca_request *request, uint64_t took_ns,
                                      uint64_t now_ns)
{
    struct cca_event event = cca_heap_event(kind, request, now_ns);
    event.flags = segment_flags(segment) | (segment->was_oversize ? CCA_EVENT_OVERSIZE : 0);
    event.pool = pool_number(segment);
    event.addr = segment->addr;
    event.requested_bytes = event.block_bytes = segment->bytes;
    event.stream = segment->key == CCA_KEY_READY ? 0 : segment->key;
    event.stack = event.stack != 0 ? event.stack : segment->stack;
    event.duration_ns = took_ns;
    return event;
}

static void report_segment(struct cca_heap *heap, enum cca_event_kind kind,
                           const struct cca_segment *segment, const struct cca_request *request,
                           uint64_t took_ns, uint64_t now_ns)
{
    struct cca_event event = segment_event(kind, segment, request, took_ns, now_ns);
    cca_heap_report(heap, &event);
}

static void report_growth(struct cca_heap *heap, const struct cca_segment *segment,
                          const struct cca_request *request, const struct cca_growth *growth,
                          uint64_t now_ns)
{
    struct cca_event event = segment_event(CCA_EVENT_SEGMENT_ALLOC, segment, request,
                                           growth->took_ns, now_ns);
    event.flags |= growth->is_contended ? CCA_EVENT_CONTENDED : 0;
    cca_heap_report(heap, &event);
}

struct cca_block *cca_heap_add_segment(struct cca_heap *heap, const struct cca_policy *policy,
                                       const struct cca_request *request, size_t rounded,
                                       const struct cca_growth *growth, uint64_t now_ns)
{
    struct cca_segment *segment = growth->segment;
    struct cca_block *block = link_segment(heap, segment, request, growth->addr, growth->bytes,
                                           now_ns);
    segment->is_small = cca_policy_is_small(rounded);
    segment->was_oversize = cca_policy_is_oversize(policy, growth->bytes);
    if (request->pool != NULL) {
        segment->pool = request->pool;
        segment->pool->segments++;
    }
    cca_segment_map_insert(&heap->allocator->segments, segment);
    report_growth(heap, segment, request, growth, now_ns);

    size_t rest_bytes = cut(heap, policy, block, rounded, request->key);
    hand_out(heap, block, request, false, rest_bytes, 0, now_ns);
    return block;
}

void cca_heap_request_free(struct cca_heap *heap, struct cca_block *block,
                           const struct cca_request *request, uint64_t now_ns)
{
    cca_stream_use_drop(heap, cca_stream_use_detach(block));
    struct cca_event event = cca_heap_event(CCA_EVENT_FREE_REQUESTED, request, now_ns);
    describe_block(&event, block);
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

struct joined {
    struct cca_block *block;
    int32_t count_delta;
    int64_t bytes_delta;
};

/* Joins a block that is in no pool with its free neighbours and puts the result into the pool. The
 * deltas are those of the free parts of split segments. */
static struct joined join_and_insert(struct cca_heap *heap, struct cca_block *block,
                                     bool ready_only)
{
    struct cca_block_pool *pool = pool_of(heap, block->segment);
    struct joined result = {.block = block};
    /* Until there is no more to join: a READY block that becomes a stream's may then join what lies
     * beyond it. */
    for (;;) {
        bool upper = !may_join(block->prev, block->key, ready_only);
        struct cca_block *neighbour = upper ? block->next : block->prev;
        if (upper && !may_join(neighbour, block->key, ready_only)) {
            break;
        }
        cca_block_pool_remove(pool, neighbour);
        result.count_delta--;
        result.bytes_delta -= (int64_t)neighbour->bytes;
        struct cca_block *lower = upper ? block : neighbour;
        struct cca_block *gone = upper ? neighbour : block;
        cca_key key = block->key != CCA_KEY_READY ? block->key : neighbour->key;
        uint64_t seq = block->freed_seq > neighbour->freed_seq ? block->freed_seq
                                                               : neighbour->freed_seq;
        cca_block_merge(lower, gone);
        cca_pool_give(&heap->block_records, gone);
        lower->key = key;
        lower->freed_seq = seq;
        block = lower;
    }
    block->requested_bytes = 0;
    block->stack = 0;
    cca_block_pool_insert(pool, block);
    if (cca_block_is_split(block)) {
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
    describe_block(&event, block);
    heap->pending_bytes -= block->bytes;
    block->key = key;
    block->freed_seq = ++heap->frees;
    struct joined joined = join_and_insert(heap, block, false);
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
            bool was_split = cca_block_is_split(block);
            size_t bytes = block->bytes;
            cca_block_pool_remove(pool, block);
            block->key = CCA_KEY_READY;
            struct cca_event event = {.kind = CCA_EVENT_REKEY, .time_ns = now_ns};
            event.flags = segment_flags(block->segment);
            struct joined joined = join_and_insert(heap, block, true);
            event.split_count_delta = joined.count_delta - (was_split ? 1 : 0);
            event.split_bytes_delta = joined.bytes_delta - (was_split ? (int64_t)bytes : 0);
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

/* A segment leaves the books of its private pool. */
static void leave_pool(struct cca_segment *segment)
{
    if (segment->pool != NULL) {
        segment->pool->segments--;
        segment->pool = NULL;
    }
}

void cca_heap_detach_segment(struct cca_heap *heap, struct cca_segment *segment, uint64_t now_ns,
                             struct cca_list *out)
{
    struct cca_block *block = segment->first;
    CCA_ASSERT(block->state == CCA_BLOCK_FREE && !cca_block_is_split(block));
    report_segment(heap, CCA_EVENT_SEGMENT_FREE, segment, NULL, 0, now_ns);
    cca_block_pool_remove(pool_of(heap, segment), block);
    cca_pool_give(&heap->block_records, block);
    leave_pool(segment);
    segment->first = NULL;
    cca_segment_map_remove(&heap->allocator->segments, segment);
    cca_list_remove(&segment->link);
    heap->reserved_bytes -= segment->bytes;
    heap->releases_in_flight++;
    cca_list_push_back(out, &segment->link);
}

static void detach_from(struct cca_heap *heap, struct cca_block_pool *pool, uint64_t before_seq,
                        uint64_t now_ns, struct cca_list *out)
{
    struct cca_block *block = cca_block_pool_first(pool);
    while (block != NULL) {
        struct cca_block *next = cca_block_pool_next(block);
        bool is_over = block->key == CCA_KEY_READY || block->freed_seq < before_seq;
        if (is_over && !cca_block_is_split(block)) {
            cca_heap_detach_segment(heap, block->segment, now_ns, out);
        }
        block = next;
    }
}

void cca_heap_detach_releasable(struct cca_heap *heap, uint64_t before_seq, uint64_t now_ns,
                                struct cca_list *out)
{
    detach_from(heap, &heap->pools[0], before_seq, now_ns, out);
    detach_from(heap, &heap->pools[1], before_seq, now_ns, out);
    CCA_LIST_EACH (link, &heap->private_pools) {
        struct cca_private_pool *pool = CCA_LIST_ENTRY(link, struct cca_private_pool, link);
        if (pool->uses == 0) {
            detach_from(heap, &pool->pools[1], before_seq, now_ns, out);
            detach_from(heap, &pool->pools[0], before_seq, now_ns, out);
        }
    }
    cca_private_pool_sweep(heap);
}

void cca_heap_forget_segment(struct cca_heap *heap, struct cca_segment *segment, uint64_t took_ns,
                             uint64_t now_ns)
{
    cca_list_remove(&segment->link);
    heap->releases_in_flight--;
    report_segment(heap, CCA_EVENT_DRIVER_FREED, segment, NULL, took_ns, now_ns);
    cca_pool_give(&heap->segment_records, segment);
}

static size_t largest_of(const struct cca_block_pool pools[2])
{
    size_t largest = 0;
    for (int small = 0; small < 2; small++) {
        struct cca_block *block = cca_block_pool_first(&pools[small]);
        for (; block != NULL; block = cca_block_pool_next(block)) {
            largest = block->bytes > largest ? block->bytes : largest;
        }
    }
    return largest;
}

size_t cca_heap_largest_free(struct cca_heap *heap)
{
    size_t largest = largest_of(heap->pools);
    CCA_LIST_EACH (link, &heap->private_pools) {
        size_t one = largest_of(CCA_LIST_ENTRY(link, struct cca_private_pool, link)->pools);
        largest = one > largest ? one : largest;
    }
    return largest;
}

static bool pools_hold_key(const struct cca_block_pool pools[2], cca_key key)
{
    return cca_block_pool_lower_bound(&pools[0], key, 0) != NULL ||
           cca_block_pool_lower_bound(&pools[1], key, 0) != NULL;
}

bool cca_heap_holds_key(const struct cca_heap *heap, cca_key key)
{
    if (pools_hold_key(heap->pools, key)) {
        return true;
    }
    CCA_LIST_EACH (link, &heap->private_pools) {
        if (pools_hold_key(CCA_LIST_ENTRY(link, struct cca_private_pool, link)->pools, key)) {
            return true;
        }
    }
    return false;
}

static size_t releasable_of(const struct cca_block_pool pools[2])
{
    size_t bytes = 0;
    for (int small = 0; small < 2; small++) {
        struct cca_block *block = cca_block_pool_lower_bound(&pools[small], CCA_KEY_READY, 0);
        for (; block != NULL && block->key == CCA_KEY_READY; block = cca_block_pool_next(block)) {
            bytes += cca_block_is_split(block) ? 0 : block->bytes;
        }
    }
    return bytes;
}

size_t cca_heap_releasable_bytes(struct cca_heap *heap)
{
    size_t bytes = releasable_of(heap->pools);
    CCA_LIST_EACH (link, &heap->private_pools) {
        struct cca_private_pool *pool = CCA_LIST_ENTRY(link, struct cca_private_pool, link);
        bytes += pool->uses == 0 ? releasable_of(pool->pools) : 0;
    }
    return bytes;
}

bool cca_heap_add_passed(struct cca_heap *heap, const struct cca_request *request, uint64_t addr,
                         uint64_t now_ns, struct cca_block **block_out)
{
    struct cca_segment *segment = cca_heap_take_records(heap);
    if (segment == NULL) {
        return false;
    }
    struct cca_block *block = link_segment(heap, segment, request, addr, request->bytes, now_ns);
    block->segment->is_passed = true;
    block->segment->is_small = cca_policy_is_small(request->bytes);
    report_segment(heap, CCA_EVENT_SEGMENT_ALLOC, block->segment, request, 0, now_ns);
    hand_out(heap, block, request, false, 0, 0, now_ns);
    *block_out = block;
    return true;
}

void cca_heap_remove_passed(struct cca_heap *heap, struct cca_block *block,
                            const struct cca_request *request, uint64_t now_ns)
{
    struct cca_segment *segment = block->segment;
    cca_heap_request_free(heap, block, request, now_ns);
    heap->pending_bytes -= block->bytes;
    struct cca_event event = cca_heap_event(CCA_EVENT_FREE_COMPLETED, request, now_ns);
    describe_block(&event, block);
    event.stack = block->free_stack;
    cca_heap_report(heap, &event);
    report_segment(heap, CCA_EVENT_SEGMENT_FREE, segment, request, 0, now_ns);
    cca_list_remove(&segment->link);
    cca_pool_give(&heap->block_records, block);
    cca_pool_give(&heap->segment_records, segment);
}

/* One block of a segment whose memory is gone. */
static void drop_block(struct cca_heap *heap, struct cca_block *block, uint64_t now_ns)
{
    struct cca_event event = {.time_ns = now_ns, .stack = block->stack, .thread = block->thread};
    describe_block(&event, block);
    switch (block->state) {
    case CCA_BLOCK_LIVE:
        cca_ptrmap_remove(&heap->allocator->blocks, block->addr);
        cca_stream_use_drop(heap, cca_stream_use_detach(block));
        event.kind = CCA_EVENT_FREE_REQUESTED;
        cca_heap_report(heap, &event);
        heap->pending_bytes += block->bytes;
        /* fall through */
        __attribute__((fallthrough));
    case CCA_BLOCK_PENDING:
        event.kind = CCA_EVENT_FREE_COMPLETED;
        heap->pending_bytes -= block->bytes;
        cca_heap_report(heap, &event);
        break;
    case CCA_BLOCK_FREE:
        cca_block_pool_remove(pool_of(heap, block->segment), block);
        if (cca_block_is_split(block)) {
            event.kind = CCA_EVENT_REKEY;
            event.split_count_delta = -1;
            event.split_bytes_delta = -(int64_t)block->bytes;
            cca_heap_report(heap, &event);
        }
        break;
    }
}

void cca_heap_drop(struct cca_heap *heap, uint64_t now_ns)
{
    cca_fence_drop_all(heap);
    cca_stream_use_drop_all(heap);
    CCA_LIST_EACH (link, &heap->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        struct cca_block *block = segment->first;
        while (block != NULL) {
            struct cca_block *next = block->next;
            drop_block(heap, block, now_ns);
            cca_pool_give(&heap->block_records, block);
            block = next;
        }
        report_segment(heap, CCA_EVENT_SEGMENT_FREE, segment, NULL, 0, now_ns);
        if (!segment->is_passed) {
            cca_segment_map_remove(&heap->allocator->segments, segment);
            heap->reserved_bytes -= segment->bytes;
        }
        leave_pool(segment);
        cca_list_remove(&segment->link);
        cca_pool_give(&heap->segment_records, segment);
    }
    cca_private_pool_drop(heap);
    CCA_ASSERT(heap->reserved_bytes == heap->in_flight_bytes && heap->pending_bytes == 0);
    heap->generation++;
}
