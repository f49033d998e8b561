/* SPDX-License-Identifier: MIT */
/* What the program attached: from the allocator's calls to those of the public interface. */
#include <errno.h>

#include "base/clock.h"
#include "base/reentry.h"
#include "process/api.h"
#include "process/reports.h"
#include "process/state.h"

static void tell_oom(void *user, const struct cca_oom_info *info)
{
    const struct cca_api_observer *observer = user;
    const struct cca_oom_notice notice = {
        .struct_bytes = sizeof(notice),
        .device = info->ordinal,
        .is_rejection = info->is_rejection,
        .bytes = info->bytes,
        .limit_bytes = info->limit_bytes,
        .reserved_bytes = info->reserved_bytes,
        .free_bytes = info->free_bytes,
        .total_bytes = info->total_bytes,
    };

    ((cca_oom_observer_fn)observer->fn)(observer->user, &notice);
}

static void tell_event(void *user, int device, const struct cca_event *event)
{
    const struct cca_api_observer *observer = user;
    struct cca_trace_notice notice = {
        .struct_bytes = sizeof(notice),
        .action = cca_event_kind_name(event->kind),
        .api = cca_api_name(event->api),
        .device = device,
        .thread = event->thread,
        .addr = event->addr,
        .size = event->requested_bytes,
        .block_bytes = event->block_bytes,
        .stream = event->stream,
        .time_us = cca_clock_wall_us(event->time_ns),
    };

    if (!cca_event_takes_slot(event->kind)) {
        return;
    }
    cca_allocator_event_pool(cca_process_allocator(), device, event, notice.pool_id);
    ((cca_trace_tracker_fn)observer->fn)(observer->user, &notice);
}

static bool ask_for_memory(void *user, int ordinal, size_t bytes)
{
    const struct cca_api_observer *observer = user;

    return ((cca_free_memory_callback_fn)observer->fn)(observer->user, ordinal, bytes) != 0;
}

static int attach_one(struct cca_allocator *allocator, enum cca_api_observer_kind kind,
                      struct cca_api_observer *observer)
{
    switch (kind) {
    case CCA_ON_OOM: return cca_allocator_add_oom_observer(allocator, tell_oom, observer);
    case CCA_ON_TRACE: return cca_allocator_add_tracker(allocator, tell_event, observer);
    case CCA_ON_FREE_MEMORY:
        return cca_allocator_add_free_callback(allocator, ask_for_memory, observer);
    case CCA_API_OBSERVER_KINDS: break;
    }
    return -EINVAL;
}

void cca_api_observers_attach(struct cca_process *process, struct cca_allocator *allocator)
{
    cca_reports_attach(process, allocator);
    for (int kind = 0; kind < CCA_API_OBSERVER_KINDS; kind++) {
        for (int i = 0; i < process->observers.counts[kind]; i++) {
            struct cca_api_observer *observer = &process->observers.slots[kind][i];

            if (!observer->is_attached) {
                observer->is_attached = attach_one(allocator, (enum cca_api_observer_kind)kind,
                                                   observer) == 0;
            }
        }
    }
}

static int attach_locked(struct cca_process *process, enum cca_api_observer_kind kind,
                         void (*fn)(void), void *user)
{
    struct cca_api_observers *observers = &process->observers;
    struct cca_allocator *allocator = atomic_load(&process->allocator);

    if (observers->counts[kind] == CCA_API_OBSERVERS_MAX) {
        return -ENOSPC;
    }
    observers->slots[kind][observers->counts[kind]++] = (struct cca_api_observer){fn, user, false};
    if (allocator != NULL) {
        cca_api_observers_attach(process, allocator);
    }
    return 0;
}

static int attach(enum cca_api_observer_kind kind, void (*fn)(void), void *user)
{
    struct cca_process *process = cca_process_state();
    int rc;

    if (fn == NULL) {
        return -EINVAL;
    }
    if (!cca_process_is_active()) {
        return -ENOSYS;
    }
    if (!cca_reentry_enter()) {
        return -EBUSY;
    }
    cca_lock_take(&process->lock);
    rc = attach_locked(process, kind, fn, user);
    cca_lock_drop(&process->lock);
    cca_reentry_leave();
    return rc;
}

int cca_api_attach_oom_observer(cca_oom_observer_fn fn, void *user)
{
    return attach(CCA_ON_OOM, (void (*)(void))fn, user);
}

int cca_api_attach_trace_tracker(cca_trace_tracker_fn fn, void *user)
{
    return attach(CCA_ON_TRACE, (void (*)(void))fn, user);
}

int cca_api_attach_free_memory_callback(cca_free_memory_callback_fn fn, void *user)
{
    return attach(CCA_ON_FREE_MEMORY, (void (*)(void))fn, user);
}
