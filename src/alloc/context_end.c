/* SPDX-License-Identifier: MIT */
#include "alloc/context_end.h"

#include "alloc/allocator_internal.h"
#include "alloc/expandable.h"
#include "alloc/fence.h"
#include "alloc/fence_parts.h"
#include "alloc/stream_use.h"
#include "base/clock.h"
#include "base/defect.h"

#define DETACH_WAIT_NS (2000ull * 1000 * 1000)

/* Nothing is served or asked any more; heap lock held. */
static void close_down(struct cca_heap *heap)
{
    atomic_fetch_and(&heap->allocator->up_mask, ~(1ull << heap->slot));
    heap->state = CCA_HEAP_DOWN;
    atomic_store(&heap->context, 0);
}

void cca_context_end_forget(struct cca_heap *heap)
{
    close_down(heap);
    if (!CCA_DEFECT(memory_outlives_its_context)) {
        cca_heap_drop(heap, cca_clock_ns());
    }
}

/* Calls of other threads that are inside the context's driver functions end before it goes. They
 * are short; one that is not (a free behind endless work) does not hold the program up for ever. */
static void wait_for_device_calls(struct cca_heap *heap)
{
    uint64_t deadline_ns = cca_clock_ns() + DETACH_WAIT_NS;
    while (atomic_load(&heap->device_calls) != 0 && cca_clock_ns() < deadline_ns) {
        cca_clock_sleep_us(20);
    }
}

/* All work submitted so far is seen to be over, within the time allowed; heap lock held. */
static bool is_over_soon(struct cca_heap *heap)
{
    uint64_t generation = heap->generation, pause_us = 0;
    uint64_t deadline_ns = cca_clock_ns() + DETACH_WAIT_NS;
    struct cca_proof proof = cca_fence_prove(heap);
    while (proof.id != 0 && heap->generation == generation && heap->state == CCA_HEAP_UP) {
        cca_fence_poll(heap, CCA_FENCE_ALL);
        if (heap->generation != generation || cca_fence_is_proven(heap, &proof) ||
            cca_clock_ns() >= deadline_ns) {
            break;
        }
        cca_fence_pause(heap, &pause_us);
    }
    return heap->generation == generation && cca_fence_is_proven(heap, &proof);
}

/* Mapped memory belongs to the process, so a reset of the context alone would not give it back. It
 * goes where that can be done in time; in front of work without end it stays. The allocator's lock
 * is held. */
static void abandon_mapped(struct cca_heap *heap)
{
    cca_lock_take(&heap->lock);
    bool is_idle = heap->state == CCA_HEAP_UP && heap->expandables != 0 && is_over_soon(heap);
    if (is_idle) {
        close_down(heap);
        atomic_fetch_add(&heap->generation, 1);
    }
    cca_lock_drop(&heap->lock);
    if (is_idle) {
        wait_for_device_calls(heap);
        cca_expandable_abandon(heap);
    }
}

/* The allocator's lock is held. */
static void forget(struct cca_heap *heap)
{
    abandon_mapped(heap);
    cca_lock_take(&heap->lock);
    if (heap->state != CCA_HEAP_DOWN || heap->expandables != 0) {
        cca_context_end_forget(heap);
    }
    cca_lock_drop(&heap->lock);
}

void cca_allocator_detach(struct cca_allocator *allocator, int ordinal)
{
    if (ordinal < 0 || ordinal >= CCA_DEVICES_MAX) {
        return;
    }
    cca_lock_take(&allocator->lock);
    struct cca_heap *heap = atomic_load(&allocator->heaps[ordinal]);
    heap = heap != NULL && heap->accounts == heap ? heap : NULL;
    if (heap != NULL) {
        forget(heap);
    }
    cca_lock_drop(&allocator->lock);
    if (heap != NULL) {
        wait_for_device_calls(heap);
    }
}

/* Whether the addresses of the heap are ours. Both locks are held. */
static void show(struct cca_heap *heap, bool is_shown)
{
    struct cca_allocator *allocator = heap->allocator;
    CCA_LIST_EACH (link, &heap->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        if (!segment->is_passed) {
            (is_shown ? cca_segment_map_insert : cca_segment_map_remove)(&allocator->segments,
                                                                         segment);
        }
    }
    if (is_shown) {
        atomic_fetch_or(&allocator->heap_mask, 1ull << heap->slot);
    } else {
        atomic_fetch_and(&allocator->heap_mask, ~(1ull << heap->slot));
    }
    heap->is_withdrawn = !is_shown;
}

struct cca_heap *cca_allocator_withdraw(struct cca_allocator *allocator, uint64_t context)
{
    cca_lock_take(&allocator->lock);
    struct cca_heap *heap = context != 0 ? cca_allocator_heap(allocator, context) : NULL;
    if (heap != NULL) {
        abandon_mapped(heap);
        cca_lock_take(&heap->lock);
        if (heap->expandables != 0) {
            cca_context_end_forget(heap);
        } else {
            close_down(heap);
            atomic_fetch_add(&heap->generation, 1); /* what is under way elsewhere is over */
        }
        show(heap, false);
        cca_lock_drop(&heap->lock);
    }
    cca_lock_drop(&allocator->lock);
    if (heap != NULL) {
        wait_for_device_calls(heap);
    }
    return heap;
}

/* The context lives on. What waited for it waits anew, since threads that were about to look have
 * given up. Heap lock held. */
static void take_back(struct cca_heap *heap, uint64_t context)
{
    cca_fence_drop_all(heap);
    cca_stream_use_drop_all(heap);
    CCA_LIST_EACH (link, &heap->segments) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_segment, link)->first;
        for (; block != NULL; block = block->next) {
            if (block->state == CCA_BLOCK_PENDING) {
                cca_fence_set_aside(heap, block, false);
            }
        }
    }
    heap->state = CCA_HEAP_UP;
    atomic_store(&heap->context, context);
    atomic_fetch_or(&heap->allocator->up_mask, 1ull << heap->slot);
}

bool cca_allocator_withdrawn(struct cca_allocator *allocator, struct cca_heap *heap,
                             uint64_t context, bool is_gone)
{
    cca_lock_take(&allocator->lock);
    cca_lock_take(&heap->lock);
    if (is_gone) {
        cca_context_end_forget(heap);
    } else {
        take_back(heap, context);
    }
    show(heap, true);
    cca_lock_drop(&heap->lock);
    cca_lock_drop(&allocator->lock);
    return is_gone && atomic_load(&heap->device_calls) == 0;
}
