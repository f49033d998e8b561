/* SPDX-License-Identifier: MIT */
/* When freed memory may be used again.
 *
 * A fence is a point in host order, marked by one event on every context that is up (a copy between
 * devices or contexts may use memory of either). The events are recorded inside the free, so a
 * fence never depends on work submitted after it. A fence that still takes blocks is open: later
 * frees record its events again, which only moves them later and so stays safe. It is closed, for
 * good, before it is queried or waited for, and never while a record is under way.
 *
 * Blocks with a stream's key are usable in that stream's order without any fence; a fence with a
 * rekey order makes those freed before it READY. Only this file gives that order.
 *
 * All functions are called with the heap lock held and may drop it for device calls; the caller
 * re-checks heap->generation where it says so. */
#ifndef CCA_ALLOC_FENCE_H
#define CCA_ALLOC_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/heap.h"
#include "device/device.h"

/* For cca_fence_poll: no bound on the number of fences. */
enum { CCA_FENCE_ALL = INT32_MAX };

struct cca_fence {
    struct cca_list link;   /* in heap->fences */
    uint64_t id;            /* ascending in the queue */
    struct cca_list blocks; /* PENDING */
    size_t block_count, bytes;
    uint64_t marks;     /* slots of the contexts whose event is not known to be done */
    unsigned recorders; /* threads recording it right now, or waiting on it outside the lock */
    bool rekeys;
    cca_key rekey_key;     /* READY: any stream's */
    uint64_t rekey_before; /* frees before this one are covered */
    struct cca_fence *next_idle;
    /* One event a slot, kept over the fence's lives; of another generation = dead with its
     * context. */
    struct {
        cca_device_event event;
        uint64_t generation;
    } events[CCA_HEAPS_MAX];
};

/* How the program's own free and ours wait for work of the block's context. */
enum cca_fence_wait {
    CCA_FENCE_ORDERED, /* natively it does not wait, and neither do we */
    CCA_FENCE_LATER,   /* natively it waits; we do not */
    CCA_FENCE_WAITS    /* both wait */
};

/* A PENDING block's memory becomes READY when all work submitted so far is over. */
void cca_fence_block(struct cca_heap *heap, struct cca_block *block, enum cca_fence_wait wait);

/* Whether a block waits for a fence, or to get one. */
static inline bool cca_fence_is_awaited(const struct cca_heap *heap)
{
    return !cca_list_is_empty(&heap->fences) || !cca_list_is_empty(&heap->aside_plain) ||
           !cca_list_is_empty(&heap->aside_ordered);
}

/* Segments of which nothing is used but by work before a free that waits natively: out of all books
 * and onto `out`. Only for the driver's own free, which waits as the program's would have. */
void cca_fence_detach_set_aside(struct cca_heap *heap, uint64_t now_ns, struct cca_detached *out);

/* Free blocks of this stream (READY: of every stream) become READY when all work submitted so far
 * is over. */
void cca_fence_rekey(struct cca_heap *heap, cca_key key);

/* On a miss: what streams hold free becomes READY behind a fence of now, one such fence at a time.
 * Without it, streams would keep what they once took from the READY memory. True when blocks have
 * become READY before it returns. */
bool cca_fence_reclaim(struct cca_heap *heap);

/* The program has waited for a stream, or for the whole context (READY), since `mark`
 * (= heap->frees + 1 at that time): what was freed before it is over. */
void cca_fence_synchronized(struct cca_heap *heap, cca_key key, uint64_t mark);

/* Whether our own events may be queried now. While the program captures on another stream that is
 * legal, as none of them is captured, but done only where a request would fail without. */
bool cca_fence_may_query(const struct cca_heap *heap);

/* Looks at the oldest fences, at most `max`, and completes what is over. Never waits. */
void cca_fence_poll(struct cca_heap *heap, int max);

/* Everything that was freed before this call, whatever its key: the fence that proves its work
 * over. `id` 0: nothing can be proven now. */
struct cca_proof {
    uint64_t id;
    uint64_t before_seq; /* frees before this one are covered */
};
struct cca_proof cca_fence_prove(struct cca_heap *heap);

/* Whether every fence up to this one is complete. */
bool cca_fence_is_proven(const struct cca_heap *heap, const struct cca_proof *proof);

/* A pause between polls that grows from call to call (start with 0); drops the lock meanwhile. */
void cca_fence_pause(struct cca_heap *heap, uint64_t *pause_us);

/* Keeps pending_bytes under its cap where waiting a little helps. */
void cca_fence_hold_cap(struct cca_heap *heap);

/* Forgets all fences and their blocks' places in them (the context is gone). */
void cca_fence_drop_all(struct cca_heap *heap);

#endif
