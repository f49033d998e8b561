/* SPDX-License-Identifier: MIT */
/* The functions behind the table of include/cca/cca_table.h, which say there what they return. */
#ifndef CCA_PROCESS_API_H
#define CCA_PROCESS_API_H

#include "cca/cca.h"

#include "alloc/allocator.h"
#include "base/compiler.h"

/* Inside the guard: a signal handler that comes while a lock of a heap is held must not ask for it.
 * In such a handler itself, when it interrupted a call of ours, there is no answer: -EBUSY. Also
 * -EINVAL, -ENODEV. */
int cca_api_with_observer(int device, cca_observer_fn fn, void *user);

/* A call that needs the heap of a device that is up: enters the guard and saves errno. Undone by
 * cca_api_leave, only after 0. -EINVAL (device), -ENODEV, -EBUSY. */
struct cca_api_scope {
    struct cca_allocator *allocator;
    struct cca_heap *heap;
    int saved_errno;
};
int cca_api_enter(struct cca_api_scope *scope, int device) CCA_MUST_CHECK;
void cca_api_leave(const struct cca_api_scope *scope);

/* api_stats.c */
uint64_t cca_api_memory_allocated(int device);
uint64_t cca_api_max_memory_allocated(int device);
uint64_t cca_api_memory_reserved(int device);
uint64_t cca_api_max_memory_reserved(int device);
int cca_api_stat_value(int device, const char *key, int64_t *value_out);
int cca_api_stat_name(unsigned index, char *name_out, size_t name_bytes);
int cca_api_memory_stats(int device, struct cca_memory_figures *figures_out);
int cca_api_each_stat(int device, cca_stat_fn fn, void *user);
int cca_api_reset_peak_memory_stats(int device);
int cca_api_reset_accumulated_memory_stats(int device);
int cca_api_largest_free_block(int device, uint64_t *bytes_out);
int cca_api_stream_stats(int device, void *stream, struct cca_sums_info *sums_out);

struct cca_sums;
struct cca_stat;
/* -EINVAL: the caller's struct is too short. */
int cca_api_put_sums(const struct cca_sums *sums, struct cca_sums_info *sums_out);
void cca_api_put_figures(const struct cca_stat *stats, struct cca_figures *figures_out);

/* api_memory.c */
int cca_api_empty_cache(void);
int cca_api_set_settings(const char *text);
int cca_api_set_memory_fraction(int device, double fraction);
double cca_api_get_memory_fraction(int device);
int cca_api_record_stream(void *ptr, void *stream);

/* api_pools.c */
int cca_api_pool_create(int device, const struct cca_pool_options *options, uint64_t *pool_out);
int cca_api_pool_destroy(int device, uint64_t pool);
int cca_api_pool_use_begin(int device, uint64_t pool, int use, void *stream);
int cca_api_pool_use_end(int device, uint64_t pool);
int cca_api_pool_stats(int device, uint64_t pool, struct cca_sums_info *sums_out,
                       struct cca_figures *reserved_out);
int cca_api_pool_snapshot(int device, uint64_t pool, const char *path);

/* api_history.c */
int cca_api_record_memory_history(const struct cca_history_options *options);
int cca_api_mark(const char *text);
int cca_api_set_user_metadata(const char *text);
const char *cca_api_get_user_metadata(void);
int cca_api_annotate(const void *ptr, const char *text);
int cca_api_annotation(int device, const char *name, int is_end);
int cca_api_allocation_traceback(const void *ptr, cca_frame_fn fn, void *user);
int cca_api_snapshot_to_fd(int fd, const char *format);

/* api_observers.c */
int cca_api_attach_oom_observer(cca_oom_observer_fn fn, void *user);
int cca_api_attach_trace_tracker(cca_trace_tracker_fn fn, void *user);
int cca_api_attach_free_memory_callback(cca_free_memory_callback_fn fn, void *user);

/* reports.c */
int cca_api_set_memory_reporter(cca_memory_reporter_fn fn, void *user);

#endif
