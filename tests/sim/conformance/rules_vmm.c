/* SPDX-License-Identifier: MIT */
/* Virtual memory management. */
#include "process.h"
#include "rule.h"

#include <stdint.h>
#include <string.h>

static CUmemAllocationProp prop;
static size_t unit;

static void start(void)
{
    int is_supported = 0;

    rule_start(0);
    OK(cuDeviceGetAttribute(&is_supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                            0));
    rule_needs(is_supported);
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static CUmemGenericAllocationHandle create(size_t size)
{
    CUmemGenericAllocationHandle handle = 0;

    OK(cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static CUdeviceptr reserve(size_t size)
{
    CUdeviceptr p = 0;

    OK(cuMemAddressReserve(&p, size, 0, 0, 0));
    return p;
}

static void allow(CUdeviceptr p, size_t size)
{
    CUmemAccessDesc desc = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    OK(cuMemSetAccess(p, size, &desc, 1));
}

/* Two units with memory and access. */
static CUdeviceptr mapped(CUmemGenericAllocationHandle *handle_out)
{
    CUdeviceptr p = reserve(2 * unit);

    *handle_out = create(2 * unit);
    OK(cuMemMap(p, 2 * unit, 0, *handle_out, 0));
    allow(p, 2 * unit);
    return p;
}

RULE(vmm, granularity_is_a_power_of_two, "cuda.h, cuMemGetAllocationGranularity")
{
    start();
    CHECK(unit >= 4096);
    CHECK_EQ(unit & (unit - 1), 0);
    CHECK_EQ(cuMemGetAllocationGranularity(NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
             CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, sizes_are_multiples_of_it, "cuda.h, cuMemCreate")
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;

    start();
    CHECK_EQ(cuMemCreate(&handle, unit + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAddressReserve(&p, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, mapped_memory_works, "cuda.h, cuMemMap")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cuMemsetD8(p, 7, 2 * unit));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)(p + 2 * unit - 1)), 7);
}

RULE(vmm, memory_is_used_from_its_creation_on, "cuda.h, cuMemCreate")
{
    size_t before;
    size_t after;
    size_t total;

    start();
    OK(cuMemGetInfo(&before, &total));
    CUdeviceptr p = reserve(unit);
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(before, after);
    CUmemGenericAllocationHandle handle = create(unit);
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(before - after, unit);
    OK(cuMemRelease(handle));
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(before, after);
    OK(cuMemAddressFree(p, unit));
}

RULE(vmm, too_much_is_out_of_memory, "cuda.h, cuMemCreate")
{
    CUmemGenericAllocationHandle handle;

    start();
    CHECK_EQ(cuMemCreate(&handle, (size_t)1 << 50, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

RULE(vmm, a_mapping_keeps_released_memory, "cuda.h, cuMemRelease")
{
    CUmemGenericAllocationHandle handle;
    size_t before;
    size_t after;
    size_t total;

    start();
    OK(cuMemGetInfo(&before, &total));
    CUdeviceptr p = mapped(&handle);
    OK(cuMemRelease(handle));
    OK(cuMemsetD8(p, 3, unit));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)p), 3);
    OK(cuMemUnmap(p, 2 * unit));
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(before, after);
}

RULE(vmm, two_addresses_show_one_memory, "cuda.h, cuMemMap")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    CUdeviceptr q = reserve(2 * unit);
    OK(cuMemMap(q, 2 * unit, 0, handle, 0));
    allow(q, 2 * unit);
    OK(cuMemsetD8(p, 5, unit));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)q), 5);
}

RULE(vmm, mappings_side_by_side_are_one_memory, "cuda.h, cuMemMap")
{
    start();
    CUdeviceptr p = reserve(2 * unit);
    OK(cuMemMap(p + unit, unit, 0, create(unit), 0));
    OK(cuMemMap(p, unit, 0, create(unit), 0));
    allow(p, 2 * unit);
    OK(cuMemsetD8(p, 9, 2 * unit));
    OK(cuMemcpyDtoD(p + unit + 1, p + unit - 1, 1));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)(p + unit - 1)), 9);
    CHECK_EQ(rule_first_byte((void *)(p + 2 * unit - 1)), 9);
    OK(cuMemUnmap(p, unit));
    CHECK_EQ(rule_first_byte((void *)(p + unit)), 9);
}

