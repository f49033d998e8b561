/* SPDX-License-Identifier: MIT */
#include "preload/valve.h"

#include <stdatomic.h>
#include <stdint.h>

#include "base/log.h"
#include "preload/context.h"
#include "preload/hook.h"
#include "process/process.h"

/* The first row of either kind that came before any context, as row + 1; 0 = none. */
static _Atomic int early_plain, early_capture;

void cca_valve_stop(enum cca_row row, enum cca_stop reason)
{
    if (cca_process_allocator() == NULL) {
        int none = 0;
        (void)atomic_compare_exchange_strong(
            reason == CCA_STOP_CAPTURE ? &early_capture : &early_plain, &none, (int)row + 1);
    }
    /* Asked again after the note: an allocator made in between has perhaps replayed already. */
    if (cca_process_allocator() != NULL) {
        cca_process_stop_caching(reason, cca_original_name(row));
    }
}

void cca_valve_replay(void)
{
    int capture = atomic_load(&early_capture), plain = atomic_load(&early_plain);
    if (CCA_UNLIKELY(capture != 0)) {
        cca_process_stop_caching(CCA_STOP_CAPTURE, cca_original_name((enum cca_row)(capture - 1)));
    }
    if (CCA_UNLIKELY(plain != 0)) {
        cca_process_stop_caching(CCA_STOP_PLAIN, cca_original_name((enum cca_row)(plain - 1)));
    }
}

static void close_valve(enum cca_row row, enum cca_stop reason)
{
    if (cca_hook_enter(row)) {
        cca_valve_stop(row, reason);
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
}

/* The hooks of all VALVE and CAPTURE rows. */
#define ARGS(...)                  __VA_ARGS__
#define FORWARD_RUNTIME(name, ...) CCA_FORWARD_RUNTIME(name, CCA_CALLER(), __VA_ARGS__)
#define FORWARD_DRIVER(name, ...)  CCA_FORWARD_DRIVER(name, __VA_ARGS__)
#define DEFINE(name, door, reason, params, args) \
    int name params                              \
    {                                            \
        close_valve(CCA_ROW_##name, reason);     \
        return FORWARD_##door(name, ARGS args);  \
    }
#define DEFINE_VALVE(name, door, params, args)   DEFINE(name, door, CCA_STOP_PLAIN, params, args)
#define DEFINE_CAPTURE(name, door, params, args) DEFINE(name, door, CCA_STOP_CAPTURE, params, args)
#define DEFINE_SERVE(name, door, params, args)
#define DEFINE_STATE(name, door, params, args)
#define DEFINE_GUARD(name, door, params, args)
#define HOOK(name, door, action, since, params, args) DEFINE_##action(name, door, params, args)
#include "preload/hooks.def"
#undef HOOK

/* A handle always means the whole allocation of the driver, here a segment: refused where the
 * importer would get other memory than was meant. */
static bool must_refuse_export(enum cca_row row, uint64_t addr)
{
    if (!cca_hook_enter(row)) {
        return false;
    }
    cca_valve_stop(row, CCA_STOP_PLAIN);
    struct cca_allocator *allocator = cca_process_allocator();
    struct cca_address_info info = {0};
    if (allocator != NULL) {
        info = cca_allocator_look_up(allocator, addr);
    }
    bool refuse = info.is_ours && !(info.is_live_block && info.fills_segment);
    if (refuse) {
        cca_log(CCA_LOG_WARN, "%s refused for %p: the block does not fill its segment of %zu bytes",
                cca_original_name(row), (void *)(uintptr_t)addr, info.segment_bytes);
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
        cca_valve_stop(row, CCA_STOP_PLAIN);
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
    close_valve(CCA_ROW_cuDevicePrimaryCtxRelease, CCA_STOP_PLAIN);
    int result = CCA_FORWARD_DRIVER(cuDevicePrimaryCtxRelease, device);
    after_release(device);
    return result;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    close_valve(CCA_ROW_cuDevicePrimaryCtxRelease_v2, CCA_STOP_PLAIN);
    int result = CCA_FORWARD_DRIVER(cuDevicePrimaryCtxRelease_v2, device);
    after_release(device);
    return result;
}
