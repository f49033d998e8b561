/* SPDX-License-Identifier: MIT */
/* Graph captures that the caller has told of (a pool's scope of that kind): which streams take
 * part, and which memory freed inside may be used again before the capture has ended.
 *
 * Whatever is captured next on a stream depends on the stream's terminals, the nodes that it last
 * captured or waited for. A free marks its block with the terminals, at that moment, of every
 * stream that used it. Once all of these nodes lie behind a stream's present terminals, that
 * stream's next work comes after every use, whatever order the graph is later run in: it may have
 * the block. The nodes behind a stream's terminals are kept and only added to, so that a capture of
 * many nodes is walked once. Only with CCA_GRAPH_CAPTURE_REUSE.
 *
 * All functions are called with the heap lock held; those that ask the device drop it meanwhile,
 * and the caller re-checks heap->generation. */
#ifndef CCA_ALLOC_CAPTURE_H
#define CCA_ALLOC_CAPTURE_H

#include <stdbool.h>

#include "alloc/heap.h"
#include "device/device.h"

/* Terminals at the time of a free. More than fit: the block waits for the end of the capture. */
struct cca_free_markers {
    uint64_t capture;
    size_t count;
    uint64_t nodes[CCA_TERMINALS_MAX];
};

void cca_captures_init(struct cca_heap *heap);
void cca_captures_fini(struct cca_heap *heap);

/* Before a request is served while a capture is open: learns which capture its stream takes part
 * in, and completes the frees that its stream may use now. */
void cca_capture_look(struct cca_heap *heap, struct cca_request *request);

/* Whether work submitted to the stream now becomes part of a capture; true where it is not told. */
bool cca_capture_takes_part(struct cca_heap *heap, cca_key stream);

/* The markers of a PENDING block that had these uses, or NULL: it waits for the capture's end. */
struct cca_free_markers *cca_capture_mark(struct cca_heap *heap, const struct cca_block *block,
                                          const struct cca_stream_use *uses);
void cca_capture_unmark(struct cca_heap *heap, struct cca_free_markers *markers);

/* A capture is over, its id may be 0 where it was never learned: what was kept for it is dropped.
 */
void cca_capture_ends(struct cca_heap *heap, uint64_t capture);

#endif
