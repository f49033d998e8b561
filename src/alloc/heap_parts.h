/* SPDX-License-Identifier: MIT */
/* What the files of the heap share: heap.c (the whole), heap_blocks.c and heap_segments.c. Called
 * with the heap lock held. */
#ifndef CCA_ALLOC_HEAP_PARTS_H
#define CCA_ALLOC_HEAP_PARTS_H

#include "alloc/heap.h"
#include "alloc/private_pool.h"
#include "base/check.h"
#include "base/clock.h"

/* Settles which pool the blocks of a new segment belong to; `is_passed` and `page_bytes` are set.
 */
static inline void cca_segment_settle(struct cca_heap *heap, struct cca_segment *segment,
                                      struct cca_private_pool *pool, bool is_small)
{
    segment->pool = pool;
    segment->blocks = cca_heap_pool(heap, pool, is_small);
    segment->is_small = is_small;
    segment->event_flags = (is_small ? CCA_EVENT_SMALL : 0) |
                           (segment->is_passed ? CCA_EVENT_PASSED : 0) |
                           (cca_segment_is_expandable(segment) ? CCA_EVENT_EXPANDABLE : 0);
}

static inline uint16_t cca_segment_pool_number(const struct cca_segment *segment)
{
    return segment->pool == NULL ? 0 : segment->pool->number;
}

/* The segment leaves the books of its private pool. */
void cca_segment_leave_pool(struct cca_segment *segment);

/* What of a block alloc and free events count. */
static inline void cca_heap_weigh_block(struct cca_event *event, const struct cca_block *block)
{
    event->flags |= block->segment->event_flags | (block->was_oversize ? CCA_EVENT_OVERSIZE : 0);
    event->requested_bytes = block->requested_bytes;
    event->block_bytes = block->bytes;
}

/* Facts about a block that alloc and free events share. */
static inline void cca_heap_describe_block(struct cca_event *event, const struct cca_block *block)
{
    cca_heap_weigh_block(event, block);
    event->pool = cca_segment_pool_number(block->segment);
    event->addr = block->addr;
}

/* The halves of cca_heap_report, where the kind of the event is a constant: it is counted, and
 * completed and told where somebody listens. Events of the program's own contexts are told only:
 * the heap that keeps their accounts counts them. */
static CCA_ALWAYS_INLINE void cca_heap_count(struct cca_heap *heap, const struct cca_event *event)
{
    CCA_ASSERT(cca_lock_is_mine(&heap->lock));
    if (CCA_LIKELY(heap->accounts == heap)) {
        cca_observer_count(&heap->observer, event);
    }
}

static inline bool cca_heap_is_heard(const struct cca_heap *heap)
{
    return CCA_UNLIKELY(heap->accounts != heap || cca_observer_is_heard(&heap->observer));
}

void cca_heap_tell(struct cca_heap *heap, struct cca_event *event);

/* The time for events of a free, which nothing but a listener asks for. */
static inline uint64_t cca_heap_time_of_free(const struct cca_heap *heap)
{
    return cca_heap_is_heard(heap) ? cca_clock_ns() : 0;
}

/* A block without owner becomes LIVE: the alloc event, with what it does to the free parts of split
 * segments. `was_split`: before it was cut for this request; `rest_bytes`: what was cut off, or 0.
 */
void cca_heap_hand_out(struct cca_heap *heap, struct cca_block *block,
                       const struct cca_request *request, bool was_split, size_t rest_bytes,
                       unsigned flags, uint64_t now_ns);

/* Cuts the block to `rounded` where the policy says so; the rest goes to the pool with `key`.
 * Returns the size of the rest, or 0. Without memory for a record the block stays whole. */
size_t cca_heap_cut(struct cca_heap *heap, const struct cca_policy *policy, struct cca_block *block,
                    size_t rounded, cca_key key);

/* A FREE block out of its pool, cut to size and LIVE. */
struct cca_block *cca_heap_take_block(struct cca_heap *heap, struct cca_block *block,
                                      const struct cca_request *request, size_t rounded,
                                      uint64_t now_ns);

struct cca_joined {
    struct cca_block *block;
    int32_t count_delta; /* of the free parts of split segments */
    int64_t bytes_delta;
};

/* Joins a block that is in no pool with its free neighbours and puts the result into the pool.
 * `ready_only`: only with those of its own key. */
struct cca_joined cca_heap_join(struct cca_heap *heap, struct cca_block *block, bool ready_only);

/* An event about a segment, to be completed. */
struct cca_event cca_heap_segment_event(enum cca_event_kind kind, const struct cca_segment *segment,
                                        const struct cca_request *request, uint64_t took_ns,
                                        uint64_t now_ns);

/* Memory of a segment has gone back to the driver. */
void cca_heap_report_released(struct cca_heap *heap, const struct cca_segment *segment,
                              uint64_t took_ns);

/* A part of an expandable segment. */
void cca_heap_report_range(struct cca_heap *heap, enum cca_event_kind kind,
                           const struct cca_segment *segment, uint64_t addr, size_t bytes,
                           uint64_t now_ns);

/* An event about a whole segment; `request` may be NULL. */
void cca_heap_report_segment(struct cca_heap *heap, enum cca_event_kind kind,
                             const struct cca_segment *segment, const struct cca_request *request,
                             uint64_t took_ns, uint64_t now_ns);

#endif
