/* SPDX-License-Identifier: MIT */
/* The driver door, allocation and free: where every runtime's calls arrive, and those of programs
 * that use the driver itself. The driver has no last error, so failures are answered directly. What
 * the runtime door has decided already comes with a passage. */
#include <stdint.h>

#include "base/clock.h"
#include "preload/context.h"
#include "preload/devices.h"
#include "preload/hook.h"
#include "preload/passage.h"
#include "preload/serve.h"

CCA_THREAD_LOCAL struct cca_passage cca_passage_now;

/* A call at this door, on its own or on behalf of the runtime door. */
struct call {
    enum cca_verdict verdict;
    enum cca_row row;   /* whose coverage is counted */
    const void *caller; /* of the runtime door, or NULL */
    struct cca_request request;
};

static struct call begin_call(enum cca_row row, enum cca_api api, bool is_free, uint64_t argument)
{
    const struct cca_passage *passage = cca_passage_take(is_free, argument);
    struct call call = {.verdict = passage->verdict, .row = row, .request = {.api = api}};
    if (passage->verdict == CCA_VERDICT_DECIDE) {
        call.row = passage->row;
        call.caller = passage->caller;
        call.request = passage->request;
    }
    call.request.key = CCA_KEY_READY;
    call.request.bytes = is_free ? 0 : argument;
    return call;
}

/* A call of the runtime door was seen there. */
static bool enter(const struct call *call)
{
    return call->verdict == CCA_VERDICT_DECIDE ? cca_hook_enter_again() : cca_hook_enter(call->row);
}

/* Nowhere to put the answer, or no bytes: CUDA has answers of its own. */
static bool is_plain_alloc(const struct call *call, const uint64_t *addr)
{
    return addr != NULL && call->request.bytes != 0 && call->verdict != CCA_VERDICT_PASS;
}

/* Inside enter: whether idle memory went back to the driver that is out of it. `heap` may be NULL,
 * then that of the stream or else of the current device is meant. */
static CCA_COLD bool has_made_room(struct cca_heap *heap, void *stream, bool is_per_thread)
{
    if (heap == NULL && stream != NULL) {
        heap = cca_context_of_known_stream(stream, is_per_thread).heap;
    }
    if (heap == NULL) {
        heap = cca_context_known_heap(NULL);
    }
    if (heap == NULL) {
        heap = cca_device_heap(cca_context_driver_device());
    }
    return heap != NULL && cca_allocator_release_idle(cca_process_allocator(), heap) > 0;
}

int cuMemAlloc_v2(uint64_t *addr, size_t bytes)
{
    struct call call = begin_call(CCA_ROW_cuMemAlloc_v2, CCA_API_DRIVER_ALLOC, false, bytes);
    if (call.verdict == CCA_VERDICT_FAIL) {
        return CCA_CUDA_OUT_OF_MEMORY;
    }
    if (!is_plain_alloc(&call, addr) || !enter(&call)) {
        return CCA_OUTSIDE_DRIVER(cuMemAlloc_v2, addr, bytes);
    }
    enum cca_status_kind kind = CCA_UNSUPPORTED;
    struct cca_heap *heap = cca_context_for_alloc(NULL);
    if (CCA_LIKELY(heap != NULL)) {
        if (call.request.stack == 0) {
            cca_process_describe_from(&call.request, false, call.caller, 1);
        }
        kind = cca_serve_alloc(call.row, heap, &call.request, addr);
    } else {
        cca_hook_count(call.row, CCA_COVERAGE_PASSED);
    }
    int result = kind == CCA_NO_MEMORY ? CCA_CUDA_OUT_OF_MEMORY : CCA_CUDA_SUCCESS;
    if (kind != CCA_OK && kind != CCA_NO_MEMORY) {
        cca_serve_make_room(heap, &call.request);
        uint64_t began_ns = cca_clock_ns();
        result = CCA_OUTSIDE_DRIVER(cuMemAlloc_v2, addr, bytes);
        if (CCA_UNLIKELY(result == CCA_CUDA_OUT_OF_MEMORY) && has_made_room(heap, NULL, false)) {
            result = CCA_OUTSIDE_DRIVER(cuMemAlloc_v2, addr, bytes);
        }
        cca_serve_note_passed(heap, &call.request, result == CCA_CUDA_SUCCESS ? *addr : 0,
                              began_ns);
    }
    cca_hook_leave();
    return result;
}

