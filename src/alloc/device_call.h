/* SPDX-License-Identifier: MIT */
/* Calls into a device's context, made with no lock held. They are counted, so that the context is
 * not taken down under one of them, and the thread steps outside the library meanwhile: a signal
 * handler that interrupts a wait there may allocate, free and exit as it natively could. */
#ifndef CCA_ALLOC_DEVICE_CALL_H
#define CCA_ALLOC_DEVICE_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "alloc/allocator_internal.h"
#include "base/reentry.h"

/* False when the context is not up (any more): no call may be made. Every event of a generation
 * that is read after true belongs to a living context until cca_device_call_end. */
static inline bool cca_device_call_begin(struct cca_heap *heap)
{
    atomic_fetch_add(&heap->device_calls, 1);
    if ((atomic_load(&heap->allocator->up_mask) >> heap->slot & 1) != 0) {
        return true;
    }
    atomic_fetch_sub(&heap->device_calls, 1);
    return false;
}

static inline void cca_device_call_end(struct cca_heap *heap)
{
    atomic_fetch_sub(&heap->device_calls, 1);
}

/* Around a wait with the heap lock given up; nothing of the heap may be used in between. */
static inline int cca_heap_step_out(struct cca_heap *heap)
{
    cca_lock_drop(&heap->lock);
    return cca_reentry_suspend();
}

static inline void cca_heap_step_in(struct cca_heap *heap, int depth)
{
    cca_reentry_resume(depth);
    cca_lock_take(&heap->lock);
}

#endif
