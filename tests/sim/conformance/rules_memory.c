/* SPDX-License-Identifier: MIT */
/* Device, managed and host memory, and what pointers tell. */
#include "rule.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static size_t free_bytes(void)
{
    size_t size;
    size_t total;

    OK(cuMemGetInfo(&size, &total));
    CHECK(size <= total);
    return size;
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr p = 0;

    OK(cuMemAlloc(&p, bytes));
    CHECK(p != 0);
    return p;
}

RULE(memory, no_bytes_are_an_invalid_value, "cuda.h, cuMemAlloc")
{
    CUdeviceptr p;

    rule_start(0);
    CHECK_EQ(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(memory, the_runtime_gives_null_for_no_bytes, "assumed")
{
    void *p = &p;

    OK(cudaMalloc(&p, 0));
    CHECK(p == NULL);
}

RULE(memory, a_result_needs_a_place, "cuda.h, cuMemAlloc")
{
    rule_start(0);
    CHECK_EQ(cuMemAlloc(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cudaMalloc(NULL, 1), cudaErrorInvalidValue);
}

RULE(memory, freeing_nothing_is_fine, "cuda_runtime_api.h, cudaFree")
{
    rule_start(0);
    OK(cuMemFree(0));
    OK(cudaFree(NULL));
}

RULE(memory, only_starts_can_be_freed, "cuda.h, cuMemFree")
{
    rule_start(0);
    CHECK_EQ(cuMemFree(allocate(4096) + 512), CUDA_ERROR_INVALID_VALUE);
}

RULE(memory, a_block_is_freed_once, "cuda.h, cuMemFree")
{
    rule_start(0);
    CUdeviceptr p = allocate(8 * MIB);
    OK(cuMemFree(p));
    CHECK_EQ(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

RULE(memory, host_memory_is_not_freed_as_device_memory, "cuda.h, cuMemFree")
{
    char own;

    rule_start(0);
    CHECK_EQ(cuMemFree((CUdeviceptr)&own), CUDA_ERROR_INVALID_VALUE);
}

RULE(memory, addresses_are_aligned_to_256, "guide, Device Memory Accesses")
{
    rule_start(0);
    for (size_t bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
        CHECK_EQ(allocate(bytes) % 256, 0);
    }
}

RULE(memory, blocks_do_not_overlap, "assumed")
{
    CUdeviceptr last = 0;

    rule_start(0);
    for (int i = 0; i < 64; i++) {
        CUdeviceptr p = allocate(1000);
        CHECK(p + 1000 <= last || last + 1000 <= p);
        last = p;
    }
}

RULE(memory, too_much_is_out_of_memory, "cuda.h, cuMemAlloc")
{
    CUdeviceptr p;

    rule_start(0);
    CHECK_EQ(cuMemAlloc(&p, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(cuMemAlloc(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
}

RULE(memory, out_of_memory_does_not_last, "assumed")
{
    CUdeviceptr p;

    rule_start(0);
    CHECK_EQ(cuMemAlloc(&p, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuCtxSynchronize());
    allocate(100);
}

RULE(memory, what_is_free_can_be_had, "assumed", RULE_SIMULATED, "SIMCUDA_MEM=64M")
{
    CUdeviceptr p;

    rule_start(0);
    allocate(3 * MIB);
    CHECK_EQ(cuMemAlloc(&p, 61 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    allocate(60 * MIB);
}

RULE(memory, free_memory_moves_by_2_mib, "assumed")
{
    rule_start(0);
    size_t before = free_bytes();
    CUdeviceptr p = allocate(3 * MIB);
    CHECK_EQ(before - free_bytes(), 4 * MIB);
    OK(cuMemFree(p));
    CHECK_EQ(free_bytes(), before);
}

RULE(memory, small_blocks_share, "assumed", RULE_SIMULATED)
{
    rule_start(0);
    allocate(1);
    size_t before = free_bytes();
    allocate(1);
    CHECK_EQ(free_bytes(), before);
}

RULE(memory, fragments_do_not_fill_a_device, "assumed", RULE_SIMULATED, "SIMCUDA_MEM=64M")
{
    CUdeviceptr p[16];

    rule_start(0);
    for (int i = 0; i < 16; i++) {
        p[i] = allocate(4 * MIB);
    }
    for (int i = 0; i < 16; i += 2) {
        OK(cuMemFree(p[i]));
    }
    allocate(32 * MIB);
}

RULE(memory, contents_stay, "assumed")
{
    rule_start(0);
    CUdeviceptr p = allocate(4096);
    OK(cuMemsetD8(p, 5, 4096));
    CUdeviceptr q = allocate(4096);
    OK(cuMemsetD8(q, 6, 4096));
    OK(cuMemFree(q));
    CHECK_EQ(rule_first_byte((void *)(p + 4095)), 5);
}

RULE(memory, a_free_waits_for_running_work, "assumed")
{
    struct rule_gate gate;
    cudaStream_t stream;

    rule_start(0);
    CUdeviceptr p = allocate(4096);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    rule_close(&gate, stream);
    OK(cuMemsetD8Async(p, 1, 4096, stream));
    rule_open_soon(&gate);
    OK(cuMemFree(p));
    CHECK(rule_is_open(&gate));
    OK(cudaStreamQuery(stream));
}

RULE(memory, a_free_waits_for_other_streams_too, "assumed")
{
    struct rule_gate gate;
    cudaStream_t stream;

    rule_start(0);
    CUdeviceptr p = allocate(4096);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    rule_close(&gate, stream);
    rule_open_soon(&gate);
    OK(cuMemFree(p));
    CHECK(rule_is_open(&gate));
}

RULE(memory, an_allocation_does_not_wait, "assumed")
{
    struct rule_gate gate;
    cudaStream_t stream;

    rule_start(0);
    OK(cudaStreamCreate(&stream));
    rule_close(&gate, stream);
    allocate(4 * MIB);
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
}

RULE(memory, rows_are_pitched, "cuda.h, cuMemAllocPitch")
{
    CUdeviceptr p;
    size_t pitch = 0;

    rule_start(0);
    OK(cuMemAllocPitch(&p, &pitch, 10, 4, 4));
    CHECK(pitch >= 10);
    CHECK_EQ(pitch % 32, 0);
    OK(cuMemsetD2D8(p, pitch, 1, 10, 4));
    OK(cuMemFree(p));
}

RULE(memory, pitched_elements_have_4_8_or_16_bytes, "cuda.h, cuMemAllocPitch")
{
    CUdeviceptr p;
    size_t pitch;

    rule_start(0);
    CHECK_EQ(cuMemAllocPitch(&p, &pitch, 10, 4, 3), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAllocPitch(&p, &pitch, 0, 4, 4), CUDA_ERROR_INVALID_VALUE);
}

RULE(memory, device_memory_is_not_read_by_the_host, "guide, Heterogeneous Programming")
{
    int status;

    rule_start(0);
    CUdeviceptr p = allocate(100);
    pid_t child = fork();
    if (child == 0) {
        _exit(*(volatile char *)p);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

RULE(memory, managed_memory_is_for_both, "cuda.h, cuMemAllocManaged")
{
    int *p;

    OK(cudaMallocManaged((void **)&p, 4 * sizeof(int), cudaMemAttachGlobal));
    p[0] = 5;
    OK(launch_add(p, 4, 10, NULL));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(p[0], 15);
    OK(cudaFree(p));
}

RULE(memory, managed_memory_must_attach_somewhere, "cuda.h, cuMemAllocManaged")
{
    CUdeviceptr p;

    rule_start(0);
    CHECK_EQ(cuMemAllocManaged(&p, 16, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
}

RULE(host, pinned_memory_is_ordinary_memory, "cuda.h, cuMemAllocHost")
{
    char *p;

    rule_start(0);
    OK(cuMemAllocHost((void **)&p, 100));
    memset(p, 1, 100);
    OK(cuMemFreeHost(p));
}

RULE(host, it_is_freed_once, "cuda.h, cuMemFreeHost")
{
    void *p;

    rule_start(0);
    OK(cuMemAllocHost(&p, 100));
    OK(cuMemFreeHost(p));
    CHECK_EQ(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
}

RULE(host, no_bytes_are_an_invalid_value, "cuda.h, cuMemHostAlloc")
{
    void *p;

    rule_start(0);
    CHECK_EQ(cuMemHostAlloc(&p, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cudaMallocHost(&p, 0));
    CHECK(p == NULL);
}

RULE(host, flags_are_kept, "cuda.h, cuMemHostGetFlags")
{
    void *p;
    unsigned flags = 0;

    rule_start(0);
    OK(cuMemHostAlloc(&p, 100, CU_MEMHOSTALLOC_PORTABLE));
    OK(cuMemHostGetFlags(&flags, p));
    CHECK((flags & CU_MEMHOSTALLOC_PORTABLE) != 0);
}

RULE(host, the_device_uses_the_same_address, "guide, Unified Virtual Address Space")
{
    void *p;
    CUdeviceptr mapped;

    rule_start(0);
    OK(cuMemHostAlloc(&p, 100, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&mapped, p, 0));
    CHECK(mapped == (CUdeviceptr)p);
}

static char registered[16384] __attribute__((aligned(4096)));

RULE(host, memory_is_registered_once, "cuda.h, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED")
{
    rule_start(0);
    OK(cuMemHostRegister(registered, sizeof(registered), 0));
    CHECK_EQ(cuMemHostRegister(registered, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
}

RULE(host, only_registered_memory_is_unregistered, "cuda.h, cuMemHostUnregister")
{
    rule_start(0);
    CHECK_EQ(cuMemHostUnregister(registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostRegister(registered, sizeof(registered), 0));
    OK(cuMemHostUnregister(registered));
    CHECK_EQ(cuMemHostUnregister(registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

RULE(host, device_memory_is_not_host_memory, "cuda.h, cuMemFreeHost")
{
    rule_start(0);
    CHECK_EQ(cuMemFreeHost((void *)allocate(100)), CUDA_ERROR_INVALID_VALUE);
}

RULE(pointer, ranges_cover_the_block, "cuda.h, cuMemGetAddressRange")
{
    CUdeviceptr base;
    size_t size;

    rule_start(0);
    CUdeviceptr p = allocate(4096);
    OK(cuMemGetAddressRange(&base, &size, p + 4095));
    CHECK(base == p);
    CHECK_EQ(size, 4096);
    OK(cuMemGetAddressRange(NULL, NULL, p));
}

RULE(pointer, unknown_addresses_have_no_range, "cuda.h, cuMemGetAddressRange")
{
    CUdeviceptr base;
    size_t size;

    rule_start(0);
    CHECK_EQ(cuMemGetAddressRange(&base, &size, (CUdeviceptr)&base), CUDA_ERROR_NOT_FOUND);
}

RULE(pointer, types_are_told, "cuda_runtime_api.h, cudaPointerGetAttributes")
{
    struct cudaPointerAttributes attributes;
    void *p;

    OK(cudaMalloc(&p, 100));
    OK(cudaPointerGetAttributes(&attributes, p));
    CHECK_EQ(attributes.type, cudaMemoryTypeDevice);
    CHECK(attributes.devicePointer == p);
    OK(cudaMallocHost(&p, 100));
    OK(cudaPointerGetAttributes(&attributes, p));
    CHECK_EQ(attributes.type, cudaMemoryTypeHost);
    OK(cudaMallocManaged(&p, 100, cudaMemAttachGlobal));
    OK(cudaPointerGetAttributes(&attributes, p));
    CHECK_EQ(attributes.type, cudaMemoryTypeManaged);
}

RULE(pointer, own_memory_is_unregistered, "cuda_runtime_api.h, cudaPointerGetAttributes")
{
    struct cudaPointerAttributes attributes;

    OK(cudaFree(NULL));
    OK(cudaPointerGetAttributes(&attributes, &attributes));
    CHECK_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

RULE(pointer, buffer_ids_are_never_used_again, "cuda.h, CU_POINTER_ATTRIBUTE_BUFFER_ID")
{
    unsigned long long first;
    unsigned long long second;

    rule_start(0);
    CUdeviceptr p = allocate(8 * MIB);
    OK(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    OK(cuMemFree(p));
    p = allocate(8 * MIB);
    OK(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    CHECK(first != second);
}

RULE(pointer, the_single_form_refuses_unknown_ones, "cuda.h, cuPointerGetAttribute")
{
    int value;

    rule_start(0);
    CHECK_EQ(
        cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)&value),
        CUDA_ERROR_INVALID_VALUE);
}

RULE(pointer, the_plural_form_answers_zeros, "cuda.h, cuPointerGetAttributes")
{
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
    unsigned type = 7;
    CUdeviceptr p = 7;
    void *values[] = {&type, &p};

    rule_start(0);
    OK(cuPointerGetAttributes(2, wanted, values, (CUdeviceptr)&p));
    CHECK_EQ(type, 0);
    CHECK_EQ(p, 0);
}

RULE(pointer, a_block_knows_device_context_and_range, "cuda.h, cuPointerGetAttribute")
{
    CUcontext own = rule_start(0);
    CUcontext context;
    CUdeviceptr base;
    size_t size;
    int device = 7;

    CUdeviceptr p = allocate(4096);
    OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 9));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 9));
    CHECK(context == own);
    CHECK_EQ(device, 0);
    CHECK(base == p);
    CHECK_EQ(size, 4096);
}

RULE(pointer, sync_memops_can_be_set, "cuda.h, cuPointerSetAttribute")
{
    unsigned on = 1;
    unsigned value = 0;

    rule_start(0);
    CUdeviceptr p = allocate(4096);
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    CHECK_EQ(value, 1);
}
