/* SPDX-License-Identifier: MIT */
/* The driver door, calls that let others see memory: devices with peer access, the default memory
 * pools, other processes. All are forwarded; the real calls are made outside enter and leave. */
#include "preload/share.h"

#include <stdatomic.h>
#include <stdint.h>

#include "base/log.h"
#include "preload/context.h"
#include "preload/devices.h"
#include "preload/hook.h"
#include "preload/loader.h"

static atomic_bool is_async_stopped;

/* Pairs that came before the allocator: [i] the other devices. */
static _Atomic uint64_t early_peers[CCA_DEVICES_MAX];

bool cca_share_async_is_stopped(void)
{
    return atomic_load_explicit(&is_async_stopped, memory_order_relaxed);
}

/* CCA_IPC=auto: a program, or a library of it, that refers to the call will want to make it. */
static void look_for_exporters(struct cca_allocator *allocator)
{
    static const char *const names[] = {"cudaIpcGetMemHandle", "cuIpcGetMemHandle", NULL};
    static atomic_bool has_looked;
    struct cca_loader_object object;
    if (cca_process_config()->ipc != CCA_IPC_AUTO || atomic_exchange(&has_looked, true)) {
        return;
    }
    const char *name = cca_loader_importer(names, &object);
    if (name != NULL && cca_allocator_dedicate(allocator)) {
        cca_log_and_keep(CCA_LOG_INFO, "blocks get segments of their own, as %s refers to %s",
                         object.path[0] != '\0' ? object.path : "the program", name);
    }
}

void cca_share_replay(void)
{
    struct cca_allocator *allocator = cca_process_allocator();
    if (allocator != NULL) {
        look_for_exporters(allocator);
    }
    for (int i = 0; allocator != NULL && i < CCA_DEVICES_MAX; i++) {
        uint64_t others = atomic_exchange(&early_peers[i], 0);
        for (; others != 0; others &= others - 1) {
            cca_allocator_note_peers(allocator, i, __builtin_ctzll(others));
        }
    }
}

static bool is_ordinal(int device)
{
    return device >= 0 && device < CCA_DEVICES_MAX;
}

static void note_peers(int device, int other)
{
    if (is_ordinal(device) && is_ordinal(other)) {
        atomic_fetch_or(&early_peers[device], 1ull << other);
        cca_share_replay();
    }
}

int cuCtxEnablePeerAccess(void *ctx, unsigned flags)
{
    enum { ALREADY_ENABLED = 704 };
    int result = CCA_FORWARD_DRIVER(cuCtxEnablePeerAccess, ctx, flags);
    if ((result != CCA_CUDA_SUCCESS && result != ALREADY_ENABLED) ||
        !cca_hook_enter(CCA_ROW_cuCtxEnablePeerAccess)) {
        return result;
    }
    cca_hook_count(CCA_ROW_cuCtxEnablePeerAccess, CCA_COVERAGE_PASSED);
    if (result == CCA_CUDA_SUCCESS) {
        cca_device_forget_peer(ctx);
        note_peers(cca_context_driver_device(), cca_device_of_context(ctx));
    } else if (cca_device_show_peer(ctx)) {
        result = CCA_CUDA_SUCCESS;
    }
    cca_hook_leave();
    return result;
}

/* A context stays in the waits of ours once it had access. */
int cuCtxDisablePeerAccess(void *ctx)
{
    int answer = -1;
    if (cca_hook_enter(CCA_ROW_cuCtxDisablePeerAccess)) {
        cca_hook_count(CCA_ROW_cuCtxDisablePeerAccess, CCA_COVERAGE_PASSED);
        answer = cca_device_hide_peer(ctx);
        cca_hook_leave();
    }
    return answer >= 0 ? answer : CCA_FORWARD_DRIVER(cuCtxDisablePeerAccess, ctx);
}

/* Properties of its pools decide about the memory of these calls from now on; what is out already
 * stays as it is. */
static void stop_async(enum cca_row row)
{
    if (!atomic_exchange(&is_async_stopped, true) && cca_process_config()->mode == CCA_MODE_CACHE) {
        cca_log_and_keep(CCA_LOG_INFO, "asynchronous allocations go to CUDA: the program called %s",
                         cca_row_name(row));
    }
}

static int after_set_pool(enum cca_row row, int result)
{
    if (result == CCA_CUDA_SUCCESS && cca_hook_enter(row)) {
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        stop_async(row);
        cca_hook_leave();
    }
    return result;
}

int cuDeviceSetMemPool(int device, void *pool)
{
    return after_set_pool(CCA_ROW_cuDeviceSetMemPool,
                          CCA_FORWARD_DRIVER(cuDeviceSetMemPool, device, pool));
}

int cuMemSetMemPool(void *location, int type, void *pool)
{
    return after_set_pool(CCA_ROW_cuMemSetMemPool,
                          CCA_FORWARD_DRIVER(cuMemSetMemPool, location, type, pool));
}

