/* SPDX-License-Identifier: MIT */
/* What fences and the program's own waits prove of memory that streams hold. */
#include "alloc/fence.h"

#include "alloc/allocator_internal.h"
#include "alloc/fence_marks.h"
#include "alloc/fence_parts.h"
#include "base/clock.h"
#include "base/defect.h"

bool cca_fence_is_blind(const struct cca_heap *heap)
{
    return atomic_load(&heap->allocator->blind) != 0;
}

bool cca_fence_is_alone(const struct cca_heap *heap)
{
    bool is_only = atomic_load(&heap->allocator->up_mask) == 1ull << heap->slot;
    return (is_only && !cca_fence_is_blind(heap)) || CCA_DEFECT(a_wait_covers_other_contexts);
}

void cca_fence_synchronized(struct cca_heap *heap, cca_key key, uint64_t mark)
{
    /* A wait for one context says nothing of blocks freed in the order of another one's streams. */
    if (key == CCA_KEY_READY && !cca_fence_is_alone(heap)) {
        return;
    }
    if (heap->rekeys) {
        cca_heap_rekey(heap, CCA_DEFECT(a_stream_stands_for_all) ? CCA_KEY_READY : key, mark,
                       cca_clock_ns());
    }
    if (!heap->device.has_context_events && key == CCA_KEY_READY) {
        cca_fence_complete_set_aside(heap, mark);
    }
}

/* A closed fence with a rekey order, recorded and queued. NULL when that is not possible now, or
 * the heap was dropped meanwhile. */
static struct cca_fence *queue_rekey(struct cca_heap *heap, cca_key key)
{
    uint64_t generation = heap->generation, before = heap->frees + 1;
    struct cca_fence *fence = cca_fence_take(heap);
    if (fence == NULL) {
        return NULL;
    }
    enum cca_fence_record_result result = cca_fence_record(heap, fence, true);
    if (heap->generation != generation) {
        return NULL;
    }
    if (result != CCA_FENCE_RECORDED) {
        cca_fence_give(heap, fence);
        return NULL;
    }
    fence->rekeys = heap->rekeys;
    fence->rekey_key = key;
    fence->rekey_before = before;
    cca_fence_enqueue(heap, fence);
    return fence;
}

void cca_fence_rekey(struct cca_heap *heap, cca_key key)
{
    if (heap->captures > 0) {
        return; /* the blocks keep their key; the next reclaim covers them */
    }
    if (CCA_DEFECT(a_rekey_does_not_wait)) {
        cca_heap_rekey(heap, key, heap->frees + 1, cca_clock_ns());
    } else if (heap->device.has_context_events) {
        (void)queue_rekey(heap, key);
    } /* else a stream's blocks wait for the next free or call that waits for the context */
}

static bool streams_hold_free_blocks(const struct cca_heap *heap)
{
    for (int small = 0; small < 2; small++) {
        const struct cca_block *first = cca_block_pool_first(&heap->pools[small]);
        if (first != NULL && first->key != CCA_KEY_READY) { /* READY sorts last */
            return true;
        }
    }
    return false;
}

bool cca_fence_reclaim(struct cca_heap *heap)
{
    if (!heap->rekeys || heap->is_reclaiming || heap->captures > 0 ||
        !heap->device.has_context_events || !streams_hold_free_blocks(heap)) {
        return false;
    }
    uint64_t generation = heap->generation;
    heap->is_reclaiming = true;
    bool is_queued = queue_rekey(heap, CCA_KEY_READY) != NULL;
    if (heap->generation != generation) {
        return false;
    }
    heap->is_reclaiming = is_queued;
    if (is_queued) {
        cca_fence_poll(heap, CCA_FENCE_ALL);
    }
    return is_queued && heap->generation == generation && !heap->is_reclaiming;
}

struct cca_proof cca_fence_prove(struct cca_heap *heap)
{
    struct cca_proof proof = {.before_seq = heap->frees + 1};
    if (heap->captures == 0 && heap->device.has_context_events) {
        struct cca_fence *fence = queue_rekey(heap, CCA_KEY_READY);
        proof.id = fence == NULL ? 0 : fence->id;
    }
    return proof;
}

bool cca_fence_is_proven(const struct cca_heap *heap, const struct cca_proof *proof)
{
    if (proof->id == 0) {
        return false;
    }
    return cca_list_is_empty(&heap->fences) || CCA_DEFECT(memory_goes_back_unproven) ||
           CCA_LIST_ENTRY(heap->fences.next, struct cca_fence, link)->id > proof->id;
}
