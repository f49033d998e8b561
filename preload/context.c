/* SPDX-License-Identifier: MIT */
#include "preload/context.h"

#include <stdint.h>

#include "base/compiler.h"
#include "base/reentry.h"
#include "device/cuda_device.h"
#include "device/cuda_table.h"
#include "preload/aside.h"
#include "preload/original.h"
#include "preload/stream_key.h"
#include "preload/valve.h"

typedef int (*free_fn)(void *ptr);

static struct cca_cuda_contexts contexts;
static CCA_THREAD_LOCAL bool must_ask;

void cca_context_ask(void)
{
    must_ask = true;
}

static CUcontext current_context(const struct cca_cuda_table *table)
{
    CUcontext ctx = NULL;
    return table != NULL && table->ctx_get_current(&ctx) == CUDA_SUCCESS ? ctx : NULL;
}

static struct cca_heap *known_heap(CUcontext ctx)
{
    struct cca_allocator *allocator = cca_process_allocator();
    return ctx != NULL && allocator != NULL
               ? cca_allocator_heap(allocator, (uint64_t)(uintptr_t)ctx)
               : NULL;
}

static int runtime_version(const void *caller)
{
    cudaRuntimeGetVersion_fn get = (cudaRuntimeGetVersion_fn)cca_original_runtime(
        CCA_ROW_cudaRuntimeGetVersion, caller);
    int version = 0;
    return get != NULL && get(&version) == CUDA_SUCCESS ? version : 0;
}

enum up { UP_NO, UP_FOREIGN, UP_YES };

/* A context that has no heap yet gets one, if it is the primary context of its device. */
static CCA_COLD enum up bring_up(const struct cca_cuda_table *table, CUcontext ctx,
                                 const void *caller, struct cca_heap **heap_out)
{
    struct cca_cuda_identity identity;
    struct cca_device device;
    if (cca_cuda_identify(table, ctx, &identity).kind != CCA_OK || !identity.is_primary_active) {
        return UP_NO; /* a handle that survived a reset, too */
    }
    if (!identity.is_primary) {
        return UP_FOREIGN;
    }
    if (!cca_aside_allows(cca_cuda_is_integrated(table, identity.ordinal))) {
        return UP_FOREIGN;
    }
    if (cca_cuda_device_open(&contexts, table, ctx, identity.ordinal, &device) != 0) {
        return UP_FOREIGN;
    }
    cca_process_context_is_up(table->driver_version, runtime_version(caller));
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator == NULL) {
        return UP_FOREIGN;
    }
    cca_valve_replay();
    *heap_out = cca_allocator_attach(allocator, &device, (uint64_t)(uintptr_t)ctx);
    return *heap_out != NULL ? UP_YES : UP_FOREIGN;
}

static int driver_device(const struct cca_cuda_table *table)
{
    CUdevice device = -1;
    return table != NULL && table->ctx_get_device(&device) == CUDA_SUCCESS ? device : -1;
}

static int runtime_device(const void *caller)
{
    cudaGetDevice_fn get = (cudaGetDevice_fn)cca_original_runtime(CCA_ROW_cudaGetDevice, caller);
    int device = -1;
    return get != NULL && get(&device) == CUDA_SUCCESS ? device : -1;
}

int cca_context_device(const void *caller)
{
    int device = must_ask ? -1 : driver_device(cca_original_table());
    return device >= 0 ? device : runtime_device(caller);
}

/* After cudaSetDevice: the current context is that of the runtime's device. Asked until it is. */
static bool device_agrees(const struct cca_cuda_table *table, const void *caller)
{
    if (CCA_LIKELY(!must_ask)) {
        return true;
    }
    int device = driver_device(table);
    if (device < 0 || device != runtime_device(caller)) {
        return false;
    }
    must_ask = false;
    return true;
}

/* The documented idiom: does nothing but start the runtime and make its device's context current.
 */
static int start_runtime(const void *caller)
{
    free_fn real_free = (free_fn)cca_original_runtime(CCA_ROW_cudaFree, caller);
    if (real_free == NULL) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    /* It may take seconds. */
    int depth = cca_reentry_suspend();
    int result = real_free(NULL);
    cca_reentry_resume(depth);
    return result;
}

static enum up look_at_current(const void *caller, struct cca_heap **heap_out)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUcontext ctx = current_context(table);
    if (ctx == NULL || !device_agrees(table, caller)) {
        return UP_NO;
    }
    *heap_out = known_heap(ctx);
    return CCA_LIKELY(*heap_out != NULL) ? UP_YES : bring_up(table, ctx, caller, heap_out);
}

struct cca_heap *cca_context_for_alloc(const void *caller)
{
    struct cca_heap *heap = NULL;
    enum up up = look_at_current(caller, &heap);
    if (CCA_UNLIKELY(up == UP_NO) && start_runtime(caller) == CUDA_SUCCESS) {
        up = look_at_current(caller, &heap);
    }
    return up == UP_YES ? heap : NULL;
}

struct cca_heap *cca_context_current(void)
{
    return known_heap(current_context(cca_original_table()));
}

