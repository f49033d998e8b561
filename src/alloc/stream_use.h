/* SPDX-License-Identifier: MIT */
/* Uses of a block on other streams than its own, told by the program (record_stream). A block freed
 * in stream order stays PENDING until an event recorded in the free on each of those streams is
 * done. Events wait in a queue per stream, so that one slow stream does not hold up the others.
 *
 * All functions are called with the heap lock held; those that make device calls drop it for them,
 * and the caller re-checks heap->generation. */
#ifndef CCA_ALLOC_STREAM_USE_H
#define CCA_ALLOC_STREAM_USE_H

#include <stdbool.h>

#include "alloc/heap.h"
#include "base/check.h"
#include "device/device.h"

/* One event that a PENDING block waits for. */
struct cca_use_event {
    struct cca_list link; /* in its queue, or in heap->idle_use_events */
    cca_device_event event;
    struct cca_block *block;
    cca_key key; /* of the block once it is free */
};

struct cca_use_queue {
    struct cca_list link;   /* in heap->use_queues, ascending by stream */
    struct cca_list events; /* in the order of recording */
    cca_key stream;
};

/* The LIVE block is used on `stream`, by work that becomes part of a graph or not. Its own stream
 * and repetitions change nothing. Without memory to note it the block counts as used everywhere. */
void cca_stream_use_record(struct cca_heap *heap, struct cca_block *block, cca_key stream,
                           bool in_capture);

/* It may be used on any stream. */
void cca_stream_use_record_all(struct cca_heap *heap, struct cca_block *block);

/* Takes the uses off a LIVE block; NULL when there are none. They go to defer or drop. */
static inline struct cca_stream_use *cca_stream_use_detach(struct cca_block *block)
{
    CCA_ASSERT(block->state == CCA_BLOCK_LIVE);
    struct cca_stream_use *uses = block->uses;
    block->uses = NULL;
    return uses;
}

void cca_stream_use_drop(struct cca_heap *heap, struct cca_stream_use *uses);

/* A PENDING block that had these uses was freed on stream `key`: records an event on each other
 * stream. False when there is none, so that the free may complete at once. Where an event cannot be
 * recorded, a fence over everything takes the block. */
bool cca_stream_use_defer(struct cca_heap *heap, struct cca_block *block,
                          struct cca_stream_use *uses, cca_key key) CCA_MUST_CHECK;

/* The same while a capture is open: puts the free off to its end, or until work captured on the
 * block's own stream is known to come after all uses (capture.h). `uses` is not NULL. */
struct cca_free_markers;
void cca_stream_use_put_off(struct cca_heap *heap, struct cca_block *block,
                            struct cca_stream_use *uses, cca_key key,
                            struct cca_free_markers *markers);

/* A block whose free was put off is that no longer, and has no uses any more. */
void cca_stream_use_take_back(struct cca_heap *heap, struct cca_block *block);

/* The capture of this pool is over, others may be open: its blocks that were used by captured work
 * alone are free. */
void cca_stream_use_capture_ends(struct cca_heap *heap, const struct cca_private_pool *pool);

/* No capture is open any more: the frees that were put off go on. Uses of a private pool's blocks
 * that were recorded only inside a capture are over with it, as those streams have joined it. */
void cca_stream_use_captures_over(struct cca_heap *heap);

/* Completes the frees whose events are done: streams in ascending order, each from the front of its
 * queue up to the first event that is not done. Never waits. */
void cca_stream_use_poll(struct cca_heap *heap);

/* No event is waited for. */
bool cca_stream_use_is_idle(const struct cca_heap *heap);

/* Forgets all events (the context is gone). */
void cca_stream_use_drop_all(struct cca_heap *heap);

#endif
