/* SPDX-License-Identifier: MIT */
/* One device's memory: its blocks, segments, fences and accounts under one lock: the state and
 * the steps that need no device call; the ladder and the fences drive them. heap.c holds what
 * concerns the whole, heap_blocks.c and heap_segments.c the rest. Every function here is called
 * with the heap lock held. */
#ifndef CCA_ALLOC_HEAP_H
#define CCA_ALLOC_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/block.h"
#include "alloc/block_map.h"
#include "alloc/block_pool.h"
#include "alloc/policy.h"
#include "base/lock.h"
#include "base/sysmem.h"
#include "observe/observer.h"

struct cca_fence;

/* One recorded use of a LIVE block on another stream: see stream_use.h. */
struct cca_stream_use {
    struct cca_stream_use *next;
    cca_key stream;
    cca_key freed_on; /* the first of a block whose free was put off: the key of the free */
    bool in_capture;  /* first recorded while a capture was open, of a private pool's block */
    struct cca_free_markers
        *markers; /* the first of a block whose free was put off: alloc/capture.h */
};

enum cca_heap_state {
    CCA_HEAP_DOWN, /* no context */
    CCA_HEAP_UP,
    CCA_HEAP_DEAD /* its context reported an error that ends it: nothing is served or asked */
};

/* Where a bounded search goes on: behind the block of this size and address; 0: it begins anew. */
struct cca_idle_search {
    size_t bytes;
    uint64_t addr;
};

/* Identity: reserved_bytes = sum of the cache's segments + in_flight_bytes; the blocks of all
 * segments are FREE in one of the pools, LIVE in the map `live`, or PENDING; those of expandable
 * segments may have no memory (expandable.h). */
struct cca_heap {
    struct cca_lock lock;
    struct cca_allocator *allocator;
    struct cca_device device;
    int slot;                  /* in allocator->heaps */
    _Atomic int ordinal;       /* of the device, readable without the lock */
    struct cca_heap *accounts; /* whose observer tells of this heap: itself, or its device's heap */
    bool is_withdrawn;         /* its context is about to end: its addresses are not known */
    bool has_guests;           /* other heaps report here, too */
    _Atomic uint64_t context;  /* handle of the context served, 0 = none */
    _Atomic uint64_t generation; /* changes whenever all memory is forgotten */
    enum cca_heap_state state;
    atomic_uint device_calls; /* under way with the lock dropped: see device_call.h */

    struct cca_block_map live;      /* by address, the passed ones too */
    struct cca_block_pool pools[2]; /* [0] large, [1] small */
    /* Expandable segments: see expandable.h. */
    bool expands;             /* new memory is mapped, where it can be */
    unsigned expandables;     /* how many such segments there are */
    struct cca_tree unmapped; /* blocks without memory, by what may grow there and address */
    struct cca_list segments; /* all, in the order they were obtained */
    size_t reserved_bytes;    /* the cache's driver memory, and what is being asked for */
    struct cca_idle_search idle_search[2]; /* for blocks above the cache limit, in each pool */
    size_t in_flight_bytes;                /* of these, driver allocations under way */
    unsigned in_flight, growths;           /* how many are, and how many ever began */
    size_t device_bytes;                   /* memory of the device, 0 = not known */
    size_t limit_bytes;                    /* CCA_NO_LIMIT: none */
    size_t total_bytes;                    /* the device's memory, as far as known */
    double memory_fraction;                /* of it, the most that may be held */

    /* Fences: see fence.h. */
    struct cca_list fences; /* oldest first */
    uint64_t last_fence_id;
    struct cca_fence *open_fence;
    struct cca_fence *idle_fences;
    /* PENDING blocks whose work could not be marked at the time, told apart by what else may end
     * their wait: see fence_aside.c. */
    struct cca_list aside_plain, aside_ordered;
    size_t aside_left_bytes; /* pending_bytes when whole segments of them last went back */
    size_t pending_bytes, pending_max_bytes;
    /* Uses on other streams: see stream_use.h. */
    struct cca_list use_queues; /* of one stream each, ascending */
    struct cca_list idle_use_events;
    struct cca_stream_use used_everywhere; /* stands for uses that could not be noted */
    unsigned use_recorders;                /* threads recording events for the queues right now */
    bool is_polling_uses;
    struct cca_list deferred; /* PENDING blocks with uses, freed while a capture was open */

