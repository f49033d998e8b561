/* SPDX-License-Identifier: MIT */
#include "unit/device/fake_driver.h"

#include <string.h>

#include "support/test.h"

struct fake_driver fake;

void fake_driver_reset(void)
{
    fake = (struct fake_driver){
        .version = 13000,
        .mode = CU_STREAM_CAPTURE_MODE_GLOBAL,
        .error = CUDA_ERROR_INVALID_VALUE,
        .primary = FAKE_CTX(1),
        .device = 3,
        .is_active = 1,
    };
}

static bool fails(void)
{
    return ++fake.calls == fake.fail_at;
}

static CUcontext current(void)
{
    return fake.depth > 0 ? fake.stack[fake.depth - 1] : NULL;
}

static CUresult note(const char *name)
{
    strncpy(fake.called, name, FAKE_NAME_MAX - 1);
    fake.current_then = current();
    fake.mode_then = fake.mode;
    bool is_lost = fake.lost != NULL && fake.lost == current();
    return fails() || is_lost ? fake.error : CUDA_SUCCESS;
}

static CUresult fake_driver_get_version(int *version)
{
    *version = fake.version;
    return fails() ? fake.error : CUDA_SUCCESS;
}

static CUresult fake_ctx_get_current(CUcontext *ctx)
{
    *ctx = current();
    return fails() ? fake.error : CUDA_SUCCESS;
}

static CUresult fake_ctx_push(CUcontext ctx)
{
    if (fails()) {
        return fake.error;
    }
    assert_true(fake.depth < FAKE_STACK_MAX);
    fake.stack[fake.depth++] = ctx;
    return CUDA_SUCCESS;
}

static CUresult fake_ctx_pop(CUcontext *ctx)
{
    assert_true(fake.depth > 0);
    *ctx = fake.stack[--fake.depth];
    return CUDA_SUCCESS;
}

static CUresult fake_ctx_get_device(CUdevice *device)
{
    *device = fake.device;
    return note("cuCtxGetDevice");
}

static CUresult fake_ctx_synchronize(void)
{
    return note("cuCtxSynchronize");
}

static CUresult fake_primary_get_state(CUdevice device, unsigned *flags, int *active)
{
    assert_int_equal(device, fake.device);
    *flags = 0;
    *active = fake.is_active;
    return note("cuDevicePrimaryCtxGetState");
}

static CUresult fake_primary_retain(CUcontext *ctx, CUdevice device)
{
    assert_int_equal(device, fake.device);
    CUresult result = note("cuDevicePrimaryCtxRetain");
    if (result == CUDA_SUCCESS) {
        *ctx = fake.primary;
        fake.references++;
    }
    return result;
}

static CUresult fake_primary_release(CUdevice device)
{
    assert_int_equal(device, fake.device);
    fake.references--;
    return CUDA_SUCCESS;
}

static CUresult fake_mem_alloc(CUdeviceptr *addr, size_t bytes)
{
    *addr = 0x700000000000 + bytes;
    return note("cuMemAlloc_v2");
}

static CUresult fake_mem_free(CUdeviceptr addr)
{
    (void)addr;
    return note("cuMemFree_v2");
}

static CUresult fake_mem_get_info(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = 10;
    *total_bytes = 20;
    return note("cuMemGetInfo_v2");
}

static CUresult fake_event_create(CUevent *event, unsigned flags)
{
    fake.event_flags = flags;
    *event = FAKE_EVENT(1);
    return note("cuEventCreate");
}

static CUresult fake_event_destroy(CUevent event)
{
    assert_ptr_equal(event, FAKE_EVENT(1));
    return note("cuEventDestroy_v2");
}

static CUresult fake_event_query(CUevent event)
{
    assert_ptr_equal(event, FAKE_EVENT(1));
    CUresult result = note("cuEventQuery");
    return result != CUDA_SUCCESS ? result : fake.answer;
}

