/* SPDX-License-Identifier: MIT */
/* The runtime door: argument rules, then one call into the allocator, once the caller's runtime is
 * known to come back through the driver door. Else the call is forwarded with a passage, and served
 * there.
 *
 * It answers successes only. The runtime's last error cannot be set from outside, so a call that
 * must fail is made to fail in the caller's own runtime: the driver door answers that with the
 * error, and the arguments would fail alike should the driver door be missed. */
#include <stdint.h>

#include "base/clock.h"
#include "preload/context.h"
#include "preload/hook.h"
#include "preload/original.h"
#include "preload/passage.h"
#include "preload/serve.h"
#include "preload/valve.h"

/* A size that no device has, and an address that is nobody's. */
#define IMPOSSIBLE_BYTES (SIZE_MAX / 2)
#define IMPOSSIBLE_PTR   ((void *)1)

static const char bypassed[] = "calls of the CUDA runtime do not come back through this library "
                               "(RTLD_DEEPBIND, or another hook of dlsym in front of it)";

/* One call of the program. The async names differ in what a null stream means. */
struct call {
    enum cca_row row;
    const void *caller;
    void *stream; /* of the async calls */
    bool is_async, is_per_thread;
};

/* The real functions may wait: for that time the thread is outside. */
static int real_alloc(const struct call *call, void **ptr, size_t bytes)
{
    void *real = cca_original_runtime(call->row, call->caller);
    if (real == NULL) {
        return CCA_CUDA_NOT_INITIALIZED;
    }
    int depth = cca_reentry_suspend();
    int result = call->is_async ? ((cudaMallocAsync_fn)real)(ptr, bytes, call->stream)
                                : ((cudaMalloc_fn)real)(ptr, bytes);
    cca_reentry_resume(depth);
    return result;
}

static int real_free(const struct call *call, void *ptr)
{
    void *real = cca_original_runtime(call->row, call->caller);
    if (real == NULL) {
        return CCA_CUDA_NOT_INITIALIZED;
    }
    int depth = cca_reentry_suspend();
    int result = call->is_async ? ((cudaFreeAsync_fn)real)(ptr, call->stream)
                                : ((cudaFree_fn)real)(ptr);
    cca_reentry_resume(depth);
    return result;
}

/* Forwards an allocation with a verdict; whether it came by the driver door is in *is_taken_out. */
static int pass_alloc(const struct call *call, enum cca_verdict verdict,
                      const struct cca_request *request, void **ptr, bool *is_taken_out)
{
    struct cca_passage passage = {.verdict = verdict,
                                  .row = call->row,
                                  .argument = request->bytes,
                                  .caller = call->caller,
                                  .request = *request};
    if (verdict == CCA_VERDICT_DECIDE) {
        passage.runtime_version = cca_context_runtime_version(call->caller);
    }
    struct cca_passage outer = cca_passage_begin(&passage);
    int result = real_alloc(call, ptr, request->bytes);
    *is_taken_out = cca_passage_end(&outer);
    return result;
}

static int pass_free(const struct call *call, enum cca_verdict verdict,
                     const struct cca_request *request, void *ptr)
{
    struct cca_passage passage = {.verdict = verdict,
                                  .row = call->row,
                                  .is_free = true,
                                  .argument = (uint64_t)(uintptr_t)ptr};
    struct cca_passing passing = cca_serve_pass_begins(passage.argument, request);
    struct cca_passage outer = cca_passage_begin(&passage);
    int result = real_free(call, ptr);
    (void)cca_passage_end(&outer);
    return cca_serve_pass_ended(&passing, result);
}

/* Without enter. */
static int forward_free(const struct call *call, void *ptr)
{
    bool must_keep = ptr != NULL && cca_serve_must_keep((uint64_t)(uintptr_t)ptr);
    return must_keep ? (int)CCA_CUDA_SUCCESS : real_free(call, ptr);
}

/* A device without memory pools refuses an async call as such; there the plain call says out of
 * memory. */
static CCA_COLD int fail_alloc(const struct call *call)
{
    const struct call plain = {.row = CCA_ROW_cudaMalloc, .caller = call->caller};
    const struct cca_request request = {.bytes = IMPOSSIBLE_BYTES};
    void *unexpected = NULL;
    bool is_taken;
    int result = pass_alloc(call, CCA_VERDICT_FAIL, &request, &unexpected, &is_taken);
    if (CCA_UNLIKELY(result == CCA_CUDA_SUCCESS)) {
        (void)real_free(call, unexpected);
        return CCA_CUDA_OUT_OF_MEMORY;
    }
    return result != CCA_CUDA_OUT_OF_MEMORY && call->is_async ? fail_alloc(&plain) : result;
}

