/* SPDX-License-Identifier: MIT */
/* Being told of what the library does. Callbacks are attached for the life of the process, also
 * before the first CUDA call; at most four of a kind, but one reporter. See cca.h for what holds
 * for all functions.
 */
#ifndef CCA_CCA_OBSERVERS_H
#define CCA_CCA_OBSERVERS_H

#include "cca_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called when a request fails for want of memory, before the failing call returns, on its thread,
 * with no lock of the library held: it may call CUDA and the library.
 *   -EINVAL  `fn` is NULL
 *   -ENOSPC  there are four already
 *   -EBUSY   called inside the library
 *   -ENOSYS  absent, or the library is off
 * As the out-of-memory and rejection observers of PyTorch's allocator. */
static inline int cca_attach_oom_observer(cca_oom_observer_fn fn, void *user)
{
    CCA_API_1_CALL_(attach_oom_observer, -ENOSYS, (fn, user));
}

/* Called with every entry of the history, also while the history is off, in the order of events, on
 * the thread that caused it and under the lock of the device's heap: it must be quick, must not
 * wait, and must take no lock that is ever held while CUDA or the library is called. What it
 * allocates passes the library by; functions of this interface answer -EBUSY.
 *   -EINVAL  `fn` is NULL
 *   -ENOSPC  there are four already
 *   -EBUSY   called inside the library
 *   -ENOSYS  absent, or the library is off
 * As the trace trackers of PyTorch's allocator. */
static inline int cca_attach_trace_tracker(cca_trace_tracker_fn fn, void *user)
{
    CCA_API_1_CALL_(attach_trace_tracker, -ENOSYS, (fn, user));
}

/* Called when the cache has no block for a request, before the driver is asked, with no lock held:
 * frees memory of its own if it can (cudaFree, cca_my_free, ...) and returns whether it did; then
 * the cache is searched again. `bytes`: the rounded request. It must not allocate.
 *   -EINVAL  `fn` is NULL
 *   -ENOSPC  there are four already
 *   -EBUSY   called inside the library
 *   -ENOSYS  absent, or the library is off
 * As the free-memory callbacks of PyTorch's allocator. */
static inline int cca_attach_free_memory_callback(cca_free_memory_callback_fn fn, void *user)
{
    CCA_API_1_CALL_(attach_free_memory_callback, -ENOSYS, (fn, user));
}

/* Told of every allocation (bytes > 0), of every call that frees (bytes < 0) and of requests that
 * failed for want of memory, with the totals of the device after each. Called on the thread whose
 * call it was, after the library's part of that call and in its order, with no lock held: it may
 * call CUDA and the library, and is told of that afterwards. That freed memory becomes reusable
 * is not reported, nor are segments. There is one: a later one takes its place, NULL ends it; calls
 * that are under way on other threads may still reach the former. -ENOSPC  the allocator has no
 * room for one more listener -EBUSY   called inside the library -ENOSYS  absent, or the library is
 * off As the reportMemoryUsage and reportOutOfMemory of PyTorch's profiler, which only hears of
 * threads that it profiles. */
static inline int cca_set_memory_reporter(cca_memory_reporter_fn fn, void *user)
{
    CCA_API_1_CALL_(set_memory_reporter, -ENOSYS, (fn, user));
}

#ifdef __cplusplus
}
#endif

#endif
