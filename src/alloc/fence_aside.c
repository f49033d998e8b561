/* SPDX-License-Identifier: MIT */
/* Frees whose work could not be marked at the time. */
#include "alloc/fence_parts.h"

#include "alloc/fence_marks.h"
#include "base/clock.h"

void cca_fence_set_aside(struct cca_heap *heap, struct cca_block *block)
{
    block->freed_seq = ++heap->frees;
    cca_list_push_back(&heap->unfenced, &block->wait);
}

void cca_fence_complete_set_aside(struct cca_heap *heap, uint64_t mark)
{
    CCA_LIST_EACH (link, &heap->unfenced) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        if (block->freed_seq < mark) {
            cca_list_remove(&block->wait);
            cca_fence_complete_block(heap, block, cca_clock_ns());
        }
    }
}

void cca_fence_mark_set_aside(struct cca_heap *heap)
{
    if (cca_list_is_empty(&heap->unfenced) || !heap->device.has_context_events) {
        return;
    }
    uint64_t generation = heap->generation;
    struct cca_list blocks;
    cca_list_init(&blocks);
    cca_list_splice(&blocks, &heap->unfenced);
    struct cca_fence *fence = cca_fence_take(heap);
    enum cca_fence_record_result result = fence == NULL ? CCA_FENCE_NOT_POSSIBLE
                                                        : cca_fence_record(heap, fence, true);
    if (heap->generation != generation) {
        return;
    }
    if (result != CCA_FENCE_RECORDED) {
        cca_list_splice(&heap->unfenced, &blocks);
        if (fence != NULL) {
            cca_fence_give(heap, fence);
        }
        return;
    }
    CCA_LIST_EACH (link, &blocks) {
        cca_list_remove(link);
        cca_fence_append(fence, CCA_LIST_ENTRY(link, struct cca_block, wait));
    }
    cca_fence_enqueue(heap, fence);
}
