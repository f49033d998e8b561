/* SPDX-License-Identifier: MIT */
/* The driver door, calls that are forwarded while the allocator is told: what waits, and what asks
 * for free memory. The real calls are made outside enter and leave, since a program may leave a
 * long wait by exit. */
#include <stdint.h>

#include "preload/context.h"
#include "preload/hook.h"
#include "process/process.h"

static void note(enum cca_row row)
{
    if (cca_hook_enter(row)) {
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
}

/* A wait of the program: for which heap and stream, and what had been freed before it began. */
struct wait {
    struct cca_heap *heap; /* NULL = nothing of ours */
    cca_key key;
    bool is_known; /* the stream is */
    uint64_t mark;
};

static struct wait begin_wait(struct cca_heap *heap, cca_key key, bool is_known)
{
    struct wait wait = {.heap = heap, .key = key, .is_known = heap != NULL && is_known};
    if (wait.is_known) {
        wait.mark = cca_allocator_sync_mark(cca_process_allocator(), heap);
    }
    return wait;
}

static struct wait begin_stream_wait(enum cca_row row, void *stream, bool is_per_thread)
{
    struct wait wait = {0};
    if (!cca_hook_enter(row)) {
        return wait;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (cca_process_allocator() != NULL) {
        struct cca_stream_place place = cca_context_of_known_stream(stream, is_per_thread);
        wait = begin_wait(place.heap, place.key, place.kind == CCA_STREAM_SERVED);
    }
    cca_hook_leave();
    return wait;
}

/* For a context, the current one when it is NULL. */
static struct wait begin_context_wait(enum cca_row row, const void *context)
{
    struct wait wait = {0};
    if (!cca_hook_enter(row)) {
        return wait;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (cca_process_allocator() != NULL) {
        wait = begin_wait(cca_context_known_heap(context), CCA_KEY_READY, true);
    }
    cca_hook_leave();
    return wait;
}

/* An event says nothing of where it was recorded: only a moment to look. */
static struct wait begin_event_wait(enum cca_row row)
{
    struct wait wait = {0};
    if (!cca_hook_enter(row)) {
        return wait;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (cca_process_allocator() != NULL) {
        wait = begin_wait(cca_context_known_heap(NULL), CCA_KEY_READY, false);
    }
    cca_hook_leave();
    return wait;
}

static int end_wait(const struct wait *wait, int result)
{
    if (result != CCA_CUDA_SUCCESS || wait->heap == NULL || !cca_hook_enter_again()) {
        return result;
    }
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL && wait->is_known) {
        cca_allocator_synchronized(allocator, wait->heap, wait->key, wait->mark);
    } else if (allocator != NULL) {
        cca_allocator_poll(allocator, wait->heap);
    }
    cca_hook_leave();
    return result;
}

int cuStreamSynchronize(void *stream)
{
    struct wait wait = begin_stream_wait(CCA_ROW_cuStreamSynchronize, stream, false);
    return end_wait(&wait, CCA_FORWARD_DRIVER(cuStreamSynchronize, stream));
}

int cuStreamSynchronize_ptsz(void *stream)
{
    struct wait wait = begin_stream_wait(CCA_ROW_cuStreamSynchronize_ptsz, stream, true);
    return end_wait(&wait, CCA_FORWARD_DRIVER(cuStreamSynchronize_ptsz, stream));
}

int cuCtxSynchronize(void)
{
    struct wait wait = begin_context_wait(CCA_ROW_cuCtxSynchronize, NULL);
    return end_wait(&wait, CCA_FORWARD_DRIVER(cuCtxSynchronize));
}

int cuCtxSynchronize_v2(void *ctx)
{
    struct wait wait = begin_context_wait(CCA_ROW_cuCtxSynchronize_v2, ctx);
    return end_wait(&wait, CCA_FORWARD_DRIVER(cuCtxSynchronize_v2, ctx));
}

int cuEventSynchronize(void *event)
{
    struct wait wait = begin_event_wait(CCA_ROW_cuEventSynchronize);
    return end_wait(&wait, CCA_FORWARD_DRIVER(cuEventSynchronize, event));
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    note(CCA_ROW_cuMemGetInfo_v2);
    int result = CCA_FORWARD_DRIVER(cuMemGetInfo_v2, free_bytes, total_bytes);
    if (result != CCA_CUDA_SUCCESS || free_bytes == NULL || !cca_hook_enter_again()) {
        return result;
    }
    struct cca_heap *heap = cca_context_known_heap(NULL);
    size_t total = total_bytes != NULL ? *total_bytes : cca_context_total_bytes();
    if (heap != NULL && total != 0 && cca_process_config()->mem_get_info == CCA_INFO_ADJUSTED) {
        cca_allocator_adjust_mem_info(cca_process_allocator(), heap, free_bytes, total);
    }
    cca_hook_leave();
    return result;
}