struct cca_heap *cca_context_for_wait(const void *caller)
{
    const struct cca_cuda_table *table = cca_original_table();
    struct cca_heap *heap = known_heap(current_context(table));
    return heap != NULL && device_agrees(table, caller) ? heap : NULL;
}

bool cca_context_exists(void)
{
    return current_context(cca_original_table()) != NULL;
}

int cca_context_for_free(const void *caller)
{
    return CCA_LIKELY(cca_context_exists()) ? CUDA_SUCCESS : start_runtime(caller);
}

static bool is_default_stream(const void *stream)
{
    return (uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD;
}

bool cca_context_is_own_stream(const void *stream, bool is_per_thread)
{
    return stream == CU_STREAM_PER_THREAD || (stream == NULL && is_per_thread);
}

static bool make_key(const struct cca_cuda_table *table, CUstream stream, bool is_per_thread,
                     cca_key *key_out)
{
    unsigned long long id = 0;
    CUdevice device = 0;
    uint32_t thread = cca_context_is_own_stream(stream, is_per_thread) ? cca_stream_thread() : 0;
    CUresult result = is_per_thread ? table->stream_get_id_ptsz(stream, &id)
                                    : table->stream_get_id(stream, &id);
    if (result == CUDA_SUCCESS && is_default_stream(stream)) {
        result = table->ctx_get_device(&device);
    }
    return result == CUDA_SUCCESS && cca_stream_key(id, device, thread, key_out);
}

static bool is_capturing(const struct cca_cuda_table *table, CUstream stream, bool is_per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = is_per_thread ? table->stream_is_capturing_ptsz(stream, &status)
                                    : table->stream_is_capturing(stream, &status);
    /* An error is the legacy stream's answer while another stream captures. */
    return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static struct cca_heap *heap_of_created(const struct cca_cuda_table *table, const void *caller,
                                        CUstream stream)
{
    CUcontext ctx = NULL;
    if (table->stream_get_ctx(stream, &ctx) != CUDA_SUCCESS || ctx == NULL) {
        return NULL;
    }
    struct cca_heap *heap = known_heap(ctx);
    if (heap == NULL && bring_up(table, ctx, caller, &heap) != UP_YES) {
        return NULL;
    }
    return heap;
}

struct cca_stream_place cca_context_for_stream(const void *caller, void *stream_,
                                               bool is_per_thread)
{
    CUstream stream = stream_;
    struct cca_stream_place place = {CCA_STREAM_OTHER, NULL, CCA_KEY_READY};
    struct cca_heap *current = cca_context_for_alloc(caller);
    const struct cca_cuda_table *table = cca_original_table();
    if (table == NULL || (current == NULL && !cca_context_exists())) {
        return place;
    }
    if (!cca_cuda_table_has_stream_ids(table)) {
        place.heap = current;
        return place;
    }
    if (is_capturing(table, stream, is_per_thread)) {
        place.kind = CCA_STREAM_CAPTURING;
        return place;
    }
    place.heap = is_default_stream(stream) ? current : heap_of_created(table, caller, stream);
    if (place.heap != NULL && make_key(table, stream, is_per_thread, &place.key)) {
        place.kind = CCA_STREAM_SERVED;
    }
    return place;
}

struct cca_stream_place cca_context_of_known_stream(const void *caller, void *stream_,
                                                    bool is_per_thread)
{
    CUstream stream = stream_;
    CUcontext ctx = NULL;
    struct cca_stream_place place = {CCA_STREAM_OTHER, NULL, CCA_KEY_READY};
    const struct cca_cuda_table *table = cca_original_table();
    if (table == NULL || !cca_cuda_table_has_stream_ids(table) || cca_process_allocator() == NULL) {
        return place;
    }
    if (is_default_stream(stream)) {
        place.heap = cca_context_for_wait(caller);
    } else if (table->stream_get_ctx(stream, &ctx) == CUDA_SUCCESS) {
        place.heap = known_heap(ctx);
    }
    if (place.heap != NULL && make_key(table, stream, is_per_thread, &place.key)) {
        place.kind = CCA_STREAM_SERVED;
    }
    return place;
}

bool cca_context_is_created(const void *stream)
{
    return !is_default_stream(stream);
}

bool cca_context_still_captures(void *stream, bool is_per_thread)
{
    const struct cca_cuda_table *table = cca_original_table();
    return table == NULL || !cca_cuda_table_has_stream_ids(table) ||
           is_capturing(table, stream, is_per_thread);
}

bool cca_context_primary_is_up(int device)
{
    const struct cca_cuda_table *table = cca_original_table();
    unsigned flags = 0;
    int is_active = 1;
    return table == NULL || table->primary_get_state(device, &flags, &is_active) != CUDA_SUCCESS ||
           is_active != 0;
}

size_t cca_context_total_bytes(void)
{
    const struct cca_cuda_table *table = cca_original_table();
    size_t free_bytes = 0, total_bytes = 0;
    return table != NULL && table->mem_get_info(&free_bytes, &total_bytes) == CUDA_SUCCESS
               ? total_bytes
               : 0;
}
