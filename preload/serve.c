/* SPDX-License-Identifier: MIT */
#include "preload/serve.h"

#include "preload/share.h"

#include "base/clock.h"
#include "base/reentry.h"
#include "preload/captures.h"
#include "preload/hook.h"

enum cca_status_kind cca_serve_alloc(enum cca_row row, struct cca_heap *heap,
                                     const struct cca_request *request, uint64_t *addr_out)
{
    struct cca_status status = cca_allocator_alloc(cca_process_allocator(), heap, request,
                                                   addr_out);
    if (CCA_LIKELY(status.kind == CCA_OK)) {
        cca_hook_count(row, CCA_COVERAGE_SERVED);
        return CCA_OK;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (status.kind == CCA_NO_MEMORY) {
        cca_process_out_of_memory(heap, request);
    }
    return status.kind;
}

enum cca_status_kind cca_serve_alloc_async(enum cca_row row, const struct cca_stream_place *place,
                                           const struct cca_request *request, uint64_t *addr_out)
{
    /* Natively such memory outlives a context that the program destroys. */
    if (CCA_UNLIKELY(place->kind != CCA_STREAM_SERVED || cca_heap_is_own(place->heap) ||
                     cca_process_config()->async == CCA_ASYNC_FORWARD ||
                     cca_share_async_is_stopped())) {
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        return CCA_UNSUPPORTED;
    }
    bool must_relax = cca_captures_any();
    int mode = must_relax ? cca_context_relax() : 0;
    enum cca_status_kind kind = cca_serve_alloc(row, place->heap, request, addr_out);
    if (must_relax) {
        cca_context_unrelax(mode);
    }
    return kind;
}

void cca_serve_make_room(struct cca_heap *heap, const struct cca_request *request)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (heap != NULL && allocator != NULL && cca_allocator_is_stopped(allocator)) {
        cca_allocator_make_room(allocator, heap, request->bytes);
    }
}

void cca_serve_note_passed(struct cca_heap *heap, const struct cca_request *request, uint64_t addr,
                           uint64_t began_ns)
{
    if (heap != NULL && addr != 0) {
        cca_process_passed_alloc(heap, request, addr, cca_clock_ns() - began_ns);
    }
}

struct cca_passing cca_serve_pass_begins(uint64_t addr, const struct cca_request *request)
{
    struct cca_passing passing = {.token = cca_process_passed_free(addr, request)};
    passing.began_ns = passing.token >= 0 ? cca_clock_ns() : 0;
    return passing;
}

int cca_serve_pass_ended(const struct cca_passing *passing, int result)
{
    if (passing->token >= 0) {
        cca_process_passed_free_took(passing->token, cca_clock_ns() - passing->began_ns);
    }
    return result;
}

enum cca_free_result cca_serve_free(enum cca_row row, uint64_t addr,
                                    const struct cca_request *request)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (cca_process_config()->mode == CCA_MODE_CACHE) {
        cca_context_find_others();
    }
    enum cca_free_result result = allocator != NULL ? cca_allocator_free(allocator, addr, request)
                                                    : CCA_FREE_FORWARD;
    cca_hook_count(row, result == CCA_FREE_FORWARD ? CCA_COVERAGE_PASSED : CCA_COVERAGE_SERVED);
    return result;
}

enum cca_free_result cca_serve_free_async(enum cca_row row, const struct cca_stream_place *place,
                                          uint64_t addr, const struct cca_request *request)
{
    if (CCA_LIKELY(place->kind != CCA_STREAM_CAPTURING)) {
        return cca_serve_free(row, addr, request);
    }
    struct cca_allocator *allocator = cca_process_allocator();
    bool is_ours = allocator != NULL && cca_allocator_look_up(allocator, addr).is_ours;
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    return is_ours ? CCA_FREE_INVALID : CCA_FREE_FORWARD;
}

bool cca_serve_must_keep(uint64_t addr)
{
    struct cca_allocator *allocator = cca_reentry_inside() ? cca_process_allocator() : NULL;
    return allocator != NULL && cca_allocator_owns_try(allocator, addr) != 0;
}