static CCA_COLD int fail_free(const struct call *call)
{
    const struct cca_request request = {.key = CCA_KEY_READY};
    int result = pass_free(call, CCA_VERDICT_FAIL, &request, IMPOSSIBLE_PTR);
    return result != CCA_CUDA_SUCCESS ? result : (int)CCA_CUDA_INVALID_VALUE;
}

/* What was not decided here: the driver door serves it, or passes it on and accounts for it. When
 * nothing came by there, this runtime cannot be followed: what it captures or waits for would not
 * be seen. */
static int forward_alloc(const struct call *call, const struct cca_request *request, void **ptr)
{
    bool is_taken;
    uint64_t began_ns = cca_clock_ns();
    int result = pass_alloc(call, CCA_VERDICT_DECIDE, request, ptr, &is_taken);
    if (is_taken) {
        cca_original_set_reached(call->caller);
        return result;
    }
    cca_hook_count(call->row, CCA_COVERAGE_PASSED);
    if (result == CCA_CUDA_SUCCESS && *ptr != NULL) {
        cca_valve_stop_because(bypassed);
        cca_serve_note_passed(cca_context_for_alloc(call->caller), request,
                              (uint64_t)(uintptr_t)*ptr, began_ns);
    }
    return result;
}

/* The driver itself gives the memory; the accounts are kept here. */
static int pass_and_note(const struct call *call, struct cca_heap *heap,
                         const struct cca_request *request, void **ptr)
{
    bool is_taken;
    cca_serve_make_room(heap, request);
    uint64_t began_ns = cca_clock_ns();
    int result = pass_alloc(call, CCA_VERDICT_PASS, request, ptr, &is_taken);
    cca_serve_note_passed(heap, request, result == CCA_CUDA_SUCCESS ? (uint64_t)(uintptr_t)*ptr : 0,
                          began_ns);
    return result;
}

/* No bytes, or nowhere to put the answer: CUDA has answers of its own. */
static bool is_plain(void *const *ptr, size_t bytes)
{
    return ptr != NULL && bytes != 0;
}

static int finish_alloc(const struct call *call, const struct cca_stream_place *place,
                        const struct cca_request *request, void **ptr)
{
    uint64_t addr = 0;
    enum cca_status_kind kind = call->is_async
                                    ? cca_serve_alloc_async(call->row, place, request, &addr)
                                    : cca_serve_alloc(call->row, place->heap, request, &addr);
    if (CCA_LIKELY(kind == CCA_OK)) {
        *ptr = (void *)(uintptr_t)addr;
        return CCA_CUDA_SUCCESS;
    }
    /* A graph's memory is not the program's to account for. */
    struct cca_heap *heap = place->kind == CCA_STREAM_CAPTURING ? NULL : place->heap;
    return kind == CCA_NO_MEMORY ? fail_alloc(call) : pass_and_note(call, heap, request, ptr);
}

int cudaMalloc(void **ptr, size_t bytes)
{
    const struct call call = {.row = CCA_ROW_cudaMalloc, .caller = CCA_CALLER()};
    if (!is_plain(ptr, bytes) || !cca_hook_enter(call.row)) {
        return real_alloc(&call, ptr, bytes);
    }
    struct cca_stream_place place = {.kind = CCA_STREAM_SERVED};
    struct cca_request request = {.api = CCA_API_MALLOC, .bytes = bytes, .key = CCA_KEY_READY};
    cca_process_describe(&request, false, 1);
    if (CCA_LIKELY(cca_original_is_reached(call.caller))) {
        place.heap = cca_context_for_alloc(call.caller);
    }
    int result = CCA_LIKELY(place.heap != NULL) ? finish_alloc(&call, &place, &request, ptr)
                                                : forward_alloc(&call, &request, ptr);
    cca_hook_leave();
    return result;
}

/* What the allocator has decided. */
static int finish_free(const struct call *call, enum cca_free_result freed,
                       const struct cca_request *request, void *ptr)
{
    switch (freed) {
    case CCA_FREE_DONE: return CCA_CUDA_SUCCESS;
    case CCA_FREE_INVALID: return fail_free(call);
    default: return pass_free(call, CCA_VERDICT_PASS, request, ptr);
    }
}

