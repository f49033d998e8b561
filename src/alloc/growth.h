/* SPDX-License-Identifier: MIT */
/* New memory from the driver. Called with the heap lock held, which is dropped for the device
 * calls; the heap may have been dropped meanwhile (CCA_UNSUPPORTED then). */
#ifndef CCA_ALLOC_GROWTH_H
#define CCA_ALLOC_GROWTH_H

#include "alloc/heap.h"
#include "device/device.h"

/* Whether so much more would exceed the limit of the device. */
bool cca_growth_is_over_limit(struct cca_heap *heap, size_t bytes);

/* A segment grows where settings and device allow it, else there is a new one; the block is LIVE.
 * CCA_NO_MEMORY also when the limit forbids it. */
struct cca_status cca_growth_usual(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded, struct cca_block **block_out);

/* The last rung: a segment for this request alone. Where the last megabytes of a device are wanted
 * a segment of the usual size may not fit although the request does, and natively it would be
 * served. PyTorch fails here, and so does the core in stream order. */
struct cca_status cca_growth_exact(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded, struct cca_block **block_out);

#endif