    /* Private pools: see private_pool.h. */
    struct cca_list private_pools;
    struct cca_list routes;
    unsigned captures;             /* routes of captures */
    struct cca_list capture_views; /* what streams under capture wait for: see capture.h */
    struct cca_pool capture_view_records, marker_records;
    struct cca_pool private_pool_records, route_records;

    uint64_t frees; /* counts completed frees: the order of freed_seq */
    bool is_polling;
    unsigned queries_beside_capture; /* threads that would fail without a look at events */
    bool is_reclaiming;          /* a fence that makes every stream's blocks READY is under way */
    unsigned releases_in_flight; /* detached segments whose memory is not back yet */
    bool stacks_in_trace;
    bool rekeys; /* stream keys become READY behind a fence; false for a core driven in stream order
                  */
    uint64_t cap_window_start_ns, cap_waited_ns;

    struct cca_pool block_records, segment_records, fence_records;
    struct cca_pool use_records, use_event_records, use_queue_records;
    struct cca_observer observer;
};

/* `accounts`: the heap of the device, or NULL when this is it. */
void cca_heap_init(struct cca_heap *heap, struct cca_allocator *allocator, int slot,
                   struct cca_heap *accounts, const struct cca_config *config);
void cca_heap_fini(struct cca_heap *heap);

/* What an event has from the request that caused it; `request` may be NULL. */
static inline void cca_heap_attribute(struct cca_event *event, const struct cca_request *request)
{
    if (request != NULL) {
        event->api = request->api;
        event->stack = request->stack;
        event->thread = request->thread;
        event->metadata = request->metadata;
        event->stream = request->key == CCA_KEY_READY ? 0 : request->key;
    }
}

/* An event of this heap with what all events share. */
static inline struct cca_event cca_heap_event(enum cca_event_kind kind,
                                              const struct cca_request *request, uint64_t now_ns)
{
    struct cca_event event = {.kind = kind, .time_ns = now_ns};
    cca_heap_attribute(&event, request);
    return event;
}

void cca_heap_report(struct cca_heap *heap, const struct cca_event *event);
void cca_heap_report_plain(struct cca_heap *heap, enum cca_event_kind kind);

/* The accounts of the heap's device, held until close. */
struct cca_observer *cca_heap_open_accounts(struct cca_heap *heap);
void cca_heap_close_accounts(struct cca_heap *heap);

/* Whether new memory is mapped, after settings or device have changed. */
void cca_heap_set_expands(struct cca_heap *heap);

/* Sets the limit: the fraction of `total_bytes`, or CCA_MEMORY_LIMIT where that is less. */
void cca_heap_set_fraction(struct cca_heap *heap, double fraction, size_t total_bytes);

/* Counts a search for ageing, which matters only where segments are collected. */
void cca_heap_count_search(struct cca_heap *heap, const struct cca_policy *policy,
                           const struct cca_request *request, size_t rounded);

/* Best fit out of the cache, cut to size and LIVE, or NULL on a miss. */
struct cca_block *cca_heap_take_cached(struct cca_heap *heap, const struct cca_policy *policy,
                                       const struct cca_request *request, size_t rounded,
                                       uint64_t now_ns);

/* The same out of the private pools that lend to requests which would fail. */
struct cca_block *cca_heap_borrow(struct cca_heap *heap, const struct cca_policy *policy,
                                  const struct cca_request *request, size_t rounded,
                                  uint64_t now_ns);

/* Memory as the driver has just given it. */
struct cca_growth {
    struct cca_segment *segment; /* from cca_heap_take_records */
    uint64_t addr;
    size_t bytes;
    uint64_t took_ns;
    bool is_contended; /* other threads were inside the driver's allocation meanwhile */
};

