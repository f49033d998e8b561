/* SPDX-License-Identifier: MIT */
/* Segments of a heap: they come, and go back to the driver. */
#include "alloc/heap_parts.h"

#include "alloc/allocator_internal.h"
#include "alloc/expandable.h"
#include "base/check.h"
#include "base/clock.h"

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

struct cca_event cca_heap_segment_event(enum cca_event_kind kind, const struct cca_segment *segment,
                                        const struct cca_request *request, uint64_t took_ns,
                                        uint64_t now_ns)
{
    struct cca_event event = cca_heap_event(kind, request, now_ns);
    event.flags = segment->event_flags | (segment->was_oversize ? CCA_EVENT_OVERSIZE : 0);
    event.pool = cca_segment_pool_number(segment);
    event.addr = segment->addr;
    event.requested_bytes = event.block_bytes = segment->bytes;
    event.stream = segment->key == CCA_KEY_READY ? 0 : segment->key;
    event.stack = event.stack != 0 ? event.stack : segment->stack;
    event.duration_ns = took_ns;
    return event;
}

void cca_heap_report_segment(struct cca_heap *heap, enum cca_event_kind kind,
                             const struct cca_segment *segment, const struct cca_request *request,
                             uint64_t took_ns, uint64_t now_ns)
{
    struct cca_event event = cca_heap_segment_event(kind, segment, request, took_ns, now_ns);
    cca_heap_report(heap, &event);
}

void cca_heap_report_released(struct cca_heap *heap, const struct cca_segment *segment,
                              uint64_t took_ns)
{
    cca_heap_report_segment(heap, CCA_EVENT_DRIVER_FREED, segment, NULL, took_ns, cca_clock_ns());
}

void cca_heap_report_range(struct cca_heap *heap, enum cca_event_kind kind,
                           const struct cca_segment *segment, uint64_t addr, size_t bytes,
                           uint64_t now_ns)
{
    struct cca_event event = cca_heap_segment_event(kind, segment, NULL, 0, now_ns);
    event.addr = addr;
    event.requested_bytes = event.block_bytes = bytes;
    cca_heap_report(heap, &event);
}