/* What is idle in the cache would be idle in the default pool natively. */
int cuMemPoolTrimTo(void *pool, size_t bytes)
{
    if (cca_hook_enter(CCA_ROW_cuMemPoolTrimTo)) {
        int device = cca_device_of_default_pool(pool);
        struct cca_heap *heap = cca_device_heap(device);
        cca_hook_count(CCA_ROW_cuMemPoolTrimTo, CCA_COVERAGE_PASSED);
        if (heap != NULL) {
            (void)cca_allocator_release_idle(cca_process_allocator(), heap);
        }
        cca_hook_leave();
    }
    return CCA_FORWARD_DRIVER(cuMemPoolTrimTo, pool, bytes);
}

/* CUmemAccessDesc. */
struct cca_access {
    int location_type, location; /* 1: a device's ordinal */
    int flags;                   /* 0: no access */
};

/* Memory of ours that is out has access by context, not by pool: so that is opened, too. */
int cuMemPoolSetAccess(void *pool, const struct cca_access *map, size_t count)
{
    int result = CCA_FORWARD_DRIVER(cuMemPoolSetAccess, pool, map, count);
    if (result != CCA_CUDA_SUCCESS || !cca_hook_enter(CCA_ROW_cuMemPoolSetAccess)) {
        return result;
    }
    int owner = cca_device_of_default_pool(pool);
    cca_hook_count(CCA_ROW_cuMemPoolSetAccess, CCA_COVERAGE_PASSED);
    if (owner >= 0) {
        for (size_t i = 0; i < count; i++) {
            if (map[i].location_type == 1 && map[i].location != owner && map[i].flags != 0) {
                cca_device_open_peer(map[i].location, owner);
                note_peers(map[i].location, owner);
            }
        }
        stop_async(CCA_ROW_cuMemPoolSetAccess);
    }
    cca_hook_leave();
    return result;
}

/* Blocks whose address range in their allocation the program has asked for: it knows that a handle
 * means the whole and passes the offset on, as UCX and PyTorch do. The newest of these. */
enum { ASKED_MAX = 256 };
static _Atomic uint64_t asked[ASKED_MAX];
static atomic_uint asked_count;

static bool has_asked(uint64_t addr)
{
    for (int i = 0; i < ASKED_MAX; i++) {
        if (atomic_load_explicit(&asked[i], memory_order_relaxed) == addr) {
            return true;
        }
    }
    return false;
}

int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t addr)
{
    int result = CCA_FORWARD_DRIVER(cuMemGetAddressRange_v2, base, bytes, addr);
    struct cca_allocator *allocator = cca_process_allocator();
    if (result == CCA_CUDA_SUCCESS && allocator != NULL &&
        cca_hook_enter(CCA_ROW_cuMemGetAddressRange_v2)) {
        cca_hook_count(CCA_ROW_cuMemGetAddressRange_v2, CCA_COVERAGE_PASSED);
        if (cca_allocator_look_up(allocator, addr).is_live_block && !has_asked(addr)) {
            unsigned place = atomic_fetch_add(&asked_count, 1) % ASKED_MAX;
            atomic_store_explicit(&asked[place], addr, memory_order_relaxed);
        }
        cca_hook_leave();
    }
    return result;
}

/* A handle always means the whole allocation of the driver, here a segment: refused where the
 * importer would get other memory than was meant. */
static bool must_refuse_export(uint64_t addr)
{
    if (!cca_hook_enter(CCA_ROW_cuIpcGetMemHandle)) {
        return false;
    }
    struct cca_allocator *allocator = cca_process_allocator();
    struct cca_address_info info = {0};
    if (allocator != NULL && cca_process_config()->ipc != CCA_IPC_FORWARD) {
        info = cca_allocator_look_up(allocator, addr);
    }
    bool is_meant = info.fills_segment ||
                    (cca_process_config()->ipc != CCA_IPC_REFUSE && has_asked(addr));
    bool refuse = info.is_ours && !(info.is_live_block && is_meant);
    if (refuse) {
        bool is_late = cca_process_config()->ipc == CCA_IPC_AUTO &&
                       cca_allocator_dedicate(allocator);
        cca_log(CCA_LOG_WARN,
                "cuIpcGetMemHandle refused for %p: the block does not fill its segment of %zu "
                "bytes (CCA_IPC=dedicated gives blocks segments of their own%s)",
                (void *)(uintptr_t)addr, info.segment_bytes,
                is_late ? ", which later blocks have from now on" : "");
    }
    cca_hook_count(CCA_ROW_cuIpcGetMemHandle, refuse ? CCA_COVERAGE_SERVED : CCA_COVERAGE_PASSED);
    cca_hook_leave();
    return refuse;
}

int cuIpcGetMemHandle(void *handle, uint64_t addr)
{
    if (must_refuse_export(addr)) {
        return CCA_CUDA_INVALID_VALUE;
    }
    int result = CCA_FORWARD_DRIVER(cuIpcGetMemHandle, handle, addr);
    if (result == CCA_CUDA_SUCCESS && cca_hook_enter_again()) {
        cca_process_exported(addr);
        cca_hook_leave();
    }
    return result;
}
