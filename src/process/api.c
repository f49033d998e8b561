/* SPDX-License-Identifier: MIT */
/* The library's side of include/cca/cca.h: what the functions do once the table is found. The texts
 * there say what each returns. */
#include "cca/cca.h"

#include <errno.h>

#include "base/compiler.h"
#include "base/reentry.h"
#include "observe/observer.h"
#include "process/dump.h"

enum { CLAIM_WAIT_MS = 5000 };

static const char *api_version(void)
{
    return CCA_VERSION_STRING;
}

/* Inside the guard: a signal handler that comes while a lock of a heap is held must not ask for it.
 * In such a handler itself, when it interrupted a call of ours, there is no answer. */
static int with_observer(int device, cca_observer_fn fn, void *user)
{
    struct cca_allocator *allocator = cca_process_allocator();
    int rc;

    if (device < 0) {
        return -EINVAL;
    }
    if (allocator == NULL || device >= CCA_DEVICES_MAX) {
        return -ENODEV;
    }
    if (!cca_reentry_enter()) {
        return -EBUSY;
    }
    rc = cca_allocator_with_observer(allocator, device, fn, user);
    cca_reentry_leave();
    return rc;
}

static void copy_allocated(void *user, struct cca_observer *observer)
{
    *(struct cca_stat *)user = observer->stats.allocated_bytes[CCA_STAT_ALL];
}

static void copy_reserved(void *user, struct cca_observer *observer)
{
    *(struct cca_stat *)user = observer->stats.reserved_bytes[CCA_STAT_ALL];
}

/* All zero for a device that has not been used. */
static struct cca_stat stat_of(int device, cca_observer_fn copy)
{
    struct cca_stat stat = {0};

    return with_observer(device, copy, &stat) == 0 ? stat : (struct cca_stat){0};
}

static uint64_t api_memory_allocated(int device)
{
    return (uint64_t)stat_of(device, copy_allocated).current;
}

static uint64_t api_max_memory_allocated(int device)
{
    return (uint64_t)stat_of(device, copy_allocated).peak;
}

static uint64_t api_memory_reserved(int device)
{
    return (uint64_t)stat_of(device, copy_reserved).current;
}

static uint64_t api_max_memory_reserved(int device)
{
    return (uint64_t)stat_of(device, copy_reserved).peak;
}

static void copy_stats(void *user, struct cca_observer *observer)
{
    *(struct cca_stats *)user = observer->stats;
}

static int api_stat_value(int device, const char *key, int64_t *value_out)
{
    struct cca_stats stats;
    int rc;

    if (key == NULL || value_out == NULL) {
        return -EINVAL;
    }
    rc = with_observer(device, copy_stats, &stats);
    return rc == 0 ? cca_stats_value(&stats, (struct cca_pool_rows){NULL, 0}, key, value_out) : rc;
}

static void reset_peak(void *user, struct cca_observer *observer)
{
    (void)user;
    cca_observer_reset_peak(observer);
}

static int api_reset_peak_memory_stats(int device)
{
    return with_observer(device, reset_peak, NULL);
}

static void reset_accumulated(void *user, struct cca_observer *observer)
{
    (void)user;
    cca_observer_reset_accumulated(observer);
}

static int api_reset_accumulated_memory_stats(int device)
{
    return with_observer(device, reset_accumulated, NULL);
}

static int api_empty_cache(void)
{
    struct cca_allocator *allocator = cca_process_allocator();
    int saved_errno = errno;

    if (allocator == NULL) {
        return -ENODEV;
    }
    if (cca_reentry_enter()) {
        cca_allocator_empty_cache(allocator);
        cca_reentry_leave();
    }
    errno = saved_errno;
    return 0;
}

static int api_dump_snapshot(const char *path)
{
    struct cca_process *process = cca_process_state();
    int saved_errno = errno, rc = -EBUSY;

    if (cca_process_allocator() == NULL) {
        return -ENODEV;
    }
    if (cca_reentry_enter()) {
        if (cca_dump_claim(process, CLAIM_WAIT_MS)) {
            rc = cca_dump_write(process, "api", path);
            cca_dump_release(process);
        }
        cca_reentry_leave();
    }
    errno = saved_errno;
    return rc;
}

extern CCA_EXPORT const struct cca_api_1_table cca_api_1;

const struct cca_api_1_table cca_api_1 = {
    .struct_bytes = sizeof(struct cca_api_1_table),
    .version = api_version,
    .memory_allocated = api_memory_allocated,
    .max_memory_allocated = api_max_memory_allocated,
    .memory_reserved = api_memory_reserved,
    .max_memory_reserved = api_max_memory_reserved,
    .stat_value = api_stat_value,
    .reset_peak_memory_stats = api_reset_peak_memory_stats,
    .reset_accumulated_memory_stats = api_reset_accumulated_memory_stats,
    .empty_cache = api_empty_cache,
    .dump_snapshot = api_dump_snapshot,
};