/* The records of a segment to come, or NULL when memory for them is refused; and back. */
struct cca_segment *cca_heap_take_records(struct cca_heap *heap);
void cca_heap_give_records(struct cca_heap *heap, struct cca_segment *segment);

/* New driver memory becomes a segment, and its low part a LIVE block; the rest goes to the pool. */
struct cca_block *cca_heap_add_segment(struct cca_heap *heap, const struct cca_policy *policy,
                                       const struct cca_request *request, size_t rounded,
                                       const struct cca_growth *growth, uint64_t now_ns);

/* A LIVE block becomes PENDING (free_requested). Uses that were not detached are dropped. */
void cca_heap_request_free(struct cca_heap *heap, struct cca_block *block,
                           const struct cca_request *request, uint64_t now_ns);

/* Both at once, for a block without uses. `now_ns` matters where somebody listens. */
void cca_heap_free_now(struct cca_heap *heap, struct cca_block *block,
                       const struct cca_request *request, cca_key key, uint64_t now_ns);

/* A PENDING block becomes FREE with this key (free_completed) and joins its neighbours. Returns the
 * block it has become. */
struct cca_block *cca_heap_complete_free(struct cca_heap *heap, struct cca_block *block,
                                         cca_key key, uint64_t now_ns);

/* Free blocks keyed to `key` (or to any stream: CCA_KEY_READY) whose free came before `before_seq`
 * become READY. */
void cca_heap_rekey(struct cca_heap *heap, cca_key key, uint64_t before_seq, uint64_t now_ns);

/* What is out of all books and goes back to the driver. */
struct cca_detached {
    struct cca_list segments; /* linked by `link` */
    struct cca_list pages;    /* MOVING blocks of expandable segments, linked by `wait` */
};
void cca_heap_detached_init(struct cca_detached *detached);

/* Takes every wholly free segment that may go back to the driver out of all books (segment_free)
 * and onto `out`, and of expandable segments whole free pages (segment_unmap): READY ones, and
 * others freed before `before_seq`. The caller frees the memory with the lock dropped, then calls
 * cca_heap_forget_segment for each segment. Large ones come first; then those of private pools that
 * nobody retains, small ones first. */
void cca_heap_detach_releasable(struct cca_heap *heap, uint64_t before_seq, uint64_t now_ns,
                                struct cca_detached *out);

/* The same for one private pool, nothing where somebody retains it. */
void cca_heap_detach_pool(struct cca_heap *heap, struct cca_private_pool *pool, uint64_t before_seq,
                          uint64_t now_ns, struct cca_detached *out);

/* The same for one segment, whose only block is FREE. */
void cca_heap_detach_segment(struct cca_heap *heap, struct cca_segment *segment, uint64_t now_ns,
                             struct cca_detached *out);

/* The record of a detached segment, after its memory went back in `took_ns`. */
void cca_heap_forget_segment(struct cca_heap *heap, struct cca_segment *segment, uint64_t took_ns);

/* Whether a free block has this key. */
bool cca_heap_holds_key(const struct cca_heap *heap, cca_key key);

/* The largest free block, whoever may take it; 0 when there is none. */
size_t cca_heap_largest_free(struct cca_heap *heap);

/* Bytes of segments that are one READY block, or of whole pages in one, that may go back to the
 * driver. */
size_t cca_heap_releasable_bytes(struct cca_heap *heap);

/* The program's own driver allocation enters and leaves the accounts. False: no record to be had.
 */
bool cca_heap_add_passed(struct cca_heap *heap, const struct cca_request *request, uint64_t addr,
                         uint64_t now_ns, struct cca_block **block_out);
void cca_heap_remove_passed(struct cca_heap *heap, struct cca_block *block,
                            const struct cca_request *request, uint64_t now_ns);

/* Everything is forgotten, because the memory is gone: blocks leave the address map, the trace
 * shows frees and segment frees, fences are dropped, the generation changes. */
void cca_heap_drop(struct cca_heap *heap, uint64_t now_ns);

#endif
