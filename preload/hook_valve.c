/* SPDX-License-Identifier: MIT */
#include "preload/valve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/log.h"
#include "preload/context.h"
#include "preload/hook.h"
#include "preload/stream_key.h"
#include "process/process.h"

/* The first row that came before any context, as row + 1; 0 = none. */
static _Atomic int early;

void cca_valve_stop(enum cca_row row)
{
    if (cca_process_allocator() == NULL) {
        int none = 0;
        (void)atomic_compare_exchange_strong(&early, &none, (int)row + 1);
    }
    /* Asked again after the note: an allocator made in between has perhaps replayed already. */
    if (cca_process_allocator() != NULL) {
        cca_process_stop_caching(cca_row_name(row));
    }
}

static void close_valve(enum cca_row row)
{
    if (cca_hook_enter(row)) {
        cca_valve_stop(row);
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
}

/* Captures under way, so that each is told to the allocator once when it begins and once when it
 * ends. One that finds no place is never ended: the safe side. */
enum { CAPTURES_MAX = 64 };
struct capture {
    bool is_open;
    bool is_counted; /* the allocator, which a later context may make, knows of it */
    void *stream;
    uint32_t thread; /* of a thread's own stream, whose handle is that of other threads', too */
};
static struct capture captures[CAPTURES_MAX];
static int lost_captures;         /* found no place and were not counted */
static _Atomic int capture_count; /* open ones in the table */
static pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t thread_of(void *stream, bool is_per_thread)
{
    return cca_context_is_own_stream(stream, is_per_thread) ? cca_stream_thread() : 0;
}

/* Under the lock: what began before there was an allocator. */
static void count_early_captures(struct cca_allocator *allocator)
{
    for (int i = 0; i < CAPTURES_MAX; i++) {
        if (captures[i].is_open && !captures[i].is_counted) {
            captures[i].is_counted = true;
            cca_allocator_capture_begins(allocator);
        }
    }
    for (; lost_captures > 0; lost_captures--) {
        cca_allocator_capture_begins(allocator);
    }
}

static void remember_capture(void *stream, bool is_per_thread, bool is_counted)
{
    int place = 0;
    pthread_mutex_lock(&captures_lock);
    while (place < CAPTURES_MAX && captures[place].is_open) {
        place++;
    }
    if (place < CAPTURES_MAX) {
        captures[place] = (struct capture){.is_open = true,
                                           .is_counted = is_counted,
                                           .stream = stream,
                                           .thread = thread_of(stream, is_per_thread)};
        atomic_fetch_add(&capture_count, 1);
    } else if (!is_counted) {
        lost_captures++;
    }
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL) {
        count_early_captures(allocator);
    }
    pthread_mutex_unlock(&captures_lock);
}

static void forget_capture(void *stream, bool is_per_thread)
{
    uint32_t thread = thread_of(stream, is_per_thread);
    bool was_counted = false;
    pthread_mutex_lock(&captures_lock);
    for (int i = 0; i < CAPTURES_MAX; i++) {
        if (captures[i].is_open && captures[i].stream == stream && captures[i].thread == thread) {
            captures[i].is_open = false;
            was_counted = captures[i].is_counted;
            atomic_fetch_sub(&capture_count, 1);
            break;
        }
    }
    pthread_mutex_unlock(&captures_lock);
    struct cca_allocator *allocator = cca_process_allocator();
    if (was_counted && allocator != NULL) {
        cca_allocator_capture_ends(allocator);
    }
}

/* Before the real call and after it. */
struct beginning {
    bool is_ours;    /* this call is followed */
    bool is_counted; /* the allocator was told */
};

static struct beginning before_capture(enum cca_row row)
{
    struct beginning beginning = {0};
    if (!cca_hook_enter(row)) {
        return beginning;
    }
    beginning.is_ours = true;
    cca_valve_stop(row);
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL) {
        beginning.is_counted = true;
        cca_allocator_capture_begins(allocator);
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    cca_hook_leave();
    return beginning;
}

