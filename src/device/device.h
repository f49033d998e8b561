/* SPDX-License-Identifier: MIT */
/* What the allocator needs of a device: memory, events, order. The narrow bottom of the library: a
 * CUDA context in the product, a scripted one in the unit tests.
 *
 * Pre-conditions of every call: no heap lock is held by the caller; `dev` is up. Calls may be made
 * from any thread, with any context current; the thread's current context, its capture mode and the
 * CUDA runtime's last error are the same afterwards. Calls that may wait for the device say so; all
 * others return promptly. */
#ifndef CCA_DEVICE_DEVICE_H
#define CCA_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum cca_status_kind {
    CCA_OK,
    CCA_NO_MEMORY,
    CCA_NOT_READY,   /* an event's work is not over */
    CCA_UNSUPPORTED, /* this call failed: not available, or refused; the context is well */
    CCA_FATAL        /* the context is unusable; nothing more may be asked of it */
};

/* `raw` is the CUresult behind it (0 when there was no call). */
struct cca_status {
    enum cca_status_kind kind;
    int raw;
};

static inline struct cca_status cca_status_ok(void)
{
    return (struct cca_status){CCA_OK, 0};
}

/* A device event: an opaque handle, 0 = none. */
typedef uint64_t cca_device_event;

/* How a stream is told apart: never recycled, unlike handles. */
typedef uint64_t cca_stream_id;

/* What has been captured on a stream: the capture that it takes part in, and the nodes that
 * whatever comes next on it will depend on. */
enum { CCA_TERMINALS_MAX = 16 };
struct cca_capture_info {
    uint64_t id;           /* of the capture; 0: the stream is not being captured */
    size_t terminal_count; /* above CCA_TERMINALS_MAX: too many, none is named */
    uint64_t terminals[CCA_TERMINALS_MAX];
};

struct cca_device_ops {
    /* Memory of exactly `bytes`. Never waits for running work on current drivers. */
    struct cca_status (*mem_alloc)(void *self, size_t bytes, uint64_t *addr_out);
    /* The same where the thread's capture mode would forbid it. NULL: as mem_alloc. */
    struct cca_status (*mem_alloc_relaxed)(void *self, size_t bytes, uint64_t *addr_out);
    /* Gives memory back. May wait for the whole device. Every use of it must be over. */
    struct cca_status (*mem_free)(void *self, uint64_t addr);
    struct cca_status (*mem_info)(void *self, size_t *free_bytes_out, size_t *total_bytes_out);

    struct cca_status (*event_create)(void *self, cca_device_event *event_out);
    void (*event_destroy)(void *self, cca_device_event event);
    /* The event stands behind everything submitted so far to any stream of the context.
     * CCA_UNSUPPORTED on drivers before 12.5. */
    struct cca_status (*event_record)(void *self, cca_device_event event);
    /* The event stands behind everything submitted so far to this one stream. NULL or
     * CCA_UNSUPPORTED where the stream cannot be reached by its id. */
    struct cca_status (*event_record_stream)(void *self, cca_device_event event,
                                             cca_stream_id stream);
    /* CCA_OK when done, CCA_NOT_READY, or an error of the context. */
    struct cca_status (*event_query)(void *self, cca_device_event event);
    /* Waits for the event. */
    struct cca_status (*event_wait)(void *self, cca_device_event event);
    /* Waits for everything submitted to the context. */
    struct cca_status (*synchronize)(void *self);

    /* A stream is about to be destroyed and must not be reached any more. NULL: nothing to do. */
    void (*stream_ends)(void *self, cca_stream_id stream);

    /* What a stream has captured, and the nodes that a node of that graph depends on: the first
     * `max` of *count_out. NULL or CCA_UNSUPPORTED where the driver or the stream does not tell. */
    struct cca_status (*capture_info)(void *self, cca_stream_id stream,
                                      struct cca_capture_info *info_out);
    struct cca_status (*node_dependencies)(void *self, uint64_t node, uint64_t *nodes_out,
                                           size_t max, size_t *count_out);
    /* Mapped memory; only where map_granularity is not 0. None of these waits for the device.
     * Addresses alone: `bytes` is a multiple of the granularity. */
    struct cca_status (*address_reserve)(void *self, size_t bytes, uint64_t *addr_out);
    struct cca_status (*address_free)(void *self, uint64_t addr, size_t bytes);
    /* Puts memory behind `pages` reserved pages, all or none, for use by the device and by the
     * devices of the mask `peers`. Pages are multiples of the granularity. */
    struct cca_status (*map)(void *self, uint64_t addr, size_t page_bytes, size_t pages,
                             uint64_t peers);
    /* Takes it away from pages that were mapped with this size. Every use must be over. */
    struct cca_status (*unmap)(void *self, uint64_t addr, size_t page_bytes, size_t pages);
    /* Lets another device use those of the pages that are mapped. */
    struct cca_status (*allow_access)(void *self, uint64_t addr, size_t page_bytes, size_t pages,
                                      int accessor);
};

/* One context of one device. */
struct cca_device {
    const struct cca_device_ops *ops;
    void *self;
    int ordinal;
    bool is_own;             /* not the device's primary context: one that the program made */
    bool has_context_events; /* event_record works */
    size_t map_granularity;  /* 0: memory cannot be mapped */
};

#endif
