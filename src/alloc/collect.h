/* SPDX-License-Identifier: MIT */
/* Idle memory that goes back to the driver before it must: what is above the cache limit, what has
 * not been used for long, and oversize blocks in favour of other requests. None of these waits for
 * fences. Called with the heap lock held, which is dropped for the device calls. */
#ifndef CCA_ALLOC_COLLECT_H
#define CCA_ALLOC_COLLECT_H

#include "alloc/allocator_internal.h"

/* What could go back to the driver of the default pool. */
static inline size_t cca_collect_idle_bytes(const struct cca_heap *heap)
{
    return heap->pools[0].whole_bytes + heap->pools[1].whole_bytes;
}

/* Gives idle segments back while there are more of them than CCA_CACHE_LIMIT allows, the largest
 * first. Of free blocks that cannot go back it looks at a bounded number, the next call at the next
 * ones; that number is returned. `has_waited`: inside a free that has just waited for its context,
 * the one place where a driver that can prove nothing is known to be idle. */
enum { CCA_IDLE_VISITS_MAX = 64 };
unsigned cca_collect_down_to(struct cca_heap *heap, size_t limit, bool has_waited);
static inline unsigned cca_collect_over_limit(struct cca_heap *heap, bool has_waited)
{
    size_t limit = heap->allocator->settings.cache_limit;
    if (CCA_UNLIKELY(cca_collect_idle_bytes(heap) > limit)) {
        return cca_collect_down_to(heap, limit, has_waited);
    }
    return 0;
}

/* Collects idle large segments, the oldest first, while more than the threshold's part of the limit
 * is held. Nothing on drivers that can prove nothing. */
void cca_collect_old(struct cca_heap *heap);

/* Without an oversize rule there is nothing to gain here. With one: the smallest oversize block
 * that is big enough goes back, else the largest ones until their sum is. True when enough did. For
 * requests that would fail: where nothing can be proven the driver's free may wait. */
bool cca_collect_oversize(struct cca_heap *heap, const struct cca_request *request, size_t rounded);

#endif
