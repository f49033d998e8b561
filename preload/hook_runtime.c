/* SPDX-License-Identifier: MIT */
/* The runtime door: argument rules, then one call into the allocator.
 *
 * It answers successes only. The runtime's last error cannot be set from outside, so a call that
 * must fail is made to fail in the caller's own runtime, by arguments that fail alike. */
#include <stdint.h>

#include "base/clock.h"
#include "preload/context.h"
#include "preload/hook.h"
#include "preload/original.h"
#include "process/process.h"

/* A size that no device has, and an address that is nobody's. */
#define IMPOSSIBLE_BYTES (SIZE_MAX / 2)
#define IMPOSSIBLE_PTR   ((void *)1)

/* The two names of an async call: they differ in what a null stream means. */
struct async_api {
    enum cca_row malloc_row, free_row;
    bool is_per_thread;
};
static const struct async_api legacy = {CCA_ROW_cudaMallocAsync, CCA_ROW_cudaFreeAsync, false};
static const struct async_api per_thread = {CCA_ROW_cudaMallocAsync_ptsz,
                                            CCA_ROW_cudaFreeAsync_ptsz, true};

/* The real functions may wait: for that time the thread is outside. */
static int real_malloc(const void *caller, void **ptr, size_t bytes)
{
    int depth = cca_reentry_suspend();
    int result = CCA_FORWARD_RUNTIME(cudaMalloc, caller, ptr, bytes);
    cca_reentry_resume(depth);
    return result;
}

static int real_free(const void *caller, void *ptr)
{
    int depth = cca_reentry_suspend();
    int result = CCA_FORWARD_RUNTIME(cudaFree, caller, ptr);
    cca_reentry_resume(depth);
    return result;
}

static int real_malloc_async(const struct async_api *api, const void *caller, void **ptr,
                             size_t bytes, void *stream)
{
    cudaMallocAsync_fn real = (cudaMallocAsync_fn)cca_original_runtime(api->malloc_row, caller);
    if (real == NULL) {
        return CCA_CUDA_NOT_INITIALIZED;
    }
    int depth = cca_reentry_suspend();
    int result = real(ptr, bytes, stream);
    cca_reentry_resume(depth);
    return result;
}

static int real_free_async(const struct async_api *api, const void *caller, void *ptr, void *stream)
{
    cudaFreeAsync_fn real = (cudaFreeAsync_fn)cca_original_runtime(api->free_row, caller);
    if (real == NULL) {
        return CCA_CUDA_NOT_INITIALIZED;
    }
    int depth = cca_reentry_suspend();
    int result = real(ptr, stream);
    cca_reentry_resume(depth);
    return result;
}

static int forward_free(const void *caller, void *ptr)
{
    bool must_keep = ptr != NULL && cca_hook_must_keep((uint64_t)(uintptr_t)ptr);
    return must_keep ? (int)CCA_CUDA_SUCCESS : real_free(caller, ptr);
}

static int forward_free_async(const struct async_api *api, const void *caller, void *ptr,
                              void *stream)
{
    bool must_keep = ptr != NULL && cca_hook_must_keep((uint64_t)(uintptr_t)ptr);
    return must_keep ? (int)CCA_CUDA_SUCCESS : real_free_async(api, caller, ptr, stream);
}

static CCA_COLD int fail_malloc(const void *caller)
{
    void *unexpected = NULL;
    int result = real_malloc(caller, &unexpected, IMPOSSIBLE_BYTES);
    if (CCA_UNLIKELY(result == CCA_CUDA_SUCCESS)) {
        (void)real_free(caller, unexpected);
        return CCA_CUDA_OUT_OF_MEMORY;
    }
    return result;
}

static CCA_COLD int fail_free(const void *caller)
{
    int result = real_free(caller, IMPOSSIBLE_PTR);
    return result != CCA_CUDA_SUCCESS ? result : (int)CCA_CUDA_INVALID_VALUE;
}

/* A device without memory pools refuses the call as such; there the plain call says out of memory.
 */
static CCA_COLD int fail_malloc_async(const struct async_api *api, const void *caller, void *stream)
{
    void *unexpected = NULL;
    int result = real_malloc_async(api, caller, &unexpected, IMPOSSIBLE_BYTES, stream);
    if (CCA_UNLIKELY(result == CCA_CUDA_SUCCESS)) {
        (void)real_free_async(api, caller, unexpected, stream);
        return CCA_CUDA_OUT_OF_MEMORY;
    }
    return result == CCA_CUDA_OUT_OF_MEMORY ? result : fail_malloc(caller);
}

static CCA_COLD int fail_free_async(const struct async_api *api, const void *caller, void *stream)
{
    int result = real_free_async(api, caller, IMPOSSIBLE_PTR, stream);
    return result != CCA_CUDA_SUCCESS ? result : (int)CCA_CUDA_INVALID_VALUE;
}