RULE(vmm, addresses_must_be_reserved, "cuda.h, cuMemMap")
{
    start();
    CUmemGenericAllocationHandle handle = create(2 * unit);
    CUdeviceptr p = reserve(unit);
    CHECK_EQ(cuMemMap(p, 2 * unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, an_address_is_mapped_once, "cuda.h, cuMemMap")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    CHECK_EQ(cuMemMap(p, unit, 0, create(unit), 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, mapped_addresses_are_not_given_back, "assumed")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    CHECK_EQ(cuMemAddressFree(p, 2 * unit), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(p, 2 * unit));
    CHECK_EQ(cuMemAddressFree(p, unit), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(p, 2 * unit));
}

RULE(vmm, mappings_end_whole, "cuda.h, cuMemUnmap")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    CHECK_EQ(cuMemUnmap(p, unit), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(p, 2 * unit));
    OK(cuMemMap(p, 2 * unit, 0, handle, 0));
}

RULE(vmm, access_covers_several_mappings, "cuda.h, cuMemSetAccess")
{
    CUmemAccessDesc desc;
    unsigned long long flags = 7;

    start();
    CUdeviceptr p = reserve(3 * unit);
    desc = (CUmemAccessDesc){.location = prop.location,
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemMap(p, unit, 0, create(unit), 0));
    CHECK_EQ(cuMemSetAccess(p, 2 * unit, &desc, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(p + unit, unit, 0, create(unit), 0));
    OK(cuMemGetAccess(&flags, &prop.location, p));
    CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemSetAccess(p, 2 * unit, &desc, 1));
    OK(cuMemGetAccess(&flags, &prop.location, p + unit));
    CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

RULE(vmm, handles_tell_their_properties, "cuda.h, cuMemGetAllocationPropertiesFromHandle")
{
    CUmemGenericAllocationHandle handle;
    CUmemGenericAllocationHandle same = 0;
    CUmemAllocationProp found;

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cuMemGetAllocationPropertiesFromHandle(&found, handle));
    CHECK_EQ(found.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    OK(cuMemRetainAllocationHandle(&same, (void *)(p + unit)));
    CHECK(same == handle);
    OK(cuMemRelease(same));
}

RULE(vmm, it_is_not_freed_as_plain_memory, "cuda.h, cuMemFree")
{
    CUmemGenericAllocationHandle handle;

    start();
    CHECK_EQ(cuMemFree(mapped(&handle)), CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, memory_without_access_is_not_touched, "cuda.h, cuMemMap", RULE_WRONG)
{
    start();
    CUdeviceptr p = reserve(unit);
    OK(cuMemMap(p, unit, 0, create(unit), 0));
    CHECK_EQ(cuMemsetD8(p, 1, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(vmm, access_is_for_each_device, "cuda.h, cuMemSetAccess", RULE_WRONG, "SIMCUDA_DEVICES=2")
{
    CUmemGenericAllocationHandle handle;
    CUcontext first, second;

    start();
    OK(cuCtxGetCurrent(&first));
    CUdeviceptr p = mapped(&handle);
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(cuCtxEnablePeerAccess(first, 0));
    CHECK_EQ(cuMemsetD8(p, 1, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(vmm, reserved_addresses_hold_nothing, "cuda.h, cuMemAddressReserve", RULE_WRONG)
{
    start();
    CHECK_EQ(cuMemsetD8(reserve(unit), 1, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(vmm, unmapping_does_not_wait, "assumed", RULE_WRONG)
{
    CUmemGenericAllocationHandle handle;
    cudaStream_t stream;

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(launch_fill((void *)p, 16, 1, stream));
    OK(cuMemUnmap(p, 2 * unit));
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* The memory of p at another address, and two streams that nothing orders. */
static CUdeviceptr mapped_again(CUmemGenericAllocationHandle handle, cudaStream_t streams[2])
{
    CUdeviceptr q = reserve(2 * unit);

    OK(cuMemMap(q, 2 * unit, 0, handle, 0));
    allow(q, 2 * unit);
    OK(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
    return q;
}

RULE(vmm, two_addresses_meet_in_one_memory, "cuda.h, cuMemMap", RULE_WRONG)
{
    CUmemGenericAllocationHandle handle;
    cudaStream_t streams[2];

    start();
    CUdeviceptr p = mapped(&handle);
    CUdeviceptr q = mapped_again(handle, streams);
    OK(launch_fill((void *)(p + unit), 16, 1, streams[0]));
    CHECK_EQ(launch_fill((void *)(q + unit), 16, 2, streams[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(vmm, an_imported_handle_leads_to_the_same_memory, "cuda.h, cuMemImportFromShareableHandle",
     RULE_WRONG)
{
    CUmemGenericAllocationHandle handle;
    CUmemGenericAllocationHandle imported;
    cudaStream_t streams[2];
    int fd = -1;

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUdeviceptr q = mapped_again(imported, streams);
    OK(launch_fill((void *)p, 16, 1, streams[0]));
    CHECK_EQ(launch_fill((void *)q, 16, 2, streams[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(vmm, two_addresses_of_one_memory_may_take_turns, "cuda.h, cuMemMap", RULE_RIGHT)
{
    CUmemGenericAllocationHandle handle;
    cudaStream_t streams[2];

    start();
    CUdeviceptr p = mapped(&handle);
    CUdeviceptr q = mapped_again(handle, streams);
    OK(launch_fill((void *)p, 16, 1, streams[0]));
    OK(launch_fill((void *)(q + 16), 16, 2, streams[1]));
    OK(cudaDeviceSynchronize());
    OK(launch_fill((void *)q, 16, 3, streams[1]));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(rule_first_byte((void *)p), 3);
}

RULE(vmm, unmapping_one_address_leaves_uses_of_another, "assumed", RULE_RIGHT)
{
    CUmemGenericAllocationHandle handle;
    cudaStream_t streams[2];

    start();
    CUdeviceptr p = mapped(&handle);
    CUdeviceptr q = mapped_again(handle, streams);
    OK(launch_fill((void *)q, 16, 1, streams[0]));
    OK(cuMemUnmap(p, 2 * unit));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(rule_first_byte((void *)q), 1);
}

RULE(vmm, one_mapping_may_show_memory_after_another, "cuda.h, cuMemMap", RULE_WRONG)
{
    cudaStream_t stream;

    start();
    CUmemGenericAllocationHandle handle = create(unit);
    CUdeviceptr p = reserve(2 * unit);
    OK(cuMemMap(p, unit, 0, create(unit), 0));
    OK(cuMemMap(p + unit, unit, 0, handle, 0));
    allow(p, 2 * unit);
    CUdeviceptr q = reserve(unit);
    OK(cuMemMap(q, unit, 0, handle, 0));
    allow(q, unit);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(launch_fill((void *)(p + unit - 8), 16, 1, stream));
    CHECK_EQ(cuMemsetD8(q, 2, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void map_imported(void)
{
    CUmemGenericAllocationHandle handle;
    int fd = process_hear_fd();

    start();
    OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUdeviceptr p = reserve(2 * unit);
    OK(cuMemMap(p, 2 * unit, 0, handle, 0));
    allow(p, 2 * unit);
    CHECK_EQ(rule_first_byte((void *)p), 4);
    OK(cuMemsetD8(p, 9, 16));
    OK(cuCtxSynchronize());
}

RULE(ipc, created_memory_goes_by_descriptor, "cuda.h, cuMemExportToShareableHandle")
{
    CUmemGenericAllocationHandle handle;
    int fd = -1;
    pid_t child = process_split(map_imported);

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cuMemsetD8(p, 4, unit));
    OK(cuCtxSynchronize());
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    process_tell_fd(fd);
    process_end(child);
    CHECK_EQ(rule_first_byte((void *)p), 9);
}