static CUresult fake_event_synchronize(CUevent event)
{
    assert_ptr_equal(event, FAKE_EVENT(1));
    return note("cuEventSynchronize");
}

static CUresult fake_exchange_capture_mode(CUstreamCaptureMode *mode)
{
    if (fails()) {
        return fake.error;
    }
    CUstreamCaptureMode before = fake.mode;
    fake.mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

static CUresult fake_get_proc_address(const char *name, void **found, int version, uint64_t flags,
                                      int *status)
{
    assert_int_equal(version, fake.version);
    bool is_denied = fake.denies != NULL && strcmp(name, fake.denies) == 0 &&
                     flags == fake.denies_flags;
    *found = is_denied ? NULL : &fake;
    *status = is_denied ? 1 : 0;
    return is_denied ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

static CUresult fake_event_record(CUevent event, CUstream stream)
{
    assert_ptr_equal(event, FAKE_EVENT(1));
    CUresult result = note("cuEventRecord");
    fake.recorded_stream = result == CUDA_SUCCESS ? stream : fake.recorded_stream;
    return result;
}

static CUresult fake_ctx_record_event(CUcontext ctx, CUevent event)
{
    assert_ptr_equal(event, FAKE_EVENT(1));
    fake.recorded_ctx = ctx;
    return note("cuCtxRecordEvent");
}

static CUresult fake_device_get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_INTEGRATED ? device == fake.integrated_device
             : attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED
                 ? !fake.cannot_map
                 : 0;
    return note("cuDeviceGetAttribute");
}

static CUresult fake_device_get_count(int *count)
{
    *count = 1;
    return note("cuDeviceGetCount");
}

static CUresult fake_ctx_enable_peer_access(CUcontext ctx, unsigned flags)
{
    (void)ctx, (void)flags;
    return note("cuCtxEnablePeerAccess");
}

static CUresult fake_device_get_default_pool(CUmemoryPool *pool, CUdevice device)
{
    (void)device;
    *pool = NULL;
    return note("cuDeviceGetDefaultMemPool");
}

static CUresult fake_stream_get_ctx(CUstream stream, CUcontext *ctx)
{
    (void)stream;
    *ctx = fake.primary;
    return note("cuStreamGetCtx");
}

static CUresult fake_ctx_get_id(CUcontext ctx, unsigned long long *id)
{
    *id = (unsigned long long)(uintptr_t)ctx;
    return note("cuCtxGetId");
}

static CUresult fake_stream_get_id(CUstream stream, unsigned long long *id)
{
    (void)stream;
    *id = 7;
    return note("cuStreamGetId");
}

static CUresult fake_stream_get_id_ptsz(CUstream stream, unsigned long long *id)
{
    (void)stream;
    *id = 8;
    return note("cuStreamGetId_ptsz");
}

static CUresult fake_stream_is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = fake.capture_status;
    return note("cuStreamIsCapturing");
}

static CUresult fake_stream_is_capturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
    return fake_stream_is_capturing(stream, status);
}

static CUresult fake_stream_get_capture_info(CUstream stream, CUstreamCaptureStatus *status,
                                             cuuint64_t *id, CUgraph *graph,
                                             const CUgraphNode **nodes, size_t *count)
{
    (void)stream;
    *status = fake.capture_status;
    *id = 77;
    *graph = NULL;
    *nodes = fake.nodes;
    *count = fake.node_count;
    return note("cuStreamGetCaptureInfo_v2");
}

/* As the driver's: without an array the number, with one as many as there is room for. */
static CUresult fake_graph_node_get_dependencies(CUgraphNode node, CUgraphNode *nodes,
                                                 size_t *count)
{
    (void)node;
    size_t room = *count;
    *count = fake.node_count;
    for (size_t i = 0; nodes != NULL && i < room; i++) {
        nodes[i] = i < fake.node_count ? fake.nodes[i] : NULL;
    }
    return note("cuGraphNodeGetDependencies");
}

