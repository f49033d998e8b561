/* SPDX-License-Identifier: MIT */
/* The marks of a fence: one event a context, recorded and asked. Called with the heap lock held,
 * which is dropped for the device calls; `recorders` keeps the fence meanwhile. */
#ifndef CCA_ALLOC_FENCE_MARKS_H
#define CCA_ALLOC_FENCE_MARKS_H

#include "alloc/fence.h"

enum cca_fence_record_result {
    CCA_FENCE_RECORDED,
    CCA_FENCE_NOT_POSSIBLE,  /* a capture, or a failed call: nothing is proven by this fence */
    CCA_FENCE_CONTEXT_FAILED /* the heap is dead now */
};

/* Marks this moment on every context that is up. Marks made before a failure stay: they only delay.
 * `may_create`: this thread opens the fence, and may make the events that it lacks. */
enum cca_fence_record_result cca_fence_record(struct cca_heap *heap, struct cca_fence *fence,
                                              bool may_create);

/* Asks the device about the marks that are left. True when none is left. The caller holds the fence
 * by `recorders`. */
bool cca_fence_query(struct cca_heap *heap, struct cca_fence *fence);

/* Whether the fence has an event for that context that has not died with an earlier one. */
bool cca_fence_has_event(const struct cca_fence *fence, int slot, uint64_t generation);

#endif
