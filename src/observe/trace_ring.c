/* SPDX-License-Identifier: MIT */
#include "observe/trace_ring.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/sysmem.h"

_Static_assert(CCA_EVENT_KIND_COUNT <= 32, "kinds are bits of a mask");
_Static_assert(CCA_API_COUNT <= 16, "an entry keeps the API in 4 bits");
_Static_assert(CCA_EVENT_KIND_COUNT <= 256, "an entry keeps the kind in 8 bits");

static struct cca_trace_entry *map_entries(size_t capacity)
{
    if (capacity > SIZE_MAX / sizeof(struct cca_trace_entry)) {
        return NULL;
    }
    return cca_sysmem_reserve(capacity * sizeof(struct cca_trace_entry));
}

static void unmap_entries(struct cca_trace_ring *ring)
{
    cca_sysmem_unmap(ring->entries, ring->capacity * sizeof(struct cca_trace_entry));
    ring->entries = NULL;
    ring->held = 0;
    ring->next = 0;
}

void cca_trace_ring_init(struct cca_trace_ring *ring, size_t capacity)
{
    *ring = (struct cca_trace_ring){.capacity = capacity};
}

void cca_trace_ring_record(struct cca_trace_ring *ring, const struct cca_event *event)
{
    if (ring->capacity == 0 || !cca_event_takes_slot(event->kind)) {
        return;
    }
    ring->last_seq++;
    if (CCA_UNLIKELY(ring->entries == NULL)) {
        ring->entries = map_entries(ring->capacity);
        if (ring->entries == NULL) {
            ring->refused++;
            return;
        }
    }
    ring->entries[ring->next] = (struct cca_trace_entry){
        .seq = ring->last_seq,
        .time_ns = event->time_ns,
        .addr = event->addr,
        .requested_bytes = event->requested_bytes,
        .block_bytes = event->block_bytes,
        .stream = event->stream,
        .stack = event->stack,
        .metadata = event->metadata,
        .thread = event->thread,
        .pool = event->pool,
        .kind = (uint8_t)event->kind,
        .api_flags = (uint8_t)((event->api & 15u) | (event->flags & 15u) << 4),
    };
    ring->next = ring->next + 1 == ring->capacity ? 0 : ring->next + 1;
    ring->held += ring->held < ring->capacity;
    ring->recorded++;
}

size_t cca_trace_ring_count(const struct cca_trace_ring *ring)
{
    return ring->held;
}

uint64_t cca_trace_ring_lost(const struct cca_trace_ring *ring)
{
    return ring->recorded - ring->held + ring->refused;
}

size_t cca_trace_ring_copy(const struct cca_trace_ring *ring, struct cca_trace_entry *out,
                           size_t max)
{
    size_t count = ring->held < max ? ring->held : max;
    size_t wrapped = count > ring->next ? count - ring->next : 0;

    if (wrapped > 0) {
        memcpy(out, &ring->entries[ring->capacity - wrapped], wrapped * sizeof(*out));
    }
    if (count > wrapped) {
        memcpy(out + wrapped, &ring->entries[ring->next - (count - wrapped)],
               (count - wrapped) * sizeof(*out));
    }
    return count;
}

int cca_trace_ring_resize(struct cca_trace_ring *ring, size_t capacity)
{
    struct cca_trace_entry *entries = NULL;
    size_t kept = 0;

    if (capacity == ring->capacity) {
        return 0;
    }
    if (ring->held > 0 && capacity > 0) {
        entries = map_entries(capacity);
        if (entries == NULL) {
            return -ENOMEM;
        }
        kept = cca_trace_ring_copy(ring, entries, capacity);
    }
    unmap_entries(ring);
    ring->entries = entries;
    ring->capacity = capacity;
    ring->held = kept;
    ring->next = kept == capacity ? 0 : kept;
    return 0;
}

void cca_trace_ring_clear(struct cca_trace_ring *ring)
{
    unmap_entries(ring);
    ring->recorded = 0;
    ring->refused = 0;
}

void cca_trace_ring_fini(struct cca_trace_ring *ring)
{
    unmap_entries(ring);
    *ring = (struct cca_trace_ring){0};
}
