/* SPDX-License-Identifier: MIT */
/* What happens when the cache has no block: driver memory, release of cached segments, waiting, and
 * at last the out-of-memory result. Device calls are made with the heap lock dropped. */
#ifndef CCA_ALLOC_LADDER_H
#define CCA_ALLOC_LADDER_H

#include "alloc/heap.h"
#include "device/device.h"

/* Climbs until there is a LIVE block or nothing is left to try. Called and returns with the heap
 * lock held; the heap may have been dropped meanwhile (CCA_UNSUPPORTED then). CCA_NO_MEMORY has
 * been reported as an oom event. */
struct cca_status cca_ladder_climb(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded, struct cca_block **block_out);

/* Gives wholly free segments back: those that are READY, and after waiting at most `wait_ms` for
 * fences also the others. Returns the bytes given back. */
size_t cca_ladder_release(struct cca_heap *heap, uint64_t wait_ms);

/* The same for one private pool that nobody retains. The pool may be gone afterwards. */
struct cca_private_pool;
size_t cca_ladder_release_pool(struct cca_heap *heap, struct cca_private_pool *pool,
                               uint64_t wait_ms);

/* Gives idle segments back while there are more of them than CCA_CACHE_LIMIT allows, the largest
 * first. Never waits for fences. */
void cca_ladder_hold_cache_limit(struct cca_heap *heap);

/* Only those that are READY now; never waits for fences. */
size_t cca_ladder_release_ready(struct cca_heap *heap);

#endif