static int answer(enum cca_free_result result)
{
    return result == CCA_FREE_DONE ? CCA_CUDA_SUCCESS : CCA_CUDA_INVALID_VALUE;
}

int cuMemFree_v2(uint64_t addr)
{
    struct call call = begin_call(CCA_ROW_cuMemFree_v2, CCA_API_DRIVER_FREE, true, addr);
    if (call.verdict == CCA_VERDICT_FAIL) {
        return CCA_CUDA_INVALID_VALUE;
    }
    if (addr == 0 || call.verdict == CCA_VERDICT_PASS || !enter(&call)) {
        return addr != 0 && cca_serve_must_keep(addr) ? (int)CCA_CUDA_SUCCESS
                                                      : CCA_OUTSIDE_DRIVER(cuMemFree_v2, addr);
    }
    cca_process_describe(&call.request, true, 1);
    enum cca_free_result freed = cca_serve_free(call.row, addr, &call.request);
    int result = answer(freed);
    if (freed == CCA_FREE_FORWARD) {
        struct cca_passing passing = cca_serve_pass_begins(addr, &call.request);
        result = cca_serve_pass_ended(&passing, CCA_OUTSIDE_DRIVER(cuMemFree_v2, addr));
    }
    cca_hook_leave();
    return result;
}

/* The two names of a call in stream order: they differ in what a null stream means. */
typedef int (*alloc_async_fn)(uint64_t *addr, size_t bytes, void *stream);
typedef int (*free_async_fn)(uint64_t addr, void *stream);

static int real_alloc_async(enum cca_row row, uint64_t *addr, size_t bytes, void *stream)
{
    alloc_async_fn real = (alloc_async_fn)cca_original_driver(row);
    int depth = cca_reentry_suspend();
    int result = real != NULL ? real(addr, bytes, stream) : (int)CCA_CUDA_NOT_INITIALIZED;
    cca_reentry_resume(depth);
    return result;
}

static int real_free_async(enum cca_row row, uint64_t addr, void *stream)
{
    free_async_fn real = (free_async_fn)cca_original_driver(row);
    int depth = cca_reentry_suspend();
    int result = real != NULL ? real(addr, stream) : (int)CCA_CUDA_NOT_INITIALIZED;
    cca_reentry_resume(depth);
    return result;
}

/* Not served, without enter: the program must not be refused what lies idle here. */
static int forward_alloc_async(enum cca_row row, uint64_t *addr, size_t bytes, void *stream)
{
    int result = real_alloc_async(row, addr, bytes, stream);
    if (CCA_UNLIKELY(result == CCA_CUDA_OUT_OF_MEMORY) && cca_hook_enter_again()) {
        if (has_made_room(NULL, stream, cca_rows[row].is_per_thread)) {
            result = real_alloc_async(row, addr, bytes, stream);
        }
        cca_hook_leave();
    }
    return result;
}

/* After enter: `place` and the description are there. */
static int finish_alloc_async(enum cca_row row, struct call *call,
                              const struct cca_stream_place *place, uint64_t *addr, void *stream)
{
    enum cca_status_kind kind = cca_serve_alloc_async(call->row, place, &call->request, addr);
    if (CCA_LIKELY(kind == CCA_OK)) {
        return CCA_CUDA_SUCCESS;
    }
    if (kind == CCA_NO_MEMORY) {
        return CCA_CUDA_OUT_OF_MEMORY;
    }
    /* A graph's memory is not the program's to account for. */
    struct cca_heap *heap = place->kind == CCA_STREAM_CAPTURING ? NULL : place->heap;
    cca_serve_make_room(heap, &call->request);
    uint64_t began_ns = cca_clock_ns();
    int result = real_alloc_async(row, addr, call->request.bytes, stream);
    if (CCA_UNLIKELY(result == CCA_CUDA_OUT_OF_MEMORY) && place->kind != CCA_STREAM_CAPTURING &&
        has_made_room(heap, stream, cca_rows[row].is_per_thread)) {
        result = real_alloc_async(row, addr, call->request.bytes, stream);
    }
    cca_serve_note_passed(heap, &call->request, result == CCA_CUDA_SUCCESS ? *addr : 0, began_ns);
    return result;
}

