/* SPDX-License-Identifier: MIT */
#include "preload/context.h"

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/reentry.h"
#include "device/cuda_device.h"
#include "device/cuda_table.h"
#include "preload/aside.h"
#include "preload/captures.h"
#include "preload/ending.h"
#include "preload/original.h"
#include "preload/passage.h"
#include "preload/stream_key.h"
#include "preload/share.h"
#include "preload/valve.h"

typedef int (*free_fn)(void *ptr);

static struct cca_cuda_contexts contexts;
static CCA_THREAD_LOCAL bool must_ask;
static atomic_bool has_own; /* the program has made contexts of its own */

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

int cca_context_runtime_version(const void *caller)
{
    cudaRuntimeGetVersion_fn get = (cudaRuntimeGetVersion_fn)cca_original_runtime(
        CCA_ROW_cudaRuntimeGetVersion, caller);
    int version = 0;
    return get != NULL && get(&version) == CUDA_SUCCESS ? version : 0;
}

/* A device without memory pools refuses allocations in stream order natively. */
static void note_fallback(const struct cca_cuda_table *table, int ordinal)
{
    const struct cca_config *config = cca_process_config();
    if (config->mode == CCA_MODE_CACHE && config->async != CCA_ASYNC_FORWARD &&
        !cca_cuda_has_pools(table, ordinal)) {
        cca_log_and_keep(CCA_LOG_INFO,
                         "device %d has no memory pools: cudaMallocAsync is served from the cache "
                         "all the same (CCA_ASYNC=forward gives the error)",
                         ordinal);
    }
}

/* The heap of a context that is up. */
static CCA_COLD struct cca_heap *attach(const struct cca_cuda_table *table, CUcontext ctx,
                                        int ordinal, bool is_own, const void *caller)
{
    struct cca_device device;
    if (!cca_aside_allows(cca_cuda_is_integrated(table, ordinal))) {
        return NULL;
    }
    if (cca_cuda_device_open(&contexts, table, ctx, ordinal, &device) != 0) {
        /* Fences would not cover its work. */
        cca_valve_stop_because("more contexts came up than can be followed");
        return NULL;
    }
    device.is_own = is_own;
    int runtime = caller != NULL ? cca_context_runtime_version(caller)
                                 : cca_passage_now.runtime_version;
    cca_process_context_is_up(table->driver_version, runtime);
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator == NULL) {
        return NULL;
    }
    note_fallback(table, ordinal);
    cca_valve_replay();
    cca_share_replay();
    cca_captures_replay();
    return cca_allocator_attach(allocator, &device, (uint64_t)(uintptr_t)ctx);
}

/* A context that has no heap yet gets one, if it is the primary context of its device and that is
 * up; or NULL. */
static CCA_COLD struct cca_heap *bring_up(const struct cca_cuda_table *table, CUcontext ctx,
                                          const void *caller)
{
    struct cca_cuda_identity identity;
    /* A handle that survived a reset is not active. */
    if (cca_cuda_identify(table, ctx, &identity).kind != CCA_OK || !identity.is_primary_active ||
        !identity.is_primary || !cca_ending_wait(identity.ordinal)) {
        return NULL;
    }
    return attach(table, ctx, identity.ordinal, false, caller);
}

bool cca_context_is_own(const void *context)
{
    const struct cca_heap *heap = known_heap((CUcontext)(uintptr_t)context);
    return heap != NULL && cca_heap_is_own(heap);
}

void cca_context_gone(const void *context)
{
    cca_cuda_device_close(&contexts, (CUcontext)(uintptr_t)context);
}

bool cca_context_made(const void *context)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUcontext ctx = (CUcontext)(uintptr_t)context;
    struct cca_cuda_identity identity;
    atomic_store_explicit(&has_own, true, memory_order_relaxed);
    return table != NULL && cca_cuda_identify(table, ctx, &identity).kind == CCA_OK &&
           (attach(table, ctx, identity.ordinal, true, NULL) != NULL ||
            cca_process_allocator() == NULL);
}

