/* SPDX-License-Identifier: MIT */
/* The history of one device: a bounded ring of 64-byte entries, the oldest overwritten first, every
 * loss counted. No lock of its own: guarded by the heap lock. Memory is mapped, touched only as
 * entries come in. */
#ifndef CCA_OBSERVE_TRACE_RING_H
#define CCA_OBSERVE_TRACE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "observe/event.h"

struct cca_trace_entry {
    uint64_t seq; /* 1 for the first event ever recorded; goes on after a clear */
    uint64_t time_ns;
    uint64_t addr;
    uint64_t requested_bytes;
    uint64_t block_bytes;
    uint64_t stream;
    uint32_t stack;
    uint32_t metadata;
    uint32_t thread;
    uint16_t pool;
    uint8_t kind;
    /* API in the low 4 bits, the low 4 event flags above (CCA_EVENT_PASSED does not fit): see the
     * accessors. */
    uint8_t api_flags;
};
_Static_assert(sizeof(struct cca_trace_entry) == 64, "a history entry is one cache line");

/* Identity: recorded = held + those overwritten, or dropped by a resize. */
struct cca_trace_ring {
    struct cca_trace_entry *entries; /* NULL until the first event, or when memory was refused */
    size_t capacity;
    size_t held;       /* entries there are */
    size_t next;       /* slot of the next entry */
    uint64_t last_seq; /* of the newest event, recorded or refused */
    uint64_t recorded; /* ever since the last clear, kept or overwritten */
    uint64_t refused;  /* not kept because there was no memory */
};

void cca_trace_ring_init(struct cca_trace_ring *ring, size_t capacity);
void cca_trace_ring_record(struct cca_trace_ring *ring, const struct cca_event *event);

/* Entries held now, and entries lost (overwritten or refused) since the last clear. */
size_t cca_trace_ring_count(const struct cca_trace_ring *ring);
uint64_t cca_trace_ring_lost(const struct cca_trace_ring *ring);

/* Copies the newest entries, at most `max`, oldest first; returns how many. */
size_t cca_trace_ring_copy(const struct cca_trace_ring *ring, struct cca_trace_entry *out,
                           size_t max);

/* Changes the capacity and keeps the newest entries; -ENOMEM leaves the ring as it was. */
int cca_trace_ring_resize(struct cca_trace_ring *ring, size_t capacity);
void cca_trace_ring_clear(struct cca_trace_ring *ring);
void cca_trace_ring_fini(struct cca_trace_ring *ring);

static inline enum cca_api cca_trace_entry_api(const struct cca_trace_entry *entry)
{
    return (enum cca_api)(entry->api_flags & 15);
}

static inline unsigned cca_trace_entry_flags(const struct cca_trace_entry *entry)
{
    return entry->api_flags >> 4;
}

#endif
