/* SPDX-License-Identifier: MIT */
#include "alloc/heap.h"

#include <string.h>

#include "alloc/allocator_internal.h"
#include "alloc/capture.h"
#include "alloc/expandable.h"
#include "alloc/fence.h"
#include "alloc/heap_parts.h"
#include "alloc/private_pool.h"
#include "alloc/stream_use.h"
#include "base/check.h"
#include "base/clock.h"

void cca_heap_init(struct cca_heap *heap, struct cca_allocator *allocator, int slot,
                   struct cca_heap *accounts, const struct cca_config *config)
{
    memset(heap, 0, sizeof(*heap));
    heap->allocator = allocator;
    heap->device.ordinal = slot;
    heap->slot = slot;
    heap->ordinal = slot;
    heap->accounts = accounts != NULL ? accounts : heap;
    heap->generation = 1;
    heap->state = CCA_HEAP_DOWN;
    heap->limit_bytes = config->memory_limit;
    heap->memory_fraction = config->memory_fraction;
    heap->rekeys = true;
    /* A heap of the program's own context reports while it holds its lock. */
    cca_lock_init(&heap->lock, CCA_RANK_HEAP + CCA_HEAPS_MAX - 1 - slot);
    cca_block_pool_init(&heap->pools[0]);
    cca_block_pool_init(&heap->pools[1]);
    cca_list_init(&heap->segments);
    cca_list_init(&heap->fences);
    cca_list_init(&heap->aside_plain);
    cca_list_init(&heap->aside_ordered);
    cca_list_init(&heap->use_queues);
    cca_list_init(&heap->idle_use_events);
    cca_list_init(&heap->deferred);
    cca_private_pools_init(heap);
    cca_captures_init(heap);
    cca_expandable_init(heap);
    cca_pool_init(&heap->block_records, sizeof(struct cca_block));
    cca_pool_init(&heap->segment_records, sizeof(struct cca_segment));
    cca_pool_init(&heap->fence_records, sizeof(struct cca_fence));
    cca_pool_init(&heap->use_records, sizeof(struct cca_stream_use));
    cca_pool_init(&heap->use_event_records, sizeof(struct cca_use_event));
    cca_pool_init(&heap->use_queue_records, sizeof(struct cca_use_queue));
    cca_recording_apply(heap);
    heap->observer.stats.max_split_size = config->max_split_size == CCA_NO_LIMIT
                                              ? -1
                                              : (int64_t)config->max_split_size;
}

void cca_heap_fini(struct cca_heap *heap)
{
    cca_observer_fini(&heap->observer);
    cca_block_map_fini(&heap->live);
    cca_pool_fini(&heap->block_records);
    cca_pool_fini(&heap->segment_records);
    cca_pool_fini(&heap->fence_records);
    cca_pool_fini(&heap->use_records);
    cca_pool_fini(&heap->use_event_records);
    cca_pool_fini(&heap->use_queue_records);
    cca_pool_fini(&heap->private_pool_records);
    cca_pool_fini(&heap->route_records);
    cca_captures_fini(heap);
}

void cca_heap_tell(struct cca_heap *heap, struct cca_event *event)
{
    if (CCA_UNLIKELY(heap->accounts != heap)) {
        cca_lock_take(&heap->accounts->lock);
        cca_heap_report(heap->accounts, event);
        cca_lock_drop(&heap->accounts->lock);
        return;
    }
    event->stack = heap->stacks_in_trace ? event->stack : 0;
    cca_observer_tell(&heap->observer, event);
}

void cca_heap_report(struct cca_heap *heap, const struct cca_event *event)
{
    cca_heap_count(heap, event);
    if (cca_heap_is_heard(heap)) {
        struct cca_event told = *event;
        cca_heap_tell(heap, &told);
    }
}

void cca_heap_report_plain(struct cca_heap *heap, enum cca_event_kind kind)
{
    struct cca_event event = cca_heap_event(kind, NULL, cca_clock_ns());
    cca_heap_report(heap, &event);
}