/* Asks the allocator. OK: *ptr is set and the call is answered. */
static enum cca_status_kind serve(enum cca_row row, struct cca_heap *heap,
                                  const struct cca_request *request, void **ptr)
{
    uint64_t addr = 0;
    struct cca_status status = cca_allocator_alloc(cca_process_allocator(), heap, request, &addr);
    if (CCA_LIKELY(status.kind == CCA_OK)) {
        *ptr = (void *)(uintptr_t)addr;
        cca_hook_count(row, CCA_COVERAGE_SERVED);
        return CCA_OK;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (status.kind == CCA_NO_MEMORY) {
        cca_process_out_of_memory(heap, request);
    }
    return status.kind;
}

/* What is idle here may be what the driver lacks. */
static void make_room(struct cca_heap *heap, const struct cca_request *request)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (heap != NULL && allocator != NULL && cca_allocator_is_stopped(allocator)) {
        cca_allocator_make_room(allocator, heap, request->bytes);
    }
}

static void note_passed(struct cca_heap *heap, const struct cca_request *request, int result,
                        void *const *ptr, uint64_t began_ns)
{
    if (result == CCA_CUDA_SUCCESS && *ptr != NULL) {
        cca_process_passed_alloc(heap, request, (uint64_t)(uintptr_t)*ptr,
                                 cca_clock_ns() - began_ns);
    }
}

/* No bytes, or nowhere to put the answer: CUDA has answers of its own. */
static bool is_plain(void *const *ptr, size_t bytes)
{
    return ptr != NULL && bytes != 0;
}

static int finish_malloc(const void *caller, struct cca_heap *heap,
                         const struct cca_request *request, void **ptr)
{
    switch (serve(CCA_ROW_cudaMalloc, heap, request, ptr)) {
    case CCA_OK: return CCA_CUDA_SUCCESS;
    case CCA_NO_MEMORY: return fail_malloc(caller);
    default: break;
    }
    make_room(heap, request);
    uint64_t began_ns = cca_clock_ns();
    int result = real_malloc(caller, ptr, request->bytes);
    note_passed(heap, request, result, ptr, began_ns);
    return result;
}

int cudaMalloc(void **ptr, size_t bytes)
{
    const void *caller = CCA_CALLER();
    if (!cca_hook_enter(CCA_ROW_cudaMalloc)) {
        return real_malloc(caller, ptr, bytes);
    }
    int result;
    struct cca_heap *heap = is_plain(ptr, bytes) ? cca_context_for_alloc(caller) : NULL;
    if (CCA_LIKELY(heap != NULL)) {
        struct cca_request request = {.api = CCA_API_MALLOC, .bytes = bytes, .key = CCA_KEY_READY};
        cca_process_describe(&request, false, 1);
        result = finish_malloc(caller, heap, &request, ptr);
    } else {
        cca_hook_count(CCA_ROW_cudaMalloc, CCA_COVERAGE_PASSED);
        result = real_malloc(caller, ptr, bytes);
    }
    cca_hook_leave();
    return result;
}

static int pass_free(const void *caller, void *ptr, const struct cca_request *request)
{
    struct cca_passing passing = cca_hook_pass_begins((uint64_t)(uintptr_t)ptr, request);
    return cca_hook_pass_ended(&passing, real_free(caller, ptr));
}

static int finish_free(const void *caller, void *ptr, const struct cca_request *request)
{
    switch (cca_hook_free(CCA_ROW_cudaFree, (uint64_t)(uintptr_t)ptr, request)) {
    case CCA_FREE_DONE: return CCA_CUDA_SUCCESS;
    case CCA_FREE_INVALID: return fail_free(caller);
    default: return pass_free(caller, ptr, request);
    }
}

int cudaFree(void *ptr)
{
    const void *caller = CCA_CALLER();
    /* The idiom that starts the runtime. */
    if (ptr == NULL || !cca_hook_enter(CCA_ROW_cudaFree)) {
        return forward_free(caller, ptr);
    }
    int result = cca_context_for_free(caller);
    if (CCA_LIKELY(result == CCA_CUDA_SUCCESS)) {
        struct cca_request request = {.api = CCA_API_FREE, .key = CCA_KEY_READY};
        cca_process_describe(&request, true, 1);
        result = finish_free(caller, ptr, &request);
    }
    cca_hook_leave();
    return result;
}

static bool is_async_served(const struct cca_stream_place *place)
{
    return place->kind == CCA_STREAM_SERVED && cca_process_config()->async != CCA_ASYNC_FORWARD;
}

