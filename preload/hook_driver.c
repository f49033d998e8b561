/* SPDX-License-Identifier: MIT */
/* The driver door, as far as it goes: names that a program links. The driver has no last error, so
 * failures are answered directly. */
#include <stdint.h>

#include "preload/context.h"
#include "preload/hook.h"
#include "process/process.h"

enum cca_free_result cca_hook_free(enum cca_row row, uint64_t addr,
                                   const struct cca_request *request)
{
    struct cca_allocator *allocator = cca_process_allocator();
    enum cca_free_result result = allocator != NULL ? cca_allocator_free(allocator, addr, request)
                                                    : CCA_FREE_FORWARD;
    cca_hook_count(row, result == CCA_FREE_FORWARD ? CCA_COVERAGE_PASSED : CCA_COVERAGE_SERVED);
    return result;
}

bool cca_hook_must_keep(uint64_t addr)
{
    struct cca_allocator *allocator = cca_reentry_inside() ? cca_process_allocator() : NULL;
    return allocator != NULL && cca_allocator_owns_try(allocator, addr) != 0;
}

/* Calls of ours to the real functions may wait: for that time the thread is outside. */
static int real_free(uint64_t addr)
{
    int depth = cca_reentry_suspend();
    int result = CCA_FORWARD_DRIVER(cuMemFree_v2, addr);
    cca_reentry_resume(depth);
    return result;
}

static int pass_free(uint64_t addr, const struct cca_request *request)
{
    struct cca_passing passing = cca_hook_pass_begins(addr, request);
    return cca_hook_pass_ended(&passing, real_free(addr));
}

static int forward_free(uint64_t addr)
{
    return addr != 0 && cca_hook_must_keep(addr) ? (int)CCA_CUDA_SUCCESS : real_free(addr);
}

static int answer(enum cca_free_result result)
{
    return result == CCA_FREE_DONE ? CCA_CUDA_SUCCESS : CCA_CUDA_INVALID_VALUE;
}

/* Addresses of 32 bits, from before CUDA 3.2: none of ours. */
int cuMemFree(unsigned addr)
{
    return CCA_FORWARD_DRIVER(cuMemFree, addr);
}

int cuMemFree_v2(uint64_t addr)
{
    if (addr == 0 || !cca_hook_enter(CCA_ROW_cuMemFree_v2)) {
        return forward_free(addr);
    }
    struct cca_request request = {.api = CCA_API_DRIVER_FREE, .key = CCA_KEY_READY};
    cca_process_describe(&request, true, 1);
    enum cca_free_result freed = cca_hook_free(CCA_ROW_cuMemFree_v2, addr, &request);
    int result = freed == CCA_FREE_FORWARD ? pass_free(addr, &request) : answer(freed);
    cca_hook_leave();
    return result;
}

/* Memory of ours stays live where the driver would refuse it. */
static enum cca_free_result free_async(enum cca_row row, const struct cca_stream_place *place,
                                       uint64_t addr, const struct cca_request *request)
{
    if (place->kind != CCA_STREAM_CAPTURING) {
        return cca_hook_free(row, addr, request);
    }
    struct cca_allocator *allocator = cca_process_allocator();
    bool is_ours = allocator != NULL && cca_allocator_look_up(allocator, addr).is_ours;
    return is_ours ? CCA_FREE_INVALID : CCA_FREE_FORWARD;
}

int cuMemFreeAsync(uint64_t addr, void *stream)
{
    if (addr == 0 || !cca_hook_enter(CCA_ROW_cuMemFreeAsync)) {
        return addr != 0 && cca_hook_must_keep(addr)
                   ? (int)CCA_CUDA_SUCCESS
                   : CCA_FORWARD_DRIVER(cuMemFreeAsync, addr, stream);
    }
    struct cca_stream_place place = cca_context_for_stream(NULL, stream, false);
    struct cca_request request = {.api = CCA_API_DRIVER_FREE_ASYNC, .key = place.key};
    cca_process_describe(&request, true, 1);
    enum cca_free_result freed = free_async(CCA_ROW_cuMemFreeAsync, &place, addr, &request);
    int result = answer(freed);
    if (freed == CCA_FREE_FORWARD) {
        struct cca_passing passing = cca_hook_pass_begins(addr, &request);
        result = cca_hook_pass_ended(&passing, CCA_FORWARD_DRIVER(cuMemFreeAsync, addr, stream));
    }
    cca_hook_leave();
    return result;
}

int cuMemFreeAsync_ptsz(uint64_t addr, void *stream)
{
    if (addr == 0 || !cca_hook_enter(CCA_ROW_cuMemFreeAsync_ptsz)) {
        return addr != 0 && cca_hook_must_keep(addr)
                   ? (int)CCA_CUDA_SUCCESS
                   : CCA_FORWARD_DRIVER(cuMemFreeAsync_ptsz, addr, stream);
    }
    struct cca_stream_place place = cca_context_for_stream(NULL, stream, true);
    struct cca_request request = {.api = CCA_API_DRIVER_FREE_ASYNC, .key = place.key};
    cca_process_describe(&request, true, 1);
    enum cca_free_result freed = free_async(CCA_ROW_cuMemFreeAsync_ptsz, &place, addr, &request);
    int result = answer(freed);
    if (freed == CCA_FREE_FORWARD) {
        struct cca_passing passing = cca_hook_pass_begins(addr, &request);
        result = cca_hook_pass_ended(&passing,
                                     CCA_FORWARD_DRIVER(cuMemFreeAsync_ptsz, addr, stream));
    }
    cca_hook_leave();
    return result;
}
