/* SPDX-License-Identifier: MIT */
#include "alloc/fence.h"

#include "alloc/allocator_internal.h"
#include "alloc/fence_marks.h"
#include "alloc/fence_parts.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/defect.h"

enum { FENCE_BLOCKS_MAX = 64 };
#define FENCE_BYTES_MAX ((size_t)64 << 20)

void cca_fence_report(struct cca_heap *heap, enum cca_event_kind kind, uint64_t duration_ns)
{
    struct cca_event event = {.kind = kind, .time_ns = cca_clock_ns(), .duration_ns = duration_ns};
    cca_heap_report(heap, &event);
}

struct cca_fence *cca_fence_take(struct cca_heap *heap)
{
    struct cca_fence *fence = heap->idle_fences;
    if (fence != NULL) {
        heap->idle_fences = fence->next_idle;
    } else {
        fence = cca_pool_take(&heap->fence_records);
        if (fence == NULL) {
            return NULL;
        }
        cca_list_init(&fence->blocks);
    }
    cca_fence_report(heap, CCA_EVENT_FENCE, 0);
    return fence;
}

void cca_fence_give(struct cca_heap *heap, struct cca_fence *fence)
{
    CCA_ASSERT(cca_list_is_empty(&fence->blocks) && fence->recorders == 0);
    if (cca_list_is_linked(&fence->link)) {
        cca_list_remove(&fence->link);
    }
    fence->block_count = fence->bytes = 0;
    fence->marks = 0;
    fence->rekeys = false;
    fence->next_idle = heap->idle_fences;
    heap->idle_fences = fence;
}

void cca_fence_enqueue(struct cca_heap *heap, struct cca_fence *fence)
{
    fence->id = ++heap->last_fence_id;
    cca_list_push_back(&heap->fences, &fence->link);
}

void cca_fence_complete_block(struct cca_heap *heap, struct cca_block *block, uint64_t now_ns)
{
    cca_heap_complete_free(heap, block, heap->rekeys ? CCA_KEY_READY : block->key, now_ns);
}

void cca_fence_complete(struct cca_heap *heap, struct cca_fence *fence)
{
    uint64_t now_ns = cca_clock_ns();
    CCA_LIST_EACH (link, &fence->blocks) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        cca_list_remove(&block->wait);
        cca_fence_complete_block(heap, block, now_ns);
    }
    if (fence->rekeys) {
        cca_heap_rekey(heap, fence->rekey_key, fence->rekey_before, now_ns);
        heap->is_reclaiming &= fence->rekey_key != CCA_KEY_READY;
    }
    cca_fence_give(heap, fence);
}

void cca_fence_append(struct cca_fence *fence, struct cca_block *block)
{
    cca_list_push_back(&fence->blocks, &block->wait);
    fence->block_count++;
    fence->bytes += block->bytes;
}

/* Whether the fence can be recorded again without creating events. */
static bool can_join(const struct cca_heap *heap, const struct cca_fence *fence)
{
    uint64_t todo = atomic_load(&heap->allocator->up_mask);
    for (; todo != 0; todo &= todo - 1) {
        int slot = __builtin_ctzll(todo);
        const struct cca_heap *other = atomic_load(&heap->allocator->heaps[slot]);
        if (!cca_fence_has_event(fence, slot, atomic_load(&other->generation))) {
            return false;
        }
    }
    return true;
}

/* Joins the open fence, or opens one. A new fence is offered to others only after its first record.
 */
static void join(struct cca_heap *heap, struct cca_block *block, bool is_plain)
{
    uint64_t generation = heap->generation;
    struct cca_fence *fence = heap->open_fence;
    bool is_new = fence == NULL || !can_join(heap, fence);
    if (is_new) {
        fence = cca_fence_take(heap);
    } else {
        cca_fence_report(heap, CCA_EVENT_FENCE_JOIN, 0);
    }
    enum cca_fence_record_result result = CCA_FENCE_NOT_POSSIBLE;
    if (fence != NULL) {
        result = CCA_DEFECT(frees_join_unrecorded) && !is_new
                     ? CCA_FENCE_RECORDED
                     : cca_fence_record(heap, fence, is_new);
    }
    if (heap->generation != generation) {
        return;
    }
    if (result != CCA_FENCE_RECORDED) {
        if (is_new && fence != NULL) {
            cca_fence_give(heap, fence);
        }
        cca_fence_set_aside(heap, block, is_plain);
        return;
    }
    cca_fence_append(fence, block);
    if (is_new) {
        cca_fence_enqueue(heap, fence);
        heap->open_fence = fence;
    }
    if (heap->open_fence == fence &&
        (fence->block_count >= FENCE_BLOCKS_MAX || fence->bytes >= FENCE_BYTES_MAX)) {
        heap->open_fence = NULL;
    }
}

void cca_fence_block(struct cca_heap *heap, struct cca_block *block, enum cca_fence_wait wait)
{
    bool is_plain = wait != CCA_FENCE_ORDERED;
    if (heap->captures > 0) {
        cca_fence_set_aside(heap, block, is_plain);
    } else if (CCA_DEFECT(no_fence)) {
        cca_heap_complete_free(heap, block, CCA_KEY_READY, cca_clock_ns());
    } else if (wait == CCA_FENCE_WAITS) {
        (heap->device.has_context_events ? cca_fence_wait_for_block
                                         : cca_fence_wait_for_context)(heap, block);
    } else if (heap->device.has_context_events && !cca_fence_is_blind(heap)) {
        join(heap, block, is_plain);
    } else {
        cca_fence_set_aside(heap, block, is_plain);
    }
}

bool cca_fence_may_query(const struct cca_heap *heap)
{
    return heap->state == CCA_HEAP_UP && heap->captures == 0 &&
           (heap->queries_beside_capture != 0 || !cca_gate_is_closed(&heap->allocator->gate));
}

void cca_fence_poll(struct cca_heap *heap, int max)
{
    if (heap->is_polling || !cca_fence_may_query(heap)) {
        return;
    }
    uint64_t generation = heap->generation;
    heap->is_polling = true;
    cca_fence_mark_set_aside(heap);
    while (heap->generation == generation && max-- > 0 && !cca_list_is_empty(&heap->fences)) {
        struct cca_fence *fence = CCA_LIST_ENTRY(heap->fences.next, struct cca_fence, link);
        if (fence->recorders != 0) {
            break; /* being recorded: it may not be closed now */
        }
        if (fence == heap->open_fence) {
            heap->open_fence = NULL;
        }
        fence->recorders++;
        bool is_over = cca_fence_query(heap, fence);
        if (heap->generation != generation) {
            return;
        }
        fence->recorders--;
        if (!is_over) {
            break;
        }
        cca_fence_complete(heap, fence);
    }
    if (heap->generation == generation) {
        heap->is_polling = false;
    }
}

void cca_fence_drop_all(struct cca_heap *heap)
{
    CCA_LIST_EACH (link, &heap->fences) {
        struct cca_fence *fence = CCA_LIST_ENTRY(link, struct cca_fence, link);
        CCA_LIST_EACH (block_link, &fence->blocks) {
            cca_list_remove(block_link);
        }
        cca_list_remove(&fence->link);
        /* A thread may still be inside a device call with this fence: its record is not used again.
         */
        if (fence->recorders == 0) {
            cca_fence_give(heap, fence);
        }
    }
    cca_fence_drop_set_aside(heap);
    heap->open_fence = NULL;
    heap->is_polling = heap->is_reclaiming = false;
}