static CUresult fake_mem_granularity(size_t *bytes, const CUmemAllocationProp *prop,
                                     CUmemAllocationGranularity_flags option)
{
    (void)prop;
    assert_int_equal(option, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    *bytes = FAKE_PAGE;
    return fails() ? fake.error : CUDA_SUCCESS;
}

static CUresult fake_address_reserve(CUdeviceptr *addr, size_t bytes, size_t alignment,
                                     CUdeviceptr wish, unsigned long long flags)
{
    assert_true(alignment == 0 && wish == 0 && flags == 0);
    *addr = 0x500000000000 + bytes;
    return note("cuMemAddressReserve");
}

static CUresult fake_address_free(CUdeviceptr addr, size_t bytes)
{
    (void)addr, (void)bytes;
    return note("cuMemAddressFree");
}

static CUresult fake_mem_create(CUmemGenericAllocationHandle *handle, size_t bytes,
                                const CUmemAllocationProp *prop, unsigned long long flags)
{
    assert_true(bytes == FAKE_PAGE && flags == 0);
    assert_int_equal(prop->type, CU_MEM_ALLOCATION_TYPE_PINNED);
    assert_int_equal(prop->location.id, fake.device);
    CUresult result = note("cuMemCreate");
    if (result == CUDA_SUCCESS) {
        *handle = 0x77;
        fake.handles++;
    }
    return result;
}

static CUresult fake_mem_release(CUmemGenericAllocationHandle handle)
{
    assert_int_equal(handle, 0x77);
    fake.handles--;
    return CUDA_SUCCESS;
}

static CUresult fake_mem_map(CUdeviceptr addr, size_t bytes, size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    assert_true(bytes == FAKE_PAGE && offset == 0 && handle == 0x77 && flags == 0);
    (void)addr;
    CUresult result = note("cuMemMap");
    fake.pages += result == CUDA_SUCCESS;
    return result;
}

static CUresult fake_mem_unmap(CUdeviceptr addr, size_t bytes)
{
    assert_int_equal(bytes, FAKE_PAGE);
    (void)addr;
    CUresult result = note("cuMemUnmap");
    fake.pages -= result == CUDA_SUCCESS;
    return result;
}

static CUresult fake_mem_set_access(CUdeviceptr addr, size_t bytes, const CUmemAccessDesc *access,
                                    size_t count)
{
    assert_true(count == 1 && bytes % FAKE_PAGE == 0);
    (void)addr;
    CUresult result = note("cuMemSetAccess");
    uint64_t bit = 1ull << access->location.id;
    if (result == CUDA_SUCCESS) {
        fake.devices_allowed = access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE
                                   ? fake.devices_allowed & ~bit
                                   : fake.devices_allowed | bit;
    }
    return result;
}

void *fake_driver_look_up(void *user, const char *name)
{
    assert_ptr_equal(user, &fake);
    void *found = NULL;
    if (fake.lacks != NULL && strcmp(name, fake.lacks) == 0) {
        return NULL;
    }
#define ROW(field, exported, params)            \
    if (strcmp(name, exported) == 0) {          \
        CUresult(*typed) params = fake_##field; \
        memcpy(&found, &typed, sizeof(found));  \
    }
#define REQUIRED(field, exported, params) ROW(field, exported, params)
#define OPTIONAL(field, exported, params) ROW(field, exported, params)
#include "device/cuda_symbols.def"
#undef REQUIRED
#undef OPTIONAL
    return found;
}

const struct cca_cuda_table *fake_driver_table(void)
{
    static struct cca_cuda_table table;
    const char *missing = NULL;
    int calls = fake.calls, fail_at = fake.fail_at;
    fake.fail_at = 0;
    assert_int_equal(cca_cuda_table_fill(&table, fake_driver_look_up, &fake, &missing), 0);
    fake.calls = calls;
    fake.fail_at = fail_at;
    return &table;
}