static int after_begin(struct beginning beginning, void *stream, bool is_per_thread, int result)
{
    if (!beginning.is_ours || !cca_hook_enter_again()) {
        return result;
    }
    struct cca_allocator *allocator = cca_process_allocator();
    if (result == CCA_CUDA_SUCCESS) {
        remember_capture(stream, is_per_thread, beginning.is_counted);
    } else if (beginning.is_counted && allocator != NULL) {
        cca_allocator_capture_ends(allocator);
    }
    cca_hook_leave();
    return result;
}

/* A call that fails may have ended the capture, an invalidated one, or not. */
static int after_end(enum cca_row row, void *stream, bool is_per_thread, int result)
{
    if (!cca_hook_enter(row)) {
        return result;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (atomic_load(&capture_count) != 0 &&
        (result == CCA_CUDA_SUCCESS || !cca_context_still_captures(stream, is_per_thread))) {
        forget_capture(stream, is_per_thread);
    }
    cca_hook_leave();
    return result;
}

int cca_valve_after_destroy(void *stream, int result)
{
    if (result == CCA_CUDA_SUCCESS && atomic_load(&capture_count) != 0 && cca_hook_enter_again()) {
        forget_capture(stream, false);
        cca_hook_leave();
    }
    return result;
}

void cca_valve_replay(void)
{
    int row = atomic_load(&early);
    if (CCA_UNLIKELY(row != 0)) {
        cca_process_stop_caching(cca_row_name((enum cca_row)(row - 1)));
    }
    pthread_mutex_lock(&captures_lock);
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL) {
        count_early_captures(allocator);
    }
    pthread_mutex_unlock(&captures_lock);
}

