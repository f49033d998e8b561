/* SPDX-License-Identifier: MIT */
/* Frees whose work could not be marked at the time: while the program captures a graph, after a
 * call that failed, on a driver without context events. The next fence that can be recorded takes
 * them, or a wait of the program for all work there is. Of those that the program freed by a call
 * that waits natively the driver's own free may take whole segments: then it waits as it would have
 * without us, only later. */
#include "alloc/fence_parts.h"

#include "alloc/fence_marks.h"
#include "base/check.h"
#include "alloc/private_pool.h"
#include "base/clock.h"
#include "base/defect.h"

void cca_fence_set_aside(struct cca_heap *heap, struct cca_block *block, bool is_plain)
{
    if (CCA_DEFECT(what_is_set_aside_is_over)) {
        cca_fence_complete_block(heap, block, cca_clock_ns());
        return;
    }
    block->freed_seq = ++heap->frees;
    block->segment->aside_bytes += is_plain ? block->bytes : 0;
    cca_list_push_back(is_plain ? &heap->aside_plain : &heap->aside_ordered, &block->wait);
}

static void take_back(struct cca_block *block, bool is_plain)
{
    cca_list_remove(&block->wait);
    block->segment->aside_bytes -= is_plain ? block->bytes : 0;
}

static void complete_before(struct cca_heap *heap, bool is_plain, uint64_t mark)
{
    CCA_LIST_EACH (link, is_plain ? &heap->aside_plain : &heap->aside_ordered) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        if (block->freed_seq < mark) {
            take_back(block, is_plain);
            cca_fence_complete_block(heap, block, cca_clock_ns());
        }
    }
}

void cca_fence_complete_set_aside(struct cca_heap *heap, uint64_t mark)
{
    complete_before(heap, true, mark);
    complete_before(heap, false, mark);
}

static void append_all(struct cca_fence *fence, struct cca_list *blocks, bool is_plain)
{
    CCA_LIST_EACH (link, blocks) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        take_back(block, is_plain);
        cca_fence_append(fence, block);
    }
}

void cca_fence_mark_set_aside(struct cca_heap *heap)
{
    bool is_any = !cca_list_is_empty(&heap->aside_plain) ||
                  !cca_list_is_empty(&heap->aside_ordered);
    if (!is_any || !heap->device.has_context_events || cca_fence_is_blind(heap)) {
        return;
    }
    uint64_t generation = heap->generation;
    struct cca_list plain, ordered; /* what comes meanwhile is not covered */
    cca_list_init(&plain);
    cca_list_init(&ordered);
    cca_list_splice(&plain, &heap->aside_plain);
    cca_list_splice(&ordered, &heap->aside_ordered);
    struct cca_fence *fence = cca_fence_take(heap);
    enum cca_fence_record_result result = fence == NULL ? CCA_FENCE_NOT_POSSIBLE
                                                        : cca_fence_record(heap, fence, true);
    if (heap->generation != generation) {
        return;
    }
    if (result != CCA_FENCE_RECORDED) {
        cca_list_splice(&heap->aside_plain, &plain);
        cca_list_splice(&heap->aside_ordered, &ordered);
        if (fence != NULL) {
            cca_fence_give(heap, fence);
        }
        return;
    }
    append_all(fence, &plain, true);
    append_all(fence, &ordered, false);
    cca_fence_enqueue(heap, fence);
}

/* Whether nothing lies in the segment but READY blocks and plain ones that were set aside. */
static bool is_left_to_the_driver(const struct cca_segment *segment)
{
    size_t left = segment->bytes - segment->aside_bytes;
    for (const struct cca_block *block = segment->first; block != NULL; block = block->next) {
        if (block->state == CCA_BLOCK_FREE && block->key == CCA_KEY_READY) {
            left -= block->bytes;
        } else if (block->state != CCA_BLOCK_PENDING) {
            return false;
        }
    }
    return left == 0 && !cca_segment_is_expandable(segment) && !segment->is_passed;
}

/* Its pool keeps the addresses of those who retain it. */
static bool is_retained(const struct cca_segment *segment)
{
    return segment->pool != NULL && segment->pool->uses != 0;
}

/* The free ones join with what completes beside them, until one block is left. */
static void complete_segment(struct cca_heap *heap, struct cca_segment *segment, uint64_t now_ns)
{
    struct cca_block *block = segment->first;
    while (block != NULL) {
        if (block->state == CCA_BLOCK_PENDING) {
            take_back(block, true);
            block = cca_heap_complete_free(heap, block, CCA_KEY_READY, now_ns);
        }
        block = block->next;
    }
    CCA_ASSERT(segment->aside_bytes == 0 && cca_block_is_whole(segment->first));
}

void cca_fence_detach_set_aside(struct cca_heap *heap, uint64_t now_ns, struct cca_detached *out)
{
    struct cca_list *link = heap->aside_plain.next;
    while (link != &heap->aside_plain) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        struct cca_segment *segment = block->segment;
        link = link->next;
        /* Once a segment: at the block that begins it, or that follows its one free block. */
        bool is_first = block == segment->first ||
                        (block->prev == segment->first && block->prev->state == CCA_BLOCK_FREE);
        if (!is_first || is_retained(segment) || !is_left_to_the_driver(segment)) {
            continue;
        }
        while (link != &heap->aside_plain &&
               CCA_LIST_ENTRY(link, struct cca_block, wait)->segment == segment) {
            link = link->next;
        }
        complete_segment(heap, segment, now_ns);
        cca_heap_detach_segment(heap, segment, now_ns, out);
    }
}

void cca_fence_drop_set_aside(struct cca_heap *heap)
{
    struct cca_list *lists[2] = {&heap->aside_plain, &heap->aside_ordered};
    for (int i = 0; i < 2; i++) {
        CCA_LIST_EACH (link, lists[i]) {
            cca_list_remove(link);
        }
    }
    heap->aside_left_bytes = 0;
}
