/* SPDX-License-Identifier: MIT */
/* The single door of the accounts: one event in; statistics, counters, history and trackers follow.
 * One observer per device, guarded by that device's heap lock. */
#ifndef CCA_OBSERVE_OBSERVER_H
#define CCA_OBSERVE_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "observe/event.h"
#include "observe/pool_table.h"
#include "observe/stats.h"
#include "observe/stats_count.h"
#include "observe/trace_ring.h"

/* Called with every event, in order, under the heap lock: must not allocate, wait, or call back. */
typedef void (*cca_tracker_fn)(void *user, int device, const struct cca_event *event);

enum { CCA_TRACKERS_MAX = 8 };

struct cca_tracker {
    cca_tracker_fn fn;
    void *user;
};

/* What is kept of the events; the same for all devices, and may change at any time. */
struct cca_recording {
    size_t ring_entries; /* 0: no history */
    unsigned skips;      /* bit i: events of kind i are counted but not kept */
};

struct cca_observer {
    int device;
    bool is_recording; /* false: events are counted and not kept */
    struct cca_recording recording;
    uint64_t skipped;      /* events not kept because of `skips`, since the last clear */
    uint64_t peak_time_ns; /* when allocated_bytes.all was last at its peak; 0 = unknown */
    struct cca_stats stats;
    struct cca_counters counters;
    struct cca_pool_table pools;
    struct cca_trace_ring ring;
    struct cca_tracker trackers[CCA_TRACKERS_MAX];
    int tracker_count;
};

void cca_observer_init(struct cca_observer *observer, int device,
                       const struct cca_recording *recording);
void cca_observer_report(struct cca_observer *observer, const struct cca_event *event);

/* The halves of cca_observer_report, for the places where the kind of the event is known: what it
 * counts for, and whoever hears of it. An event that nobody hears needs no time, unless it is an
 * alloc, nor anything else that no counter is made of. */
static CCA_ALWAYS_INLINE void cca_observer_count(struct cca_observer *observer,
                                                 const struct cca_event *event)
{
    const struct cca_stat *allocated = &observer->stats.allocated_bytes[CCA_STAT_ALL];

    cca_stats_count(&observer->stats, event);
    if (event->kind == CCA_EVENT_ALLOC && allocated->current == allocated->peak) {
        observer->peak_time_ns = event->time_ns;
    }
    cca_counters_count(&observer->counters, event);
    if (cca_event_is_of_segment(event->kind)) {
        cca_pool_table_apply(&observer->pools, event); /* nothing else counts there */
    }
}

static inline bool cca_observer_is_heard(const struct cca_observer *observer)
{
    return observer->is_recording || observer->tracker_count > 0;
}

void cca_observer_tell(struct cca_observer *observer, const struct cca_event *event);

/* torch.cuda.reset_peak_memory_stats and reset_accumulated_memory_stats. */
void cca_observer_reset_peak(struct cca_observer *observer);
void cca_observer_reset_accumulated(struct cca_observer *observer);

/* Changes what is kept; the newest entries stay. Turning the history off empties it. -ENOMEM: the
 * ring could not be made anew, nothing has changed. */
int cca_observer_set_recording(struct cca_observer *observer,
                               const struct cca_recording *recording) CCA_MUST_CHECK;

/* Empties the history, lost entries included. */
void cca_observer_clear_history(struct cca_observer *observer);

/* 0, or -ENOSPC. */
int cca_observer_add_tracker(struct cca_observer *observer, cca_tracker_fn fn, void *user);
void cca_observer_remove_tracker(struct cca_observer *observer, cca_tracker_fn fn, void *user);
void cca_observer_fini(struct cca_observer *observer);

#endif
