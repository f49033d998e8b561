/* SPDX-License-Identifier: MIT */
#include "observe/observer.h"

#include <errno.h>

#include "base/compiler.h"

void cca_observer_init(struct cca_observer *observer, int device,
                       const struct cca_recording *recording)
{
    *observer = (struct cca_observer){
        .device = device, .is_recording = recording->ring_entries > 0, .recording = *recording};
    observer->stats.max_split_size = -1;
    cca_trace_ring_init(&observer->ring, recording->ring_entries);
}

static void keep(struct cca_observer *observer, const struct cca_event *event)
{
    if (CCA_UNLIKELY((observer->recording.skips >> event->kind & 1) != 0)) {
        observer->skipped += cca_event_takes_slot(event->kind);
        return;
    }
    cca_trace_ring_record(&observer->ring, event);
}

void cca_observer_tell(struct cca_observer *observer, const struct cca_event *event)
{
    for (int i = 0; i < observer->tracker_count; i++) {
        observer->trackers[i].fn(observer->trackers[i].user, observer->device, event);
    }
    if (observer->is_recording) {
        keep(observer, event);
    }
}

void cca_observer_report(struct cca_observer *observer, const struct cca_event *event)
{
    cca_observer_count(observer, event);
    if (cca_observer_is_heard(observer)) {
        cca_observer_tell(observer, event);
    }
}

void cca_observer_reset_peak(struct cca_observer *observer)
{
    cca_stats_reset_peak(&observer->stats);
    cca_pool_table_reset_peak(&observer->pools);
}

void cca_observer_reset_accumulated(struct cca_observer *observer)
{
    cca_stats_reset_accumulated(&observer->stats);
    cca_pool_table_reset_accumulated(&observer->pools);
}

int cca_observer_set_recording(struct cca_observer *observer, const struct cca_recording *recording)
{
    if (recording->ring_entries == 0) {
        cca_observer_clear_history(observer);
    } else {
        int rc = cca_trace_ring_resize(&observer->ring, recording->ring_entries);

        if (rc != 0) {
            return rc;
        }
    }
    observer->recording = *recording;
    observer->is_recording = recording->ring_entries > 0;
    return 0;
}

void cca_observer_clear_history(struct cca_observer *observer)
{
    cca_trace_ring_clear(&observer->ring);
    observer->skipped = 0;
}

int cca_observer_add_tracker(struct cca_observer *observer, cca_tracker_fn fn, void *user)
{
    if (observer->tracker_count >= (int)CCA_ARRAY_LEN(observer->trackers)) {
        return -ENOSPC;
    }
    observer->trackers[observer->tracker_count].fn = fn;
    observer->trackers[observer->tracker_count].user = user;
    observer->tracker_count++;
    return 0;
}

void cca_observer_remove_tracker(struct cca_observer *observer, cca_tracker_fn fn, void *user)
{
    for (int i = 0; i < observer->tracker_count; i++) {
        if (observer->trackers[i].fn == fn && observer->trackers[i].user == user) {
            for (int j = i + 1; j < observer->tracker_count; j++) {
                observer->trackers[j - 1] = observer->trackers[j];
            }
            observer->tracker_count--;
            return;
        }
    }
}

void cca_observer_fini(struct cca_observer *observer)
{
    cca_trace_ring_fini(&observer->ring);
    cca_pool_table_fini(&observer->pools);
    observer->tracker_count = 0;
    observer->is_recording = false;
}
