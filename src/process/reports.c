/* SPDX-License-Identifier: MIT */
/* cca_set_memory_reporter. A report is made where the event happens, under the heap's lock, kept by
 * the thread, and delivered when the thread has left the library: then no lock is held, and the
 * receiver may use CUDA. */
#include <errno.h>
#include <string.h>

#include "base/reentry.h"
#include "process/api.h"
#include "process/reports.h"
#include "process/state.h"

/* One call makes one or two; callbacks that free memory for a request add theirs. */
enum { KEPT_MAX = 16 };

CCA_THREAD_LOCAL int cca_reports_waiting;

static CCA_THREAD_LOCAL struct {
    struct cca_memory_report list[KEPT_MAX];
    uint64_t lost; /* there was no room */
    bool is_delivering;
} kept;

static void keep(int device, const struct cca_event *event, int64_t bytes)
{
    if (cca_reports_waiting == KEPT_MAX) {
        kept.lost++;
        return;
    }
    struct cca_memory_report *report = &kept.list[cca_reports_waiting++];
    *report = (struct cca_memory_report){
        .struct_bytes = sizeof(*report),
        .device = device,
        .is_oom = event->kind == CCA_EVENT_OOM,
        .addr = event->kind == CCA_EVENT_OOM ? 0 : event->addr,
        .bytes = bytes,
        .lost = kept.lost,
    };
    cca_allocator_event_totals(cca_process_allocator(), device, &report->total_allocated,
                               &report->total_reserved);
}

/* The heap lock is held. Free completions and segments are not reported, as in PyTorch. */
static void note(void *user, int device, const struct cca_event *event)
{
    const struct cca_process *process = user;

    if (atomic_load_explicit(&process->reporter.fn, memory_order_relaxed) == NULL) {
        return;
    }
    switch (event->kind) {
    case CCA_EVENT_ALLOC: keep(device, event, (int64_t)event->block_bytes); break;
    case CCA_EVENT_FREE_REQUESTED: keep(device, event, -(int64_t)event->block_bytes); break;
    case CCA_EVENT_OOM: keep(device, event, (int64_t)event->requested_bytes); break;
    default: break;
    }
}

static void deliver_some(void)
{
    struct cca_process *process = cca_process_state();
    struct cca_memory_report list[KEPT_MAX];
    int count = cca_reports_waiting;

    memcpy(list, kept.list, (size_t)count * sizeof(list[0]));
    cca_reports_waiting = 0;
    kept.lost = 0;
    for (int i = 0; i < count; i++) {
        cca_memory_reporter_fn fn = atomic_load_explicit(&process->reporter.fn,
                                                         memory_order_acquire);
        if (fn != NULL) {
            fn(atomic_load_explicit(&process->reporter.user, memory_order_relaxed), &list[i]);
        }
    }
}

CCA_COLD void cca_reports_deliver(void)
{
    int saved_errno = errno;

    /* The receiver may allocate: what it does is reported after what happened before. */
    if (kept.is_delivering) {
        return;
    }
    kept.is_delivering = true;
    while (cca_reports_waiting != 0) {
        deliver_some();
    }
    kept.is_delivering = false;
    errno = saved_errno;
}

void cca_reports_attach(struct cca_process *process, struct cca_allocator *allocator)
{
    if (process->reporter.is_wanted && !process->reporter.is_attached) {
        process->reporter.is_attached = cca_allocator_add_tracker(allocator, note, process) == 0;
    }
}

int cca_api_set_memory_reporter(cca_memory_reporter_fn fn, void *user)
{
    struct cca_process *process = cca_process_state();
    struct cca_allocator *allocator;
    bool has_room = true;

    if (!cca_process_is_active()) {
        return -ENOSYS;
    }
    if (!cca_reentry_enter()) {
        return -EBUSY;
    }
    cca_lock_take(&process->lock);
    allocator = atomic_load(&process->allocator);
    /* Never one receiver with the other's argument. */
    atomic_store_explicit(&process->reporter.fn, NULL, memory_order_relaxed);
    atomic_store_explicit(&process->reporter.user, user, memory_order_relaxed);
    process->reporter.is_wanted |= fn != NULL;
    if (allocator != NULL) {
        cca_reports_attach(process, allocator);
        has_room = process->reporter.is_attached || fn == NULL;
    }
    if (has_room) {
        atomic_store_explicit(&process->reporter.fn, fn, memory_order_release);
    }
    cca_lock_drop(&process->lock);
    cca_reentry_leave();
    return has_room ? 0 : -ENOSPC;
}