static void report_growth(struct cca_heap *heap, const struct cca_segment *segment,
                          const struct cca_request *request, const struct cca_growth *growth,
                          uint64_t now_ns)
{
    struct cca_event event = cca_heap_segment_event(CCA_EVENT_SEGMENT_ALLOC, segment, request,
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
    cca_segment_settle(heap, segment, request->pool, cca_policy_is_small(rounded));
    segment->was_oversize = cca_policy_is_oversize(policy, growth->bytes);
    if (segment->pool != NULL) {
        segment->pool->segments++;
    }
    cca_segment_map_insert(&heap->allocator->segments, segment);
    report_growth(heap, segment, request, growth, now_ns);

    size_t rest_bytes = cca_heap_cut(heap, policy, block, rounded, request->key);
    cca_heap_hand_out(heap, block, request, false, rest_bytes, 0, now_ns);
    return block;
}

void cca_segment_leave_pool(struct cca_segment *segment)
{
    if (segment->pool != NULL) {
        segment->pool->segments--;
        segment->pool = NULL;
    }
}

void cca_heap_detached_init(struct cca_detached *detached)
{
    cca_list_init(&detached->segments);
    cca_list_init(&detached->pages);
}

void cca_heap_detach_segment(struct cca_heap *heap, struct cca_segment *segment, uint64_t now_ns,
                             struct cca_detached *out)
{
    struct cca_block *block = segment->first;
    CCA_ASSERT(block->state == CCA_BLOCK_FREE && cca_block_is_whole(block));
    cca_heap_report_segment(heap, CCA_EVENT_SEGMENT_FREE, segment, NULL, 0, now_ns);
    cca_block_pool_remove(segment->blocks, block);
    cca_pool_give(&heap->block_records, block);
    cca_segment_leave_pool(segment);
    segment->first = NULL;
    cca_segment_map_remove(&heap->allocator->segments, segment);
    cca_list_remove(&segment->link);
    heap->reserved_bytes -= segment->bytes;
    heap->releases_in_flight++;
    cca_list_push_back(&out->segments, &segment->link);
}

static bool is_over(const struct cca_block *block, uint64_t before_seq)
{
    return block->key == CCA_KEY_READY || block->freed_seq < before_seq;
}

static void detach_segments(struct cca_heap *heap, struct cca_block_pool *pool, uint64_t before_seq,
                            uint64_t now_ns, struct cca_detached *out)
{
    struct cca_block *block = cca_block_pool_first(pool);
    while (block != NULL) {
        struct cca_block *next = cca_block_pool_next(pool, block);
        if (is_over(block, before_seq) && cca_block_is_whole(block)) {
            cca_heap_detach_segment(heap, block->segment, now_ns, out);
        }
        block = next;
    }
}

static void detach_pages(struct cca_heap *heap, struct cca_block_pool *pool, uint64_t before_seq,
                         uint64_t now_ns, struct cca_detached *out)
{
    struct cca_block *block = cca_block_pool_first(pool);
    while (block != NULL) {
        struct cca_block *next = cca_block_pool_next(pool, block);
        if (is_over(block, before_seq) && cca_segment_is_expandable(block->segment)) {
            (void)cca_expandable_detach(heap, block, SIZE_MAX, now_ns, &out->pages);
        }
        block = next;
    }
}

static void detach_from(struct cca_heap *heap, struct cca_block_pool *pool, uint64_t before_seq,
                        uint64_t now_ns, struct cca_detached *out)
{
    if (pool->whole_bytes == 0) {
        return;
    }
    detach_segments(heap, pool, before_seq, now_ns, out);
    if (heap->expandables != 0) {
        detach_pages(heap, pool, before_seq, now_ns, out);
    }
}

void cca_heap_detach_pool(struct cca_heap *heap, struct cca_private_pool *pool, uint64_t before_seq,
                          uint64_t now_ns, struct cca_detached *out)
{
    if (pool->uses == 0) {
        detach_from(heap, &pool->pools[1], before_seq, now_ns, out);
        detach_from(heap, &pool->pools[0], before_seq, now_ns, out);
    }
}

void cca_heap_detach_releasable(struct cca_heap *heap, uint64_t before_seq, uint64_t now_ns,
                                struct cca_detached *out)
{
    detach_from(heap, &heap->pools[0], before_seq, now_ns, out);
    detach_from(heap, &heap->pools[1], before_seq, now_ns, out);
    CCA_LIST_EACH (link, &heap->private_pools) {
        cca_heap_detach_pool(heap, CCA_LIST_ENTRY(link, struct cca_private_pool, link), before_seq,
                             now_ns, out);
    }
    cca_private_pool_sweep(heap);
}

void cca_heap_forget_segment(struct cca_heap *heap, struct cca_segment *segment, uint64_t took_ns)
{
    cca_list_remove(&segment->link);
    heap->releases_in_flight--;
    cca_heap_report_released(heap, segment, took_ns);
    cca_pool_give(&heap->segment_records, segment);
}

bool cca_heap_add_passed(struct cca_heap *heap, const struct cca_request *request, uint64_t addr,
                         uint64_t now_ns, struct cca_block **block_out)
{
    struct cca_segment *segment = cca_heap_take_records(heap);
    if (segment == NULL) {
        return false;
    }
    struct cca_block *block = link_segment(heap, segment, request, addr, request->bytes, now_ns);
    segment->is_passed = true;
    cca_segment_settle(heap, segment, NULL, cca_policy_is_small(request->bytes));
    cca_heap_report_segment(heap, CCA_EVENT_SEGMENT_ALLOC, block->segment, request, 0, now_ns);
    cca_heap_hand_out(heap, block, request, false, 0, 0, now_ns);
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
    cca_heap_describe_block(&event, block);
    event.stack = block->free_stack;
    cca_heap_report(heap, &event);
    cca_heap_report_segment(heap, CCA_EVENT_SEGMENT_FREE, segment, request, 0, now_ns);
    cca_list_remove(&segment->link);
    cca_pool_give(&heap->block_records, block);
    cca_pool_give(&heap->segment_records, segment);
}