/* While a release is under way that may end the context, the memory of its heap may be dead, and
 * the context a new one that another thread has brought up under the same handle. */
static struct cca_heap *serving_heap(const struct cca_cuda_table *table, CUcontext ctx,
                                     const void *caller)
{
    struct cca_heap *heap = known_heap(ctx);
    if (CCA_LIKELY(heap != NULL)) {
        int slot = cca_heap_slot(heap);
        if (CCA_LIKELY(!cca_ending_is_held(slot))) {
            return heap;
        }
        if (!cca_ending_wait(slot)) {
            return NULL;
        }
        heap = known_heap(ctx);
    }
    return heap != NULL ? heap : bring_up(table, ctx, caller);
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

/* After cudaSetDevice: the current context is that of the runtime's device. Asked until it is. */
static bool device_agrees(const struct cca_cuda_table *table, const void *caller)
{
    if (CCA_LIKELY(!must_ask) || caller == NULL) {
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

struct cca_heap *cca_context_for_alloc(const void *caller)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUcontext ctx = current_context(table);
    if (ctx == NULL || !device_agrees(table, caller)) {
        return NULL;
    }
    return serving_heap(table, ctx, caller);
}

struct cca_heap *cca_context_known_heap(const void *context)
{
    CUcontext ctx = (CUcontext)(uintptr_t)context;
    return known_heap(ctx != NULL ? ctx : current_context(cca_original_table()));
}

int cca_context_for_free(const void *caller)
{
    return CCA_LIKELY(current_context(cca_original_table()) != NULL) ? CUDA_SUCCESS
                                                                     : start_runtime(caller);
}

static bool is_default_stream(const void *stream)
{
    return (uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD;
}

bool cca_context_is_own_stream(const void *stream, bool is_per_thread)
{
    return stream == CU_STREAM_PER_THREAD || (stream == NULL && is_per_thread);
}

/* `heap`: of the stream's context. */
static bool make_key(const struct cca_cuda_table *table, const struct cca_heap *heap,
                     CUstream stream, bool is_per_thread, cca_key *key_out)
{
    unsigned long long id = 0;
    int slot = is_default_stream(stream) ? cca_heap_slot(heap) : 0;
    uint32_t thread = cca_context_is_own_stream(stream, is_per_thread) ? cca_stream_thread() : 0;
    CUresult result = is_per_thread ? table->stream_get_id_ptsz(stream, &id)
                                    : table->stream_get_id(stream, &id);
    return result == CUDA_SUCCESS && cca_stream_key(id, slot, thread, key_out);
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
    return serving_heap(table, ctx, caller);
}

struct cca_stream_place cca_context_for_stream(const void *caller, void *stream_,
                                               bool is_per_thread)
{
    CUstream stream = stream_;
    struct cca_stream_place place = {CCA_STREAM_OTHER, NULL, CCA_KEY_READY};
    struct cca_heap *current = cca_context_for_alloc(caller);
    const struct cca_cuda_table *table = cca_original_table();
    if (table == NULL || (current == NULL && current_context(table) == NULL)) {
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
    if (place.heap != NULL && make_key(table, place.heap, stream, is_per_thread, &place.key)) {
        place.kind = CCA_STREAM_SERVED;
    }
    return place;
}

struct cca_stream_place cca_context_of_known_stream(void *stream_, bool is_per_thread)
{
    CUstream stream = stream_;
    CUcontext ctx = NULL;
    struct cca_stream_place place = {CCA_STREAM_OTHER, NULL, CCA_KEY_READY};
    const struct cca_cuda_table *table = cca_original_table();
    if (table == NULL || !cca_cuda_table_has_stream_ids(table) || cca_process_allocator() == NULL) {
        return place;
    }
    if (is_default_stream(stream)) {
        place.heap = cca_context_known_heap(NULL);
    } else if (table->stream_get_ctx(stream, &ctx) == CUDA_SUCCESS) {
        place.heap = known_heap(ctx);
    }
    if (place.heap != NULL && make_key(table, place.heap, stream, is_per_thread, &place.key)) {
        place.kind = CCA_STREAM_SERVED;
    }
    return place;
}

bool cca_context_has_stream_ids(void)
{
    const struct cca_cuda_table *table = cca_original_table();
    return table != NULL && cca_cuda_table_has_stream_ids(table);
}

bool cca_context_key_of_default(const struct cca_heap *heap, void *stream, cca_key *key_out)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUcontext ctx = (CUcontext)(uintptr_t)cca_heap_context(heap), popped = NULL;
    if (ctx == NULL || !cca_context_has_stream_ids()) {
        return false;
    }
    bool is_current = current_context(table) == ctx;
    if (!is_current && table->ctx_push(ctx) != CUDA_SUCCESS) {
        return false;
    }
    bool is_known = make_key(table, heap, stream, false, key_out);
    if (!is_current) {
        (void)table->ctx_pop(&popped);
    }
    return is_known;
}

void cca_context_note_stream(cca_key key, void *stream)
{
    cca_cuda_streams_note(&contexts.streams, key, stream);
}

bool cca_context_is_created(const void *stream)
{
    return !is_default_stream(stream);
}

bool cca_context_still_captures(void *stream, bool is_per_thread)
{
    const struct cca_cuda_table *table = cca_original_table();
    if (table == NULL || table->stream_is_capturing == NULL ||
        (is_per_thread && table->stream_is_capturing_ptsz == NULL)) {
        return true;
    }
    return is_capturing(table, stream, is_per_thread);
}

const void *cca_context_of_stream(void *stream)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUcontext ctx = current_context(table);
    if (ctx != NULL && !is_default_stream(stream) && table->stream_get_ctx != NULL) {
        (void)table->stream_get_ctx(stream, &ctx);
    }
    return ctx;
}

const void *cca_context_primary(int device)
{
    const struct cca_cuda_table *table = cca_original_table();
    unsigned flags = 0;
    int is_active = 0;
    CUcontext ctx = NULL;
    if (table == NULL || table->primary_get_state(device, &flags, &is_active) != CUDA_SUCCESS ||
        !is_active || table->primary_retain(&ctx, device) != CUDA_SUCCESS) {
        return NULL;
    }
    (void)table->primary_release(device);
    return ctx;
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

int cca_context_relax(void)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return table != NULL && table->exchange_capture_mode(&mode) == CUDA_SUCCESS ? (int)mode : -1;
}

void cca_context_unrelax(int mode_)
{
    CUstreamCaptureMode mode = (CUstreamCaptureMode)mode_;
    if (mode_ >= 0) {
        (void)cca_original_table()->exchange_capture_mode(&mode);
    }
}

int cca_context_driver_device(void)
{
    return driver_device(cca_original_table());
}

static int count_devices(const struct cca_cuda_table *table)
{
    static _Atomic int known;
    int count = atomic_load_explicit(&known, memory_order_relaxed);
    if (CCA_UNLIKELY(count == 0)) {
        if (table->device_get_count == NULL || table->device_get_count(&count) != CUDA_SUCCESS) {
            return 0;
        }
        atomic_store_explicit(&known, count, memory_order_relaxed);
    }
    return count;
}

static void bring_up_others(const struct cca_cuda_table *table, uint64_t up, int count)
{
    for (int device = 0; device < count && device < CCA_DEVICES_MAX; device++) {
        CUcontext ctx = (up >> device & 1) == 0 ? (CUcontext)cca_context_primary(device) : NULL;
        if (CCA_UNLIKELY(ctx != NULL)) {
            (void)bring_up(table, ctx, NULL);
        }
    }
}

void cca_context_find_others(void)
{
    const struct cca_cuda_table *table = cca_original_table();
    struct cca_allocator *allocator = cca_process_allocator();
    int count = table != NULL && allocator != NULL ? count_devices(table) : 0;
    bool is_shared = count > 1 || atomic_load_explicit(&has_own, memory_order_relaxed);
    if (CCA_UNLIKELY(is_shared) && cca_ending_look_begins()) {
        bring_up_others(table, cca_allocator_up_mask(allocator), count);
        cca_ending_look_over();
    }
}
