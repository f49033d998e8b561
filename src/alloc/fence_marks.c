/* SPDX-License-Identifier: MIT */
#include "alloc/fence_marks.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "base/defect.h"

bool cca_fence_has_event(const struct cca_fence *fence, int slot, uint64_t generation)
{
    return fence->events[slot].event != 0 && fence->events[slot].generation == generation;
}

/* Records one context's event of the fence. No lock held. Only the thread that opens a fence may
 * create events: two that did so at once would each record an event the other does not see. */
static enum cca_fence_record_result record_on(struct cca_heap *other, struct cca_fence *fence,
                                              int slot, bool may_create)
{
    if (!cca_device_call_begin(other)) {
        return CCA_FENCE_CONTEXT_FAILED;
    }
    uint64_t generation = atomic_load(&other->generation);
    struct cca_device *device = &other->device;
    struct cca_status status = cca_status_ok();
    if (!cca_fence_has_event(fence, slot, generation)) {
        cca_device_event event = 0;
        status = (struct cca_status){CCA_UNSUPPORTED, 0};
        if (may_create) {
            status = device->ops->event_create(device->self, &event);
        }
        if (status.kind == CCA_OK) {
            fence->events[slot].event = event;
            fence->events[slot].generation = generation;
        }
    }
    if (status.kind == CCA_OK) {
        status = device->ops->event_record(device->self, fence->events[slot].event);
    }
    cca_device_call_end(other);
    return status.kind == CCA_OK      ? CCA_FENCE_RECORDED
           : status.kind == CCA_FATAL ? CCA_FENCE_CONTEXT_FAILED
                                      : CCA_FENCE_NOT_POSSIBLE;
}

/* The same on every context that is up. A context that has failed runs nothing any more, so there
 * is nothing to wait for there; but the heap's own one must be recorded. */
static enum cca_fence_record_result record_on_all(struct cca_heap *heap, struct cca_fence *fence,
                                                  bool may_create, uint64_t *marks_out)
{
    struct cca_allocator *allocator = heap->allocator;
    uint64_t todo = CCA_DEFECT(other_contexts_are_not_marked) ? 1ull << heap->slot
                                                              : atomic_load(&allocator->up_mask);
    enum cca_fence_record_result result = CCA_FENCE_RECORDED;
    for (; todo != 0 && result == CCA_FENCE_RECORDED; todo &= todo - 1) {
        int slot = __builtin_ctzll(todo);
        struct cca_heap *other = atomic_load(&allocator->heaps[slot]);
        enum cca_fence_record_result one = record_on(other, fence, slot, may_create);
        if (one == CCA_FENCE_RECORDED) {
            *marks_out |= 1ull << slot;
        } else if (one == CCA_FENCE_NOT_POSSIBLE || other == heap) {
            result = one;
        }
    }
    return result;
}

enum cca_fence_record_result cca_fence_record(struct cca_heap *heap, struct cca_fence *fence,
                                              bool may_create)
{
    uint64_t generation = heap->generation, marks = 0;
    enum cca_fence_record_result result = CCA_FENCE_NOT_POSSIBLE;
    fence->recorders++;
    cca_lock_drop(&heap->lock);
    if (cca_gate_enter(&heap->allocator->gate)) {
        result = record_on_all(heap, fence, may_create, &marks);
        cca_gate_leave(&heap->allocator->gate);
    }
    cca_lock_take(&heap->lock);
    fence->recorders--;
    fence->marks |= marks;
    if (result == CCA_FENCE_CONTEXT_FAILED && heap->generation == generation) {
        heap->state = CCA_HEAP_DEAD;
    }
    return result;
}

/* Whether the work before the fence's mark on one context is over. No lock held. */
static bool mark_is_over(struct cca_heap *other, struct cca_fence *fence, int slot,
                         bool *has_failed)
{
    if (!cca_device_call_begin(other)) {
        return true; /* the context is gone, and its work with it */
    }
    struct cca_status status = cca_status_ok();
    if (cca_fence_has_event(fence, slot, atomic_load(&other->generation))) {
        status = other->device.ops->event_query(other->device.self, fence->events[slot].event);
    }
    cca_device_call_end(other);
    *has_failed = status.kind == CCA_FATAL;
    return status.kind == CCA_OK || status.kind == CCA_FATAL ||
           CCA_DEFECT(what_is_not_ready_is_over);
}

bool cca_fence_query(struct cca_heap *heap, struct cca_fence *fence)
{
    struct cca_allocator *allocator = heap->allocator;
    uint64_t generation = heap->generation, left = fence->marks;
    bool own_failed = false, is_over = true;
    cca_lock_drop(&heap->lock);
    /* One open mark decides; the others are asked when it is done. */
    for (uint64_t todo = left; todo != 0 && is_over; todo &= todo - 1) {
        int slot = __builtin_ctzll(todo);
        struct cca_heap *other = atomic_load(&allocator->heaps[slot]);
        bool has_failed = false;
        is_over = mark_is_over(other, fence, slot, &has_failed);
        left &= is_over ? ~(1ull << slot) : UINT64_MAX;
        own_failed |= has_failed && other == heap;
        if (CCA_DEFECT(the_first_mark_is_enough) && is_over) {
            left = 0;
        }
    }
    cca_lock_take(&heap->lock);
    fence->marks &= left;
    if (own_failed && heap->generation == generation) {
        heap->state = CCA_HEAP_DEAD;
    }
    return fence->marks == 0;
}
