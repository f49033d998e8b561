/* SPDX-License-Identifier: MIT */
/* cca_my_malloc and cca_my_free: behind the table, and as exported functions of the types that
 * torch.cuda.memory.CUDAPluggableAllocator wants: void *(ssize_t, int, cudaStream_t) and
 * void (void *, ssize_t, int, cudaStream_t). */
#include "process/api_own.h"

#include <errno.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/reentry.h"
#include "process/reports.h"
#include "process/state.h"

/* Memory for a described request, or 0; inside the guard. */
static uint64_t serve(const struct cca_request *request, struct cca_heap *heap)
{
    uint64_t addr = 0;
    struct cca_status status = cca_allocator_own_alloc(cca_process_allocator(), heap, request,
                                                       &addr);
    if (status.kind == CCA_NO_MEMORY) {
        cca_process_out_of_memory(heap, request);
    }
    return status.kind == CCA_OK ? addr : 0;
}

CCA_NOINLINE void *cca_api_my_malloc(ptrdiff_t bytes, int device, void *stream)
{
    const void *caller = __builtin_return_address(0);
    int saved_errno = errno;
    struct cca_request request = {.api = CCA_API_OWN};
    struct cca_heap *heap = NULL;
    uint64_t addr = 0;

    if (bytes <= 0 || device < 0 || !cca_process_is_active() || !cca_reentry_enter()) {
        return NULL;
    }
    request.bytes = (size_t)bytes;
    if (cca_process_place(caller, device, stream, &heap, &request.key) == 0) {
        cca_process_describe(&request, false, 1);
        addr = serve(&request, heap);
    }
    cca_reentry_leave();
    cca_reports_flush();
    errno = saved_errno;
    return (void *)(uintptr_t)addr;
}

CCA_NOINLINE void cca_api_my_free(void *ptr, ptrdiff_t bytes, int device, void *stream)
{
    const void *caller = __builtin_return_address(0);
    int saved_errno = errno;
    struct cca_request request = {.api = CCA_API_OWN};
    struct cca_heap *heap = NULL;

    (void)bytes;
    if (ptr == NULL || cca_process_allocator() == NULL || !cca_reentry_enter()) {
        return; /* inside the library the block's lock may be held: it stays live */
    }
    /* A stream that is no more has no work that could still use the memory unseen: a fence over
     * everything is behind it. */
    if (cca_process_place(caller, device, stream, &heap, &request.key) != 0) {
        request.key = CCA_KEY_READY;
    }
    cca_process_describe(&request, true, 1);
    if (cca_allocator_own_free(cca_process_allocator(), (uint64_t)(uintptr_t)ptr, &request) ==
        CCA_FREE_INVALID) {
        cca_log(CCA_LOG_WARN, "cca_my_free of %p: not a live block", ptr);
    }
    cca_reentry_leave();
    cca_reports_flush();
    errno = saved_errno;
}

CCA_EXPORT void *cca_my_malloc(ptrdiff_t bytes, int device, void *stream)
    __attribute__((alias("cca_api_my_malloc")));
CCA_EXPORT void cca_my_free(void *ptr, ptrdiff_t bytes, int device, void *stream)
    __attribute__((alias("cca_api_my_free")));
