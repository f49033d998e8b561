/* SPDX-License-Identifier: MIT */
/* The library's side of include/cca: the table, and what its functions share. */
#include "process/api.h"

#include <errno.h>

#include "base/reentry.h"
#include "process/api_own.h"
#include "process/dump.h"

enum { CLAIM_WAIT_MS = 5000 };

static const char *api_version(void)
{
    return CCA_VERSION_STRING;
}

int cca_api_with_observer(int device, cca_observer_fn fn, void *user)
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

int cca_api_enter(struct cca_api_scope *scope, int device)
{
    scope->saved_errno = errno;
    scope->allocator = cca_process_allocator();
    if (device < 0) {
        return -EINVAL;
    }
    if (scope->allocator == NULL) {
        return -ENODEV;
    }
    scope->heap = cca_allocator_heap_of_device(scope->allocator, device);
    if (scope->heap == NULL) {
        return -ENODEV;
    }
    return cca_reentry_enter() ? 0 : -EBUSY;
}

void cca_api_leave(const struct cca_api_scope *scope)
{
    cca_reentry_leave();
    errno = scope->saved_errno;
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
    .memory_allocated = cca_api_memory_allocated,
    .max_memory_allocated = cca_api_max_memory_allocated,
    .memory_reserved = cca_api_memory_reserved,
    .max_memory_reserved = cca_api_max_memory_reserved,
    .stat_value = cca_api_stat_value,
    .reset_peak_memory_stats = cca_api_reset_peak_memory_stats,
    .reset_accumulated_memory_stats = cca_api_reset_accumulated_memory_stats,
    .empty_cache = cca_api_empty_cache,
    .dump_snapshot = api_dump_snapshot,
    .stat_name = cca_api_stat_name,
    .memory_stats = cca_api_memory_stats,
    .each_stat = cca_api_each_stat,
    .largest_free_block = cca_api_largest_free_block,
    .stream_stats = cca_api_stream_stats,
    .set_settings = cca_api_set_settings,
    .set_memory_fraction = cca_api_set_memory_fraction,
    .get_memory_fraction = cca_api_get_memory_fraction,
    .my_malloc = cca_api_my_malloc,
    .my_free = cca_api_my_free,
    .record_stream = cca_api_record_stream,
    .pool_create = cca_api_pool_create,
    .pool_destroy = cca_api_pool_destroy,
    .pool_use_begin = cca_api_pool_use_begin,
    .pool_use_end = cca_api_pool_use_end,
    .pool_stats = cca_api_pool_stats,
    .pool_snapshot = cca_api_pool_snapshot,
    .attach_oom_observer = cca_api_attach_oom_observer,
    .attach_trace_tracker = cca_api_attach_trace_tracker,
    .attach_free_memory_callback = cca_api_attach_free_memory_callback,
    .record_memory_history = cca_api_record_memory_history,
    .mark = cca_api_mark,
    .set_user_metadata = cca_api_set_user_metadata,
    .get_user_metadata = cca_api_get_user_metadata,
    .annotate = cca_api_annotate,
    .annotation = cca_api_annotation,
    .allocation_traceback = cca_api_allocation_traceback,
    .snapshot_to_fd = cca_api_snapshot_to_fd,
    .set_memory_reporter = cca_api_set_memory_reporter,
};