struct cca_observer *cca_heap_open_accounts(struct cca_heap *heap)
{
    if (heap->accounts != heap) {
        cca_lock_take(&heap->accounts->lock);
    }
    return &heap->accounts->observer;
}

void cca_heap_close_accounts(struct cca_heap *heap)
{
    if (heap->accounts != heap) {
        cca_lock_drop(&heap->accounts->lock);
    }
}

static size_t largest_of(const struct cca_block_pool pools[2])
{
    size_t largest = 0;
    for (int small = 0; small < 2; small++) {
        const struct cca_block_pool *pool = &pools[small];
        struct cca_block *block = cca_block_pool_first(pool);
        for (; block != NULL; block = cca_block_pool_next(pool, block)) {
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
        const struct cca_block_pool *pool = &pools[small];
        struct cca_block *block = cca_block_pool_lower_bound(pool, CCA_KEY_READY, 0);
        for (; block != NULL; block = cca_block_pool_next_of_key(pool, block)) {
            bytes += cca_block_releasable_bytes(block);
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

/* One block of a segment whose memory is gone. Whether its record is free now. */
static bool drop_block(struct cca_heap *heap, struct cca_block *block, uint64_t now_ns)
{
    struct cca_event event = {.time_ns = now_ns, .stack = block->stack, .thread = block->thread};
    cca_heap_describe_block(&event, block);
    switch (block->state) {
    case CCA_BLOCK_LIVE:
        (void)cca_block_map_remove(&heap->live, block->addr);
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
        return true;
    case CCA_BLOCK_FREE:
        cca_block_pool_remove(block->segment->blocks, block);
        if (cca_block_is_part(block)) {
            event.kind = CCA_EVENT_REKEY;
            event.split_count_delta = -1;
            event.split_bytes_delta = -(int64_t)block->bytes;
            cca_heap_report(heap, &event);
        }
        return true;
    default: return cca_expandable_drop_block(heap, block);
    }
}

/* All blocks of a segment. Of an expandable one every stretch of mapped blocks is unmapped. */
static void drop_blocks(struct cca_heap *heap, struct cca_segment *segment, uint64_t now_ns)
{
    size_t mapped = 0;
    struct cca_block *block = segment->first;
    while (block != NULL) {
        struct cca_block *next = block->next;
        uint64_t end = block->addr + block->bytes;
        mapped += cca_block_is_mapped(block) ? block->bytes : 0;
        if (drop_block(heap, block, now_ns)) {
            cca_pool_give(&heap->block_records, block);
        }
        bool ends = next == NULL || !cca_block_is_mapped(next);
        if (cca_segment_is_expandable(segment) && ends && mapped != 0) {
            cca_heap_report_range(heap, CCA_EVENT_SEGMENT_UNMAP, segment, end - mapped, mapped,
                                  now_ns);
            mapped = 0;
        }
        block = next;
    }
}

void cca_heap_drop(struct cca_heap *heap, uint64_t now_ns)
{
    cca_fence_drop_all(heap);
    cca_stream_use_drop_all(heap);
    CCA_LIST_EACH (link, &heap->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        drop_blocks(heap, segment, now_ns);
        if (!cca_segment_is_expandable(segment)) {
            cca_heap_report_segment(heap, CCA_EVENT_SEGMENT_FREE, segment, NULL, 0, now_ns);
        }
        if (!segment->is_passed) {
            if (!heap->is_withdrawn) {
                cca_segment_map_remove(&heap->allocator->segments, segment);
            }
            heap->reserved_bytes -= cca_segment_held_bytes(segment);
        }
        cca_segment_leave_pool(segment);
        cca_list_remove(&segment->link);
        cca_pool_give(&heap->segment_records, segment);
    }
    heap->expandables = 0;
    cca_private_pool_drop(heap);
    CCA_ASSERT(heap->reserved_bytes == heap->in_flight_bytes && heap->pending_bytes == 0);
    heap->generation++;
}
