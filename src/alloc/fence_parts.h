/* SPDX-License-Identifier: MIT */
/* What the files of the fences share: fence.c (their life, joining and polling), fence_wait.c,
 * fence_aside.c, fence_proof.c. Called with the heap lock held. */
#ifndef CCA_ALLOC_FENCE_PARTS_H
#define CCA_ALLOC_FENCE_PARTS_H

#include "alloc/fence.h"

void cca_fence_report(struct cca_heap *heap, enum cca_event_kind kind, uint64_t duration_ns);

/* A fence without blocks and marks, of no queue; NULL when memory is refused. And back. */
struct cca_fence *cca_fence_take(struct cca_heap *heap);
void cca_fence_give(struct cca_heap *heap, struct cca_fence *fence);

void cca_fence_enqueue(struct cca_heap *heap, struct cca_fence *fence);
void cca_fence_append(struct cca_fence *fence, struct cca_block *block);

/* The block is READY; in a core driven in stream order it stays its stream's, or its neighbours
 * could never join it again. */
void cca_fence_complete_block(struct cca_heap *heap, struct cca_block *block, uint64_t now_ns);

/* All work before the fence is over: its blocks are READY, its rekey order is carried out. */
void cca_fence_complete(struct cca_heap *heap, struct cca_fence *fence);

/* A free that waits for all work of its context: with context events, and without. */
void cca_fence_wait_for_block(struct cca_heap *heap, struct cca_block *block);
void cca_fence_wait_for_context(struct cca_heap *heap, struct cca_block *block);

/* Sets a block aside whose work cannot be marked now; its place in the order of frees tells which
 * wait will prove it. `is_plain`: the program's call waits natively. */
void cca_fence_set_aside(struct cca_heap *heap, struct cca_block *block, bool is_plain);

/* They are forgotten with their context. */
void cca_fence_drop_set_aside(struct cca_heap *heap);

/* Completes the blocks set aside before `mark`. Only where work of other contexts cannot matter. */
void cca_fence_complete_set_aside(struct cca_heap *heap, uint64_t mark);

/* Frees whose record was not possible at the time get their fence now, if it is possible by now. */
void cca_fence_mark_set_aside(struct cca_heap *heap);

/* Whether contexts may be up that no fence covers. */
bool cca_fence_is_blind(const struct cca_heap *heap);

/* Whether no other context is up, whose streams may use memory of this heap. */
bool cca_fence_is_alone(const struct cca_heap *heap);

#endif