int cudaFree(void *ptr)
{
    const struct call call = {.row = CCA_ROW_cudaFree, .caller = CCA_CALLER()};
    /* NULL: the idiom that starts the runtime. */
    if (ptr == NULL || !cca_hook_enter(call.row)) {
        return forward_free(&call, ptr);
    }
    int result = cca_context_for_free(call.caller);
    if (CCA_LIKELY(result == CCA_CUDA_SUCCESS)) {
        struct cca_request request = {.api = CCA_API_FREE, .key = CCA_KEY_READY};
        cca_process_describe(&request, true, 1);
        uint64_t addr = (uint64_t)(uintptr_t)ptr;
        result = finish_free(&call, cca_serve_free(call.row, addr, &request), &request, ptr);
    }
    cca_hook_leave();
    return result;
}

/* After enter and description: the place of the stream, where it can be told at this door. */
static int finish_alloc_async(const struct call *call, struct cca_request *request, void **ptr)
{
    struct cca_stream_place place = {.kind = CCA_STREAM_OTHER};
    if (CCA_LIKELY(cca_original_is_reached(call->caller))) {
        place = cca_context_for_stream(call->caller, call->stream, call->is_per_thread);
        request->key = place.key;
    }
    return place.kind == CCA_STREAM_OTHER && place.heap == NULL
               ? forward_alloc(call, request, ptr)
               : finish_alloc(call, &place, request, ptr);
}

static int finish_free_async(const struct call *call, struct cca_request *request, void *ptr,
                             const struct cca_stream_place *place)
{
    uint64_t addr = (uint64_t)(uintptr_t)ptr;
    return finish_free(call, cca_serve_free_async(call->row, place, addr, request), request, ptr);
}

/* The exported functions describe the request themselves: how many of the library's own frames lie
 * between the program and the unwinder must be known. */
int cudaMallocAsync(void **ptr, size_t bytes, void *stream)
{
    const struct call call = {CCA_ROW_cudaMallocAsync, CCA_CALLER(), stream, true, false};
    if (!is_plain(ptr, bytes) || !cca_hook_enter(call.row)) {
        return real_alloc(&call, ptr, bytes);
    }
    struct cca_request request = {
        .api = CCA_API_MALLOC_ASYNC, .bytes = bytes, .key = CCA_KEY_READY};
    cca_process_describe(&request, false, 1);
    int result = finish_alloc_async(&call, &request, ptr);
    cca_hook_leave();
    return result;
}

int cudaMallocAsync_ptsz(void **ptr, size_t bytes, void *stream)
{
    const struct call call = {CCA_ROW_cudaMallocAsync_ptsz, CCA_CALLER(), stream, true, true};
    if (!is_plain(ptr, bytes) || !cca_hook_enter(call.row)) {
        return real_alloc(&call, ptr, bytes);
    }
    struct cca_request request = {
        .api = CCA_API_MALLOC_ASYNC, .bytes = bytes, .key = CCA_KEY_READY};
    cca_process_describe(&request, false, 1);
    int result = finish_alloc_async(&call, &request, ptr);
    cca_hook_leave();
    return result;
}

int cudaFreeAsync(void *ptr, void *stream)
{
    const struct call call = {CCA_ROW_cudaFreeAsync, CCA_CALLER(), stream, true, false};
    if (ptr == NULL || !cca_hook_enter(call.row)) {
        return forward_free(&call, ptr);
    }
    struct cca_stream_place place = cca_context_for_stream(call.caller, stream, false);
    struct cca_request request = {.api = CCA_API_FREE_ASYNC, .key = place.key};
    cca_process_describe(&request, true, 1);
    int result = finish_free_async(&call, &request, ptr, &place);
    cca_hook_leave();
    return result;
}

int cudaFreeAsync_ptsz(void *ptr, void *stream)
{
    const struct call call = {CCA_ROW_cudaFreeAsync_ptsz, CCA_CALLER(), stream, true, true};
    if (ptr == NULL || !cca_hook_enter(call.row)) {
        return forward_free(&call, ptr);
    }
    struct cca_stream_place place = cca_context_for_stream(call.caller, stream, true);
    struct cca_request request = {.api = CCA_API_FREE_ASYNC, .key = place.key};
    cca_process_describe(&request, true, 1);
    int result = finish_free_async(&call, &request, ptr, &place);
    cca_hook_leave();
    return result;
}

/* Runtimes before 12.0 make another device current only in their next call. */
int cudaSetDevice(int device)
{
    if (cca_hook_enter(CCA_ROW_cudaSetDevice)) {
        cca_hook_count(CCA_ROW_cudaSetDevice, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
    cca_context_ask();
    return CCA_FORWARD_RUNTIME(cudaSetDevice, CCA_CALLER(), device);
}
