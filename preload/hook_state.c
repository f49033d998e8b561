/* SPDX-License-Identifier: MIT */
/* The runtime door, calls that are forwarded while the allocator is told: what waits, what changes
 * or ends a device or a stream, and what asks for free memory. The real calls are made outside
 * enter and leave, since a program may leave a long wait by exit. */
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

/* After a wait of the program: fences may be over. */
static int poll_after(int result)
{
    if (result != CCA_CUDA_SUCCESS || !cca_hook_enter_again()) {
        return result;
    }
    struct cca_heap *heap = cca_context_current();
    if (heap != NULL) {
        cca_allocator_poll(cca_process_allocator(), heap);
    }
    cca_hook_leave();
    return result;
}

int cudaStreamSynchronize(void *stream)
{
    note(CCA_ROW_cudaStreamSynchronize);
    return poll_after(CCA_FORWARD_RUNTIME(cudaStreamSynchronize, CCA_CALLER(), stream));
}

int cudaStreamSynchronize_ptsz(void *stream)
{
    note(CCA_ROW_cudaStreamSynchronize_ptsz);
    return poll_after(CCA_FORWARD_RUNTIME(cudaStreamSynchronize_ptsz, CCA_CALLER(), stream));
}

int cudaDeviceSynchronize(void)
{
    note(CCA_ROW_cudaDeviceSynchronize);
    return poll_after(CCA_FORWARD_RUNTIME(cudaDeviceSynchronize, CCA_CALLER()));
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

int cudaSetDevice(int device)
{
    note(CCA_ROW_cudaSetDevice);
    cca_context_ask();
    return CCA_FORWARD_RUNTIME(cudaSetDevice, CCA_CALLER(), device);
}

int cudaDeviceReset(void)
{
    const void *caller = CCA_CALLER();
    if (cca_hook_enter(CCA_ROW_cudaDeviceReset)) {
        cca_hook_count(CCA_ROW_cudaDeviceReset, CCA_COVERAGE_PASSED);
        struct cca_allocator *allocator = cca_process_allocator();
        int device = allocator != NULL ? cca_context_device(caller) : -1;
        if (device >= 0) {
            cca_allocator_detach(allocator, device);
        }
        cca_hook_leave();
    }
    return CCA_FORWARD_RUNTIME(cudaDeviceReset, caller);
}

int cudaStreamDestroy(void *stream)
{
    const void *caller = CCA_CALLER();
    if (cca_hook_enter(CCA_ROW_cudaStreamDestroy)) {
        cca_hook_count(CCA_ROW_cudaStreamDestroy, CCA_COVERAGE_PASSED);
        struct cca_stream_place place = cca_context_of_known_stream(stream);
        if (place.kind == CCA_STREAM_SERVED) {
            cca_allocator_stream_ends(cca_process_allocator(), place.heap, place.key);
        }
        cca_hook_leave();
    }
    return CCA_FORWARD_RUNTIME(cudaStreamDestroy, caller, stream);
}
