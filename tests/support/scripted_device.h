/* SPDX-License-Identifier: MIT */
/* A device for unit tests of the allocator: addresses that ascend and are never reused, a memory
 * size, failures on demand, and work that is over only when the test says so. Thread-safe. */
#ifndef CCA_TEST_SCRIPTED_DEVICE_H
#define CCA_TEST_SCRIPTED_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

enum {
    SCRIPTED_EVENTS_MAX = 4096,
    SCRIPTED_ALLOCS_MAX = 1 << 18,
    SCRIPTED_STREAMS_MAX = 16,
    SCRIPTED_NODES_MAX = 4096
};
enum { SCRIPTED_PAGES_MAX = 4096, SCRIPTED_RESERVATIONS_MAX = 64 };

#define SCRIPTED_BASE 0x700000000000ull

struct scripted_device {
    pthread_mutex_t mutex;
    uint64_t memory_bytes, live_bytes, peak_bytes, next_addr;
    struct {
        uint64_t addr, bytes;
    } allocs[SCRIPTED_ALLOCS_MAX]; /* slot by order of allocation; bytes 0 = freed */
    unsigned alloc_count;
    /* Work is a line of numbered pieces: submitted ones, of which the first `done` are over. */
    uint64_t submitted, done;
    uint64_t events[SCRIPTED_EVENTS_MAX]; /* where on its line the event stands */
    /* Events recorded on one stream stand on a line of its own: 1 + the stream's slot; 0: above. */
    unsigned event_lines[SCRIPTED_EVENTS_MAX];
    struct {
        uint64_t id, recorded, done;
        struct cca_capture_info capture;
    } streams[SCRIPTED_STREAMS_MAX];
    /* The graphs under capture: node n is nodes[n - 1], and depends on what its stream's terminals
     * were. Not told of unless a capture was scripted. */
    bool tells_captures;
    struct cca_capture_info nodes[SCRIPTED_NODES_MAX];
    unsigned node_count, node_queries, capture_queries;
    unsigned stream_count;
    unsigned event_count;
    /* Mapped memory. */
    size_t map_granularity; /* as the device says; 0: it cannot map */
    struct {
        uint64_t addr, bytes;
    } reservations[SCRIPTED_RESERVATIONS_MAX]; /* bytes 0 = given back */
    unsigned reservation_count;
    struct {
        uint64_t addr, bytes, devices; /* bytes 0 = unmapped; the devices that may use it */
    } pages[SCRIPTED_PAGES_MAX];
    unsigned page_count;
    unsigned maps_made, unmaps_made, unmaps_failed,
        map_errors; /* map_errors: calls that no driver would accept */
    /* Fail the n-th call from now on (1 = the next) of a kind, once; 0 = none. */
    long fail_alloc, fail_event_create, fail_event_record, fail_reserve, fail_map, fail_unmap;
    long fail_any; /* of these and of frees, queries and waits */
    long calls;    /* of these, ever */
    enum cca_status_kind fail_kind;
    bool is_broken; /* every query says CCA_FATAL */
    /* Calls made. */
    unsigned allocs_made, frees_made, frees_unknown, records, stream_records, queries, waits;
    unsigned synchronizes, refused;
    /* Called inside mem_alloc and map, and inside mem_free and unmap; no lock of the device held.
     */
    void (*on_alloc)(void *user);
    void *on_alloc_user;
    void (*on_free)(void);
    uint64_t lost_bytes; /* by frees that failed */
};

void scripted_device_init(struct scripted_device *script, uint64_t memory_bytes);

/* The backend over it. */
struct cca_device scripted_device(struct scripted_device *script, int ordinal);

/* The program submits work; the device finishes all of it. */
void scripted_submit(struct scripted_device *script);
void scripted_finish(struct scripted_device *script);

/* A stream begins to be captured, or with id 0 no longer is. */
void scripted_capture(struct scripted_device *script, uint64_t stream, uint64_t id);
/* It captures one node, the number of which is returned. */
uint64_t scripted_node(struct scripted_device *script, uint64_t stream);
/* It waits for what `other` has captured so far, and so takes part in that capture. */
void scripted_join(struct scripted_device *script, uint64_t stream, uint64_t other);
/* The program says itself what comes next on the stream depends on. */
void scripted_set_terminal(struct scripted_device *script, uint64_t stream, uint64_t node);
/* Reservations that were not given back, and bytes mapped in them. */
unsigned scripted_reservations(const struct scripted_device *script);
uint64_t scripted_mapped_bytes(const struct scripted_device *script);

/* One stream finishes what was recorded on it so far; or every stream does. */
void scripted_advance(struct scripted_device *script, uint64_t stream);
void scripted_advance_all(struct scripted_device *script);

#endif
