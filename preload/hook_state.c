/* SPDX-License-Identifier: MIT */
/* The runtime door, calls that are forwarded while the allocator is told: what waits, what changes
 * or ends a device or a stream, and what asks for free memory. The real calls are made outside
 * enter and leave, since a program may leave a long wait by exit. */
#include <stdint.h>

#include "preload/context.h"
#include "preload/hook.h"
#include "preload/valve.h"
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

static struct wait begin_stream_wait(enum cca_row row, const void *caller, void *stream,
                                     bool is_per_thread)
{
    struct wait wait = {0};
    if (!cca_hook_enter(row)) {
        return wait;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (cca_process_allocator() != NULL) {
        struct cca_stream_place place = cca_context_of_known_stream(caller, stream, is_per_thread);
        wait = begin_wait(place.heap, place.key, place.kind == CCA_STREAM_SERVED);
    }
    cca_hook_leave();
    return wait;
}

static struct wait begin_device_wait(enum cca_row row, const void *caller)
{
    struct wait wait = {0};
    if (!cca_hook_enter(row)) {
        return wait;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (cca_process_allocator() != NULL) {
        wait = begin_wait(cca_context_for_wait(caller), CCA_KEY_READY, true);
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

int cudaStreamSynchronize(void *stream)
{
    const void *caller = CCA_CALLER();
    struct wait wait = begin_stream_wait(CCA_ROW_cudaStreamSynchronize, caller, stream, false);
    return end_wait(&wait, CCA_FORWARD_RUNTIME(cudaStreamSynchronize, caller, stream));
}

int cudaStreamSynchronize_ptsz(void *stream)
{
    const void *caller = CCA_CALLER();
    struct wait wait = begin_stream_wait(CCA_ROW_cudaStreamSynchronize_ptsz, caller, stream, true);
    return end_wait(&wait, CCA_FORWARD_RUNTIME(cudaStreamSynchronize_ptsz, caller, stream));
}

int cudaDeviceSynchronize(void)
{
    const void *caller = CCA_CALLER();
    struct wait wait = begin_device_wait(CCA_ROW_cudaDeviceSynchronize, caller);
    return end_wait(&wait, CCA_FORWARD_RUNTIME(cudaDeviceSynchronize, caller));
}

int cudaThreadSynchronize(void)
{
    const void *caller = CCA_CALLER();
    struct wait wait = begin_device_wait(CCA_ROW_cudaThreadSynchronize, caller);
    return end_wait(&wait, CCA_FORWARD_RUNTIME(cudaThreadSynchronize, caller));
}

int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    note(CCA_ROW_cudaMemGetInfo);
    int result = CCA_FORWARD_RUNTIME(cudaMemGetInfo, CCA_CALLER(), free_bytes, total_bytes);
    if (result != CCA_CUDA_SUCCESS || free_bytes == NULL || !cca_hook_enter_again()) {
        return result;
    }
    struct cca_heap *heap = cca_context_current();
    size_t total = total_bytes != NULL ? *total_bytes : cca_context_total_bytes();
    if (heap != NULL && total != 0 && cca_process_config()->mem_get_info == CCA_INFO_ADJUSTED) {
        cca_allocator_adjust_mem_info(cca_process_allocator(), heap, free_bytes, total);
    }
    cca_hook_leave();
    return result;
}

/* Memory that is not served, out of the same device: what the cache holds idle goes back first
 * where it would be missed. A row is padded by less than this. */
enum { PITCH_PAD = 512 };

int cudaMallocPitch(void **ptr, size_t *pitch, size_t width_bytes, size_t height)
{
    if (cca_hook_enter(CCA_ROW_cudaMallocPitch)) {
        cca_hook_count(CCA_ROW_cudaMallocPitch, CCA_COVERAGE_PASSED);
        struct cca_heap *heap = cca_context_current();
        size_t bytes;
        if (heap != NULL && !__builtin_mul_overflow(width_bytes + PITCH_PAD, height, &bytes)) {
            cca_allocator_make_room(cca_process_allocator(), heap, bytes);
        }
        cca_hook_leave();
    }
    return CCA_FORWARD_RUNTIME(cudaMallocPitch, CCA_CALLER(), ptr, pitch, width_bytes, height);
}

int cudaSetDevice(int device)
{
    note(CCA_ROW_cudaSetDevice);
    cca_context_ask();
    return CCA_FORWARD_RUNTIME(cudaSetDevice, CCA_CALLER(), device);
}

static void before_reset(enum cca_row row, const void *caller)
{
    if (cca_hook_enter(row)) {
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        struct cca_allocator *allocator = cca_process_allocator();
        int device = allocator != NULL ? cca_context_device(caller) : -1;
        if (device >= 0) {
            cca_allocator_detach(allocator, device);
        }
        cca_hook_leave();
    }
}

int cudaDeviceReset(void)
{
    const void *caller = CCA_CALLER();
    before_reset(CCA_ROW_cudaDeviceReset, caller);
    return CCA_FORWARD_RUNTIME(cudaDeviceReset, caller);
}

int cudaThreadExit(void)
{
    const void *caller = CCA_CALLER();
    before_reset(CCA_ROW_cudaThreadExit, caller);
    return CCA_FORWARD_RUNTIME(cudaThreadExit, caller);
}

int cudaStreamDestroy(void *stream)
{
    const void *caller = CCA_CALLER();
    if (cca_hook_enter(CCA_ROW_cudaStreamDestroy)) {
        cca_hook_count(CCA_ROW_cudaStreamDestroy, CCA_COVERAGE_PASSED);
        struct cca_stream_place place = {.kind = CCA_STREAM_OTHER};
        if (cca_context_is_created(stream)) {
            place = cca_context_of_known_stream(caller, stream, false);
        }
        if (place.kind == CCA_STREAM_SERVED) {
            cca_allocator_stream_ends(cca_process_allocator(), place.heap, place.key);
        }
        cca_hook_leave();
    }
    return cca_valve_after_destroy(stream, CCA_FORWARD_RUNTIME(cudaStreamDestroy, caller, stream));
}