/* The exported functions describe the request themselves: how many of the library's own frames lie
 * between the program and the unwinder must be known. */
int cuMemAllocAsync(uint64_t *addr, size_t bytes, void *stream)
{
    enum cca_row row = CCA_ROW_cuMemAllocAsync;
    struct call call = begin_call(row, CCA_API_DRIVER_ALLOC_ASYNC, false, bytes);
    if (call.verdict == CCA_VERDICT_FAIL) {
        return CCA_CUDA_OUT_OF_MEMORY;
    }
    if (!is_plain_alloc(&call, addr) || !enter(&call)) {
        return forward_alloc_async(row, addr, bytes, stream);
    }
    struct cca_stream_place place = cca_context_for_stream(NULL, stream, false);
    call.request.key = place.key;
    if (call.request.stack == 0) {
        cca_process_describe_from(&call.request, false, call.caller, 1);
    }
    int result = finish_alloc_async(row, &call, &place, addr, stream);
    cca_hook_leave();
    return result;
}

int cuMemAllocAsync_ptsz(uint64_t *addr, size_t bytes, void *stream)
{
    enum cca_row row = CCA_ROW_cuMemAllocAsync_ptsz;
    struct call call = begin_call(row, CCA_API_DRIVER_ALLOC_ASYNC, false, bytes);
    if (call.verdict == CCA_VERDICT_FAIL) {
        return CCA_CUDA_OUT_OF_MEMORY;
    }
    if (!is_plain_alloc(&call, addr) || !enter(&call)) {
        return forward_alloc_async(row, addr, bytes, stream);
    }
    struct cca_stream_place place = cca_context_for_stream(NULL, stream, true);
    call.request.key = place.key;
    if (call.request.stack == 0) {
        cca_process_describe_from(&call.request, false, call.caller, 1);
    }
    int result = finish_alloc_async(row, &call, &place, addr, stream);
    cca_hook_leave();
    return result;
}

/* False: forwarded, or answered without the allocator; *result_out says how. */
static bool begin_free_async(enum cca_row row, const struct call *call, uint64_t addr, void *stream,
                             int *result_out)
{
    if (call->verdict == CCA_VERDICT_FAIL) {
        *result_out = CCA_CUDA_INVALID_VALUE;
        return false;
    }
    if (addr != 0 && call->verdict != CCA_VERDICT_PASS && enter(call)) {
        return true;
    }
    *result_out = addr != 0 && cca_serve_must_keep(addr) ? (int)CCA_CUDA_SUCCESS
                                                         : real_free_async(row, addr, stream);
    return false;
}

static int finish_free_async(enum cca_row row, const struct call *call,
                             const struct cca_stream_place *place, uint64_t addr, void *stream)
{
    enum cca_free_result freed = cca_serve_free_async(call->row, place, addr, &call->request);
    if (freed != CCA_FREE_FORWARD) {
        return answer(freed);
    }
    struct cca_passing passing = cca_serve_pass_begins(addr, &call->request);
    return cca_serve_pass_ended(&passing, real_free_async(row, addr, stream));
}

int cuMemFreeAsync(uint64_t addr, void *stream)
{
    enum cca_row row = CCA_ROW_cuMemFreeAsync;
    struct call call = begin_call(row, CCA_API_DRIVER_FREE_ASYNC, true, addr);
    int result;
    if (!begin_free_async(row, &call, addr, stream, &result)) {
        return result;
    }
    struct cca_stream_place place = cca_context_for_stream(NULL, stream, false);
    call.request.key = place.key;
    cca_process_describe(&call.request, true, 1);
    result = finish_free_async(row, &call, &place, addr, stream);
    cca_hook_leave();
    return result;
}

int cuMemFreeAsync_ptsz(uint64_t addr, void *stream)
{
    enum cca_row row = CCA_ROW_cuMemFreeAsync_ptsz;
    struct call call = begin_call(row, CCA_API_DRIVER_FREE_ASYNC, true, addr);
    int result;
    if (!begin_free_async(row, &call, addr, stream, &result)) {
        return result;
    }
    struct cca_stream_place place = cca_context_for_stream(NULL, stream, true);
    call.request.key = place.key;
    cca_process_describe(&call.request, true, 1);
    result = finish_free_async(row, &call, &place, addr, stream);
    cca_hook_leave();
    return result;
}