/* The hooks of all VALVE and CAPTURE rows. */
#define ARGS(...)                  __VA_ARGS__
#define FORWARD_RUNTIME(name, ...) CCA_FORWARD_RUNTIME(name, CCA_CALLER(), __VA_ARGS__)
#define FORWARD_DRIVER(name, ...)  CCA_FORWARD_DRIVER(name, __VA_ARGS__)
#define DEFINE_VALVE(name, door, is_per_thread, params, args) \
    int name params                                           \
    {                                                         \
        close_valve(CCA_ROW_##name);                          \
        return FORWARD_##door(name, ARGS args);               \
    }
#define DEFINE_CAPTURE(name, door, is_per_thread, params, args)                                \
    int name params                                                                            \
    {                                                                                          \
        struct beginning beginning = before_capture(CCA_ROW_##name);                           \
        return after_begin(beginning, stream, is_per_thread, FORWARD_##door(name, ARGS args)); \
    }
#define DEFINE_SERVE(name, door, is_per_thread, params, args)
#define DEFINE_STATE(name, door, is_per_thread, params, args)
#define DEFINE_GUARD(name, door, is_per_thread, params, args)
#define ROW(name, door, action, since, is_per_thread, params, args) \
    DEFINE_##action(name, door, is_per_thread, params, args)
#include "preload/hooks.def"

int cudaStreamEndCapture(void *stream, void **graph)
{
    int result = CCA_FORWARD_RUNTIME(cudaStreamEndCapture, CCA_CALLER(), stream, graph);
    return after_end(CCA_ROW_cudaStreamEndCapture, stream, false, result);
}

int cudaStreamEndCapture_ptsz(void *stream, void **graph)
{
    int result = CCA_FORWARD_RUNTIME(cudaStreamEndCapture_ptsz, CCA_CALLER(), stream, graph);
    return after_end(CCA_ROW_cudaStreamEndCapture_ptsz, stream, true, result);
}

int cuStreamEndCapture(void *stream, void **graph)
{
    int result = CCA_FORWARD_DRIVER(cuStreamEndCapture, stream, graph);
    return after_end(CCA_ROW_cuStreamEndCapture, stream, false, result);
}

int cuStreamEndCapture_ptsz(void *stream, void **graph)
{
    int result = CCA_FORWARD_DRIVER(cuStreamEndCapture_ptsz, stream, graph);
    return after_end(CCA_ROW_cuStreamEndCapture_ptsz, stream, true, result);
}

int cuStreamDestroy(void *stream)
{
    close_valve(CCA_ROW_cuStreamDestroy);
    return cca_valve_after_destroy(stream, CCA_FORWARD_DRIVER(cuStreamDestroy, stream));
}

int cuStreamDestroy_v2(void *stream)
{
    close_valve(CCA_ROW_cuStreamDestroy_v2);
    return cca_valve_after_destroy(stream, CCA_FORWARD_DRIVER(cuStreamDestroy_v2, stream));
}

/* A handle always means the whole allocation of the driver, here a segment: refused where the
 * importer would get other memory than was meant. */
static bool must_refuse_export(enum cca_row row, uint64_t addr)
{
    if (!cca_hook_enter(row)) {
        return false;
    }
    cca_valve_stop(row);
    struct cca_allocator *allocator = cca_process_allocator();
    struct cca_address_info info = {0};
    if (allocator != NULL) {
        info = cca_allocator_look_up(allocator, addr);
    }
    bool refuse = info.is_ours && !(info.is_live_block && info.fills_segment);
    if (refuse) {
        cca_log(CCA_LOG_WARN, "%s refused for %p: the block does not fill its segment of %zu bytes",
                cca_row_name(row), (void *)(uintptr_t)addr, info.segment_bytes);
    }
    cca_hook_count(row, refuse ? CCA_COVERAGE_SERVED : CCA_COVERAGE_PASSED);
    cca_hook_leave();
    return refuse;
}

int cudaIpcGetMemHandle(void *handle, void *ptr)
{
    const void *caller = CCA_CALLER();
    if (must_refuse_export(CCA_ROW_cudaIpcGetMemHandle, (uint64_t)(uintptr_t)ptr)) {
        /* The runtime keeps the error as its last one, so it must be the one that fails. */
        uint64_t unused[8];
        int result = CCA_FORWARD_RUNTIME(cudaIpcGetMemHandle, caller, unused, (void *)1);
        return result != CCA_CUDA_SUCCESS ? result : (int)CCA_CUDA_INVALID_VALUE;
    }
    return CCA_FORWARD_RUNTIME(cudaIpcGetMemHandle, caller, handle, ptr);
}

int cuIpcGetMemHandle(void *handle, uint64_t addr)
{
    if (must_refuse_export(CCA_ROW_cuIpcGetMemHandle, addr)) {
        return CCA_CUDA_INVALID_VALUE;
    }
    return CCA_FORWARD_DRIVER(cuIpcGetMemHandle, handle, addr);
}

/* The context's memory is gone: blocks of it must not answer for addresses that the driver gives to
 * somebody else. */
static void forget_device(int device)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL && device >= 0) {
        cca_allocator_detach(allocator, device);
    }
}

static void before_reset(enum cca_row row, int device)
{
    if (cca_hook_enter(row)) {
        cca_valve_stop(row);
        forget_device(device);
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
}

int cuDevicePrimaryCtxReset(int device)
{
    before_reset(CCA_ROW_cuDevicePrimaryCtxReset, device);
    return CCA_FORWARD_DRIVER(cuDevicePrimaryCtxReset, device);
}

int cuDevicePrimaryCtxReset_v2(int device)
{
    before_reset(CCA_ROW_cuDevicePrimaryCtxReset_v2, device);
    return CCA_FORWARD_DRIVER(cuDevicePrimaryCtxReset_v2, device);
}

/* The last reference takes the context with it. */
static void after_release(int device)
{
    if (cca_hook_enter_again()) {
        if (!cca_context_primary_is_up(device)) {
            forget_device(device);
        }
        cca_hook_leave();
    }
}

int cuDevicePrimaryCtxRelease(int device)
{
    close_valve(CCA_ROW_cuDevicePrimaryCtxRelease);
    int result = CCA_FORWARD_DRIVER(cuDevicePrimaryCtxRelease, device);
    after_release(device);
    return result;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    close_valve(CCA_ROW_cuDevicePrimaryCtxRelease_v2);
    int result = CCA_FORWARD_DRIVER(cuDevicePrimaryCtxRelease_v2, device);
    after_release(device);
    return result;
}
