/* SPDX-License-Identifier: MIT */
/* The driver door, contexts and streams that end. Memory dies with its context: what the allocator
 * holds of it must not answer for addresses that the driver gives to somebody else. */
#include "preload/captures.h"
#include "preload/context.h"
#include "preload/ending.h"
#include "preload/hook.h"
#include "preload/valve.h"

static void forget_device(int device)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL && device >= 0) {
        cca_allocator_detach(allocator, device);
    }
}

/* The primary context, if captures on its streams would have to be forgotten. */
static const void *capturing_context(int device)
{
    return cca_captures_any() ? cca_context_primary(device) : NULL;
}

static const void *before_reset(enum cca_row row, int device)
{
    const void *context = NULL;
    if (cca_hook_enter(row)) {
        context = capturing_context(device);
        forget_device(device);
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
    return context;
}

static int after_reset(const void *context, int result)
{
    if (result == CCA_CUDA_SUCCESS && context != NULL && cca_hook_enter_again()) {
        cca_captures_context_gone(context);
        cca_hook_leave();
    }
    return result;
}

int cuDevicePrimaryCtxReset(int device)
{
    cca_ending_begins();
    const void *context = before_reset(CCA_ROW_cuDevicePrimaryCtxReset, device);
    int result = after_reset(context, CCA_FORWARD_DRIVER(cuDevicePrimaryCtxReset, device));
    cca_ending_over();
    return result;
}

int cuDevicePrimaryCtxReset_v2(int device)
{
    cca_ending_begins();
    const void *context = before_reset(CCA_ROW_cuDevicePrimaryCtxReset_v2, device);
    int result = after_reset(context, CCA_FORWARD_DRIVER(cuDevicePrimaryCtxReset_v2, device));
    cca_ending_over();
    return result;
}

struct release {
    const void *capturing;
    struct cca_life life;
};

static struct release before_release(enum cca_row row, int device)
{
    struct release release = {0};
    cca_ending_begins();
    cca_ending_hold(device);
    if (cca_hook_enter(row)) {
        release.capturing = capturing_context(device);
        release.life = cca_ending_life(device);
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
    return release;
}

/* The last reference takes the context with it. */
static int after_release(int device, struct release release, int result)
{
    if (result == CCA_CUDA_SUCCESS && cca_hook_enter_again()) {
        if (cca_ending_has_ended(device, &release.life)) {
            forget_device(device);
            cca_captures_context_gone(release.capturing);
        }
        cca_hook_leave();
    }
    cca_ending_let_go(device);
    cca_ending_over();
    return result;
}

int cuDevicePrimaryCtxRelease(int device)
{
    struct release release = before_release(CCA_ROW_cuDevicePrimaryCtxRelease, device);
    return after_release(device, release, CCA_FORWARD_DRIVER(cuDevicePrimaryCtxRelease, device));
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    struct release release = before_release(CCA_ROW_cuDevicePrimaryCtxRelease_v2, device);
    return after_release(device, release, CCA_FORWARD_DRIVER(cuDevicePrimaryCtxRelease_v2, device));
}

/* Contexts of the program's own. */
static int after_create(enum cca_row row, void **ctx, int result)
{
    if (cca_hook_enter(row)) {
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        if (result == CCA_CUDA_SUCCESS && !cca_context_made(*ctx)) {
            cca_valve_stop(row);
        }
        cca_hook_leave();
    }
    return result;
}

int cuCtxCreate(void **ctx, unsigned flags, int device)
{
    return after_create(CCA_ROW_cuCtxCreate, ctx,
                        CCA_FORWARD_DRIVER(cuCtxCreate, ctx, flags, device));
}

int cuCtxCreate_v2(void **ctx, unsigned flags, int device)
{
    return after_create(CCA_ROW_cuCtxCreate_v2, ctx,
                        CCA_FORWARD_DRIVER(cuCtxCreate_v2, ctx, flags, device));
}

int cuCtxCreate_v3(void **ctx, void *params, int count, unsigned flags, int device)
{
    return after_create(CCA_ROW_cuCtxCreate_v3, ctx,
                        CCA_FORWARD_DRIVER(cuCtxCreate_v3, ctx, params, count, flags, device));
}

int cuCtxCreate_v4(void **ctx, void *params, unsigned flags, int device)
{
    return after_create(CCA_ROW_cuCtxCreate_v4, ctx,
                        CCA_FORWARD_DRIVER(cuCtxCreate_v4, ctx, params, flags, device));
}

/* The addresses may be somebody else's before the real call returns, so they are forgotten first.
 */
static void before_destroy(enum cca_row row, const void *context)
{
    if (cca_hook_enter(row)) {
        struct cca_allocator *allocator = cca_process_allocator();
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        if (allocator != NULL) {
            cca_allocator_detach_own(allocator, (uint64_t)(uintptr_t)context);
        }
        cca_hook_leave();
    }
}

static int after_destroy(const void *context, int result)
{
    if (result == CCA_CUDA_SUCCESS && cca_hook_enter_again()) {
        cca_captures_context_gone(context);
        cca_hook_leave();
    }
    return result;
}

int cuCtxDestroy(void *ctx)
{
    before_destroy(CCA_ROW_cuCtxDestroy, ctx);
    return after_destroy(ctx, CCA_FORWARD_DRIVER(cuCtxDestroy, ctx));
}

int cuCtxDestroy_v2(void *ctx)
{
    before_destroy(CCA_ROW_cuCtxDestroy_v2, ctx);
    return after_destroy(ctx, CCA_FORWARD_DRIVER(cuCtxDestroy_v2, ctx));
}

/* The last reference, since taking one more with cuCtxAttach ends caching; what is live then stays
 * known, and so does its context. */
int cuCtxDetach(void *ctx)
{
    struct cca_allocator *allocator = cca_process_allocator();
    bool is_last = allocator != NULL && !cca_allocator_is_stopped(allocator);
    if (is_last) {
        before_destroy(CCA_ROW_cuCtxDetach, ctx);
    }
    int result = CCA_FORWARD_DRIVER(cuCtxDetach, ctx);
    return is_last ? after_destroy(ctx, result) : result;
}

/* What is kept for the order of a stream becomes everybody's before its handle is used again. The
 * place of its capture, or -1. */
static int before_stream_destroy(enum cca_row row, void *stream)
{
    int capture = -1;
    if (cca_hook_enter(row)) {
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        struct cca_stream_place place = {.kind = CCA_STREAM_OTHER};
        if (cca_context_is_created(stream)) {
            place = cca_context_of_known_stream(stream, false);
        }
        if (place.kind == CCA_STREAM_SERVED) {
            cca_allocator_stream_ends(cca_process_allocator(), place.heap, place.key);
        }
        capture = cca_captures_any() ? cca_captures_take(stream) : -1;
        cca_hook_leave();
    }
    return capture;
}

static int after_stream_destroy(int capture, int result)
{
    if (capture >= 0 && cca_hook_enter_again()) {
        cca_captures_taken(capture, result == CCA_CUDA_SUCCESS);
        cca_hook_leave();
    }
    return result;
}

int cuStreamDestroy(void *stream)
{
    int capture = before_stream_destroy(CCA_ROW_cuStreamDestroy, stream);
    return after_stream_destroy(capture, CCA_FORWARD_DRIVER(cuStreamDestroy, stream));
}

int cuStreamDestroy_v2(void *stream)
{
    int capture = before_stream_destroy(CCA_ROW_cuStreamDestroy_v2, stream);
    return after_stream_destroy(capture, CCA_FORWARD_DRIVER(cuStreamDestroy_v2, stream));
}
