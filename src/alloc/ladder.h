/* SPDX-License-Identifier: MIT */
/* What happens when the cache has no block, rung by rung: what streams hold, collection, driver
 * memory (growth.h), release (collect.h, release.h) after some waiting, and at last the
 * out-of-memory result. Device calls are made with the heap lock dropped. */
#ifndef CCA_ALLOC_LADDER_H
#define CCA_ALLOC_LADDER_H

#include "alloc/heap.h"
#include "device/device.h"

/* Climbs until there is a LIVE block or nothing is left to try. Called and returns with the heap
 * lock held; the heap may have been dropped meanwhile (CCA_UNSUPPORTED then). CCA_NO_MEMORY has
 * been reported as an oom event. */
struct cca_status cca_ladder_climb(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded, struct cca_block **block_out);

#endif
