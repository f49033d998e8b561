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

/* A primary context that may end with the call between before and after. */
struct ending {
    const void *capturing;
    struct cca_life life;
    struct cca_heap *heap; /* withdrawn meanwhile, or NULL */
};

static struct ending before_end(enum cca_row row, int device, bool is_reset)
{
    struct ending ending = {0};
    cca_ending_begins();
    cca_ending_hold(device);
    if (cca_hook_enter(row)) {
        struct cca_allocator *allocator = cca_process_allocator();
        ending.capturing = capturing_context(device);
        ending.life = cca_ending_life(device);
        /* A release is the last one perhaps; a reset takes the context with it for certain. */
        if (is_reset && allocator != NULL) {
            ending.heap = cca_allocator_withdraw(allocator, ending.life.context);
        }
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
    return ending;
}

static int after_end(int device, const struct ending *ending, bool is_reset, int result)
{
    bool is_done = result == CCA_CUDA_SUCCESS;
    if ((is_done || ending->heap != NULL) && cca_hook_enter_again()) {
        bool is_gone = is_done && (is_reset || cca_ending_has_ended(device, &ending->life));
        if (ending->heap != NULL) {
            (void)cca_allocator_withdrawn(cca_process_allocator(), ending->heap,
                                          ending->life.context, is_gone);
        }
        if (is_gone) {
            forget_device(device); /* also what has come up meanwhile */
            cca_captures_context_gone(ending->capturing);
        }
        cca_hook_leave();
    }
    cca_ending_let_go(device);
    cca_ending_over();
    return result;
}

#define DEFINE_END(name, is_reset)                                           \
    int name(int device)                                                     \
    {                                                                        \
        struct ending ending = before_end(CCA_ROW_##name, device, is_reset); \
        int result = CCA_FORWARD_DRIVER(name, device);                       \
        return after_end(device, &ending, is_reset, result);                 \
    }
DEFINE_END(cuDevicePrimaryCtxReset, true)
DEFINE_END(cuDevicePrimaryCtxReset_v2, true)
DEFINE_END(cuDevicePrimaryCtxRelease, false)
DEFINE_END(cuDevicePrimaryCtxRelease_v2, false)

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

static struct cca_heap *before_destroy(enum cca_row row, const void *context)
{
    struct cca_heap *heap = NULL;
    if (cca_hook_enter(row)) {
        struct cca_allocator *allocator = cca_process_allocator();
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        if (allocator != NULL && cca_context_is_own(context)) {
            heap = cca_allocator_withdraw(allocator, (uint64_t)(uintptr_t)context);
        }
        cca_hook_leave();
    }
    return heap;
}

static int after_destroy(struct cca_heap *heap, const void *context, int result)
{
    bool is_gone = result == CCA_CUDA_SUCCESS;
    if ((is_gone || heap != NULL) && cca_hook_enter_again()) {
        if (heap != NULL && cca_allocator_withdrawn(cca_process_allocator(), heap,
                                                    (uint64_t)(uintptr_t)context, is_gone)) {
            cca_context_gone(context);
        }
        if (is_gone) {
            cca_captures_context_gone(context);
        }
        cca_hook_leave();
    }
    return result;
}

int cuCtxDestroy(void *ctx)
{
    struct cca_heap *heap = before_destroy(CCA_ROW_cuCtxDestroy, ctx);
    return after_destroy(heap, ctx, CCA_FORWARD_DRIVER(cuCtxDestroy, ctx));
}

int cuCtxDestroy_v2(void *ctx)
{
    struct cca_heap *heap = before_destroy(CCA_ROW_cuCtxDestroy_v2, ctx);
    return after_destroy(heap, ctx, CCA_FORWARD_DRIVER(cuCtxDestroy_v2, ctx));
}

/* The last reference, since taking one more with cuCtxAttach ends caching; what is live then stays
 * known, and so does its context. */
int cuCtxDetach(void *ctx)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator == NULL || cca_allocator_is_stopped(allocator)) {
        return CCA_FORWARD_DRIVER(cuCtxDetach, ctx);
    }
    struct cca_heap *heap = before_destroy(CCA_ROW_cuCtxDetach, ctx);
    return after_destroy(heap, ctx, CCA_FORWARD_DRIVER(cuCtxDetach, ctx));
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