static int finish_malloc_async(const struct async_api *api, const void *caller,
                               const struct cca_stream_place *place,
                               const struct cca_request *request, void **ptr, void *stream)
{
    if (CCA_LIKELY(is_async_served(place))) {
        switch (serve(api->malloc_row, place->heap, request, ptr)) {
        case CCA_OK: return CCA_CUDA_SUCCESS;
        case CCA_NO_MEMORY: return fail_malloc_async(api, caller, stream);
        default: break;
        }
    } else {
        cca_hook_count(api->malloc_row, CCA_COVERAGE_PASSED);
    }
    if (place->kind != CCA_STREAM_CAPTURING) {
        make_room(place->heap, request);
    }
    uint64_t began_ns = cca_clock_ns();
    int result = real_malloc_async(api, caller, ptr, request->bytes, stream);
    /* A graph's memory is not the program's to account for. */
    if (place->heap != NULL && place->kind != CCA_STREAM_CAPTURING) {
        note_passed(place->heap, request, result, ptr, began_ns);
    }
    return result;
}

static int finish_free_async(const struct async_api *api, const void *caller,
                             const struct cca_stream_place *place,
                             const struct cca_request *request, void *ptr, void *stream)
{
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    if (CCA_UNLIKELY(place->kind == CCA_STREAM_CAPTURING)) {
        /* Natively an error for memory that is not the graph's; ours must not reach the driver. */
        struct cca_allocator *allocator = cca_process_allocator();
        bool is_ours = allocator != NULL && cca_allocator_look_up(allocator, addr).is_ours;
        return is_ours ? fail_free_async(api, caller, stream)
                       : real_free_async(api, caller, ptr, stream);
    }
    switch (cca_hook_free(api->free_row, addr, request)) {
    case CCA_FREE_DONE: return CCA_CUDA_SUCCESS;
    case CCA_FREE_INVALID: return fail_free_async(api, caller, stream);
    default: break;
    }
    struct cca_passing passing = cca_hook_pass_begins(addr, request);
    return cca_hook_pass_ended(&passing, real_free_async(api, caller, ptr, stream));
}

/* The exported functions describe the request themselves: how many of the library's own frames lie
 * between the program and the unwinder must be known. */
int cudaMallocAsync(void **ptr, size_t bytes, void *stream)
{
    const void *caller = CCA_CALLER();
    if (!is_plain(ptr, bytes) || !cca_hook_enter(CCA_ROW_cudaMallocAsync)) {
        return real_malloc_async(&legacy, caller, ptr, bytes, stream);
    }
    struct cca_stream_place place = cca_context_for_stream(caller, stream, false);
    struct cca_request request = {.api = CCA_API_MALLOC_ASYNC, .bytes = bytes, .key = place.key};
    cca_process_describe(&request, false, 1);
    int result = finish_malloc_async(&legacy, caller, &place, &request, ptr, stream);
    cca_hook_leave();
    return result;
}

int cudaMallocAsync_ptsz(void **ptr, size_t bytes, void *stream)
{
    const void *caller = CCA_CALLER();
    if (!is_plain(ptr, bytes) || !cca_hook_enter(CCA_ROW_cudaMallocAsync_ptsz)) {
        return real_malloc_async(&per_thread, caller, ptr, bytes, stream);
    }
    struct cca_stream_place place = cca_context_for_stream(caller, stream, true);
    struct cca_request request = {.api = CCA_API_MALLOC_ASYNC, .bytes = bytes, .key = place.key};
    cca_process_describe(&request, false, 1);
    int result = finish_malloc_async(&per_thread, caller, &place, &request, ptr, stream);
    cca_hook_leave();
    return result;
}

int cudaFreeAsync(void *ptr, void *stream)
{
    const void *caller = CCA_CALLER();
    if (ptr == NULL || !cca_hook_enter(CCA_ROW_cudaFreeAsync)) {
        return forward_free_async(&legacy, caller, ptr, stream);
    }
    struct cca_stream_place place = cca_context_for_stream(caller, stream, false);
    struct cca_request request = {.api = CCA_API_FREE_ASYNC, .key = place.key};
    cca_process_describe(&request, true, 1);
    int result = finish_free_async(&legacy, caller, &place, &request, ptr, stream);
    cca_hook_leave();
    return result;
}

int cudaFreeAsync_ptsz(void *ptr, void *stream)
{
    const void *caller = CCA_CALLER();
    if (ptr == NULL || !cca_hook_enter(CCA_ROW_cudaFreeAsync_ptsz)) {
        return forward_free_async(&per_thread, caller, ptr, stream);
    }
    struct cca_stream_place place = cca_context_for_stream(caller, stream, true);
    struct cca_request request = {.api = CCA_API_FREE_ASYNC, .key = place.key};
    cca_process_describe(&request, true, 1);
    int result = finish_free_async(&per_thread, caller, &place, &request, ptr, stream);
    cca_hook_leave();
    return result;
}
