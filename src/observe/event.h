/* SPDX-License-Identifier: MIT */
/* One record of what happened. The allocator reports events and nothing else; every counter, the
 * history and every tracker follow from them. */
#ifndef CCA_OBSERVE_EVENT_H
#define CCA_OBSERVE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* X(kind, action name as PyTorch writes it, takes a slot of the history) */
#define CCA_EVENT_KINDS(X)                                                                       \
    X(CCA_EVENT_ALLOC, "alloc", true)                                                            \
    X(CCA_EVENT_FREE_REQUESTED, "free_requested", true)                                          \
    X(CCA_EVENT_FREE_COMPLETED, "free_completed", true)                                          \
    X(CCA_EVENT_SEGMENT_ALLOC, "segment_alloc", true)                                            \
    X(CCA_EVENT_SEGMENT_FREE, "segment_free", true)                                              \
    X(CCA_EVENT_SEGMENT_MAP, "segment_map", true)                                                \
    X(CCA_EVENT_SEGMENT_UNMAP, "segment_unmap", true)                                            \
    X(CCA_EVENT_SNAPSHOT, "snapshot", true)                                                      \
    X(CCA_EVENT_OOM, "oom", true)                                                                \
    X(CCA_EVENT_ANNOTATE, "annotate", true) /* the program's text on a live block */             \
    X(CCA_EVENT_RETRY, "retry", false)      /* the driver is asked again after a release */      \
    X(CCA_EVENT_SYNC, "sync", false)        /* one blocking wait for all events */               \
    X(CCA_EVENT_REJECT, "reject", false)    /* refused before the driver was asked */            \
    X(CCA_EVENT_DRIVER_FREED, "driver_freed", false) /* duration of a segment's release */       \
    X(CCA_EVENT_FREE_WAITED, "free_waited", false)   /* duration a free waited for the device */ \
    X(CCA_EVENT_FENCE, "fence", false)               /* a new fence was recorded */              \
    X(CCA_EVENT_REKEY, "rekey", false)               /* free parts changed hands and joined */   \
    X(CCA_EVENT_FENCE_JOIN, "fence_join", false)     /* a free joined a fence */

enum cca_event_kind {
#define X(kind, name, in_ring) kind,
    CCA_EVENT_KINDS(X)
#undef X
        CCA_EVENT_KIND_COUNT
};

/* Through which function the program asked. X(id, name) */
#define CCA_APIS(X)                                  \
    X(CCA_API_NONE, "")                              \
    X(CCA_API_MALLOC, "cudaMalloc")                  \
    X(CCA_API_FREE, "cudaFree")                      \
    X(CCA_API_MALLOC_ASYNC, "cudaMallocAsync")       \
    X(CCA_API_FREE_ASYNC, "cudaFreeAsync")           \
    X(CCA_API_DRIVER_ALLOC, "cuMemAlloc")            \
    X(CCA_API_DRIVER_FREE, "cuMemFree")              \
    X(CCA_API_DRIVER_ALLOC_ASYNC, "cuMemAllocAsync") \
    X(CCA_API_DRIVER_FREE_ASYNC, "cuMemFreeAsync")   \
    X(CCA_API_OWN, "cca_my_malloc")

enum cca_api {
#define X(id, name) id,
    CCA_APIS(X)
#undef X
        CCA_API_COUNT
};

enum cca_event_flags {
    CCA_EVENT_SMALL = 1,    /* the small pool; else the large one */
    CCA_EVENT_HIT = 2,      /* alloc: served without a driver allocation */
    CCA_EVENT_OVERSIZE = 4, /* the block or segment has max_split_size or more */
    CCA_EVENT_EXPANDABLE = 8,
    CCA_EVENT_CONTENDED = 32, /* (not kept in the history) other driver allocations ran meanwhile */
    CCA_EVENT_PASSED =
        16 /* (not kept in the history) served by the driver itself; we only account for it */
};

struct cca_event {
    enum cca_event_kind kind;
    enum cca_api api;
    unsigned flags;
    uint64_t addr;            /* oom: free bytes of the device */
    uint64_t requested_bytes; /* what the caller asked for; segments: their size; oom: rounded */
    uint64_t block_bytes;     /* block or segment size */
    uint64_t stream;          /* id of the stream, 0 = legacy default or none */
    uint64_t time_ns;         /* cca_clock_ns */
    uint64_t duration_ns;     /* of the driver call or wait, where the kind has one */
    uint32_t stack;           /* id in the stack table, 0 = none */
    uint32_t metadata;        /* id of the user's text, 0 = none */
    uint32_t thread;          /* kernel thread id */
    uint16_t pool;            /* private pool, 0 = default */
    /* Net change of the free parts of split segments (inactive_split), made by an alloc, a
     * completed free or a rekey. */
    int32_t split_count_delta;
    int64_t split_bytes_delta;
};

/* Whether memory comes from the driver or goes back to it. */
static inline bool cca_event_is_of_segment(enum cca_event_kind kind)
{
    return kind == CCA_EVENT_SEGMENT_ALLOC || kind == CCA_EVENT_SEGMENT_FREE ||
           kind == CCA_EVENT_SEGMENT_MAP || kind == CCA_EVENT_SEGMENT_UNMAP;
}

const char *cca_event_kind_name(enum cca_event_kind kind);

static inline bool cca_event_takes_slot(enum cca_event_kind kind)
{
    const unsigned kinds = 0
#define X(id, name, in_ring) | (unsigned)(in_ring) << id
        CCA_EVENT_KINDS(X)
#undef X
        ;
    return (kinds >> kind & 1) != 0;
}

const char *cca_api_name(enum cca_api api);

#endif
