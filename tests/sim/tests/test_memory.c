/* SPDX-License-Identifier: MIT */
/* Device, pooled, managed and host memory through both interfaces. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void free_memory_moves_in_chunks(void)
{
    size_t before;
    size_t after;
    size_t total;
    void *p;
    void *q;

    OK(cudaMemGetInfo(&before, &total));
    CHECK_EQ(total, 64 * MIB);
    OK(cudaMalloc(&p, 1));
    OK(cudaMemGetInfo(&after, &total));
    CHECK_EQ(before - after, 2 * MIB);
    OK(cudaMalloc(&q, 1));
    OK(cudaMemGetInfo(&after, &total));
    CHECK_EQ(before - after, 2 * MIB);
    CHECK_EQ((char *)q - (char *)p, 512);
    OK(cudaFree(p));
    OK(cudaFree(q));
    OK(cudaMalloc(&p, 3 * MIB));
    OK(cudaMemGetInfo(&after, &total));
    CHECK_EQ(before - after, 4 * MIB);
    CHECK_EQ(cudaMalloc(&q, 61 * MIB), cudaErrorMemoryAllocation);
    CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&q, 60 * MIB));
    OK(cudaFree(p));
    OK(cudaFree(q));
    OK(cudaMemGetInfo(&after, &total));
    CHECK_EQ(before, after);
}

static void fragments_do_not_fill_a_device(void)
{
    void *p[16];
    void *large;

    for (int i = 0; i < 16; i++) {
        OK(cudaMalloc(&p[i], 4 * MIB));
    }
    for (int i = 0; i < 16; i += 2) {
        OK(cudaFree(p[i]));
    }
    OK(cudaMalloc(&large, 32 * MIB));
    OK(cudaFree(large));
}

static void many_blocks_stay_fast(void)
{
    enum { COUNT = 200000 };
    void **p = malloc(COUNT * sizeof(*p));

    for (int i = 0; i < COUNT; i++) {
        if (cudaMalloc(&p[i], 512) != cudaSuccess) {
            CHECK(0);
        }
    }
    CHECK_EQ(simcuda_live_blocks(0), COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (cudaFree(p[(i * 7919LL) % COUNT]) != cudaSuccess) {
            CHECK(0);
        }
    }
    CHECK_EQ(simcuda_used_bytes(0), 0);
    free(p);
}

static void copies_carry_bytes(void)
{
    char host[256];
    char back[256];
    char *p;
    char *q;

    for (int i = 0; i < 256; i++) {
        host[i] = (char)i;
    }
    OK(cudaMalloc((void **)&p, 256));
    OK(cudaMalloc((void **)&q, 256));
    OK(cudaMemcpy(p, host, 256, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(q, p, 256, cudaMemcpyDeviceToDevice));
    OK(cudaMemset(q + 10, 7, 20));
    OK(cudaMemcpy(back, q, 256, cudaMemcpyDeviceToHost));
    memset(host + 10, 7, 20);
    CHECK(memcmp(host, back, 256) == 0);
    OK(cudaMemcpy(back, p, 0, cudaMemcpyDeviceToHost));
    CHECK_EQ(cudaMemcpy(NULL, p, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
}

static void planes_keep_their_pitch(void)
{
    char *p;
    char host[4][10];
    char back[4][10];
    size_t pitch;

    OK(cudaMallocPitch((void **)&p, &pitch, 10, 4));
    CHECK_EQ(pitch % 512, 0);
    memset(host, 3, sizeof(host));
    OK(cudaMemcpy2D(p, pitch, host, 10, 10, 4, cudaMemcpyHostToDevice));
    OK(cudaMemset2D(p + 5, pitch, 9, 5, 4));
    OK(cudaMemcpy2D(back, 10, p, pitch, 10, 4, cudaMemcpyDeviceToHost));
    CHECK_EQ(back[3][4], 3);
    CHECK_EQ(back[3][5], 9);
    CHECK_EQ(back[0][9], 9);
    CHECK_EQ(cudaMemcpy2D(back, 5, p, pitch, 10, 4, cudaMemcpyDeviceToHost),
             cudaErrorInvalidPitchValue);
}

static void wide_sets_fill_elements(void)
{
    CUdeviceptr p;
    unsigned words[4];
    unsigned short halves[4];

    OK(cudaMalloc((void **)&p, 64));
    OK(cuMemsetD32(p, 0x12345678, 4));
    OK(cuMemcpyDtoH(words, p, sizeof(words)));
    CHECK_EQ(words[3], 0x12345678);
    OK(cuMemsetD16(p, 0xabcd, 4));
    OK(cuMemcpyDtoH(halves, p, sizeof(halves)));
    CHECK_EQ(halves[3], 0xabcd);
    CHECK_EQ(cuMemsetD32(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

static void device_memory_is_not_host_memory(void)
{
    char *p;
    int status;

    OK(cudaMalloc((void **)&p, 100));
    pid_t child = fork();
    if (child == 0) {
        _exit(*(volatile char *)p);
    }
    CHECK(waitpid(child, &status, 0) == child);
    /* A sanitizer turns the signal into an exit status. */
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    CHECK(simcuda_payload((uint64_t)p) != NULL);
}

static void host_memory_is_known(void)
{
    struct cudaPointerAttributes attributes;
    char *pinned;
    char *mapped;
    static char own[8192];

    OK(cudaHostAlloc((void **)&pinned, 100, cudaHostAllocMapped));
    pinned[99] = 1;
    OK(cudaPointerGetAttributes(&attributes, pinned + 5));
    CHECK_EQ(attributes.type, cudaMemoryTypeHost);
    OK(cudaHostGetDevicePointer((void **)&mapped, pinned, 0));
    CHECK(attributes.devicePointer == mapped + 5);
    OK(cudaFreeHost(pinned));
    CHECK_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
    OK(cudaHostRegister(own, sizeof(own), 0));
    CHECK_EQ(cudaHostRegister(own, 10, 0), cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostUnregister(own));
    CHECK_EQ(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
    OK(cudaPointerGetAttributes(&attributes, own));
    CHECK_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

static void managed_memory_is_both(void)
{
    struct cudaPointerAttributes attributes;
    int *p;

    OK(cudaMallocManaged((void **)&p, 4 * sizeof(int), cudaMemAttachGlobal));
    p[0] = 5;
    OK(sim_add(p, 4, 10, NULL));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(p[0], 15);
    OK(cudaPointerGetAttributes(&attributes, p));
    CHECK_EQ(attributes.type, cudaMemoryTypeManaged);
    OK(cudaFree(p));
}

static void pointers_tell_their_block(void)
{
    CUdeviceptr base;
    CUdeviceptr p;
    size_t size;
    CUcontext context;
    unsigned long long first;
    unsigned long long second;
    int value;
    CUipcMemHandle handle;

    OK(cudaMalloc((void **)&p, 1000));
    OK(cuMemGetAddressRange(&base, &size, p + 999));
    CHECK(base == p);
    CHECK_EQ(size, 1000);
    CHECK_EQ(cuMemGetAddressRange(&base, &size, p + 1000), CUDA_ERROR_NOT_FOUND);
    OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    CHECK_EQ(value, 0);
    OK(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    OK(cuIpcGetMemHandle(&handle, p + 10));
    OK(cuMemFree(p));
    OK(cudaMalloc((void **)&p, 1000));
    OK(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    CHECK(first != second);
    CHECK_EQ(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   (CUdeviceptr)(uintptr_t)&p),
             CUDA_ERROR_INVALID_VALUE);
}

static void pools_reserve_and_release(void)
{
    cudaMemPool_t pool;
    uint64_t value;
    void *p;
    void *q;
    cudaStream_t stream;

    OK(cudaStreamCreate(&stream));
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMallocAsync(&p, 1000, stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    CHECK_EQ(value, 1024);
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
    CHECK_EQ(value, 32 * MIB);
    OK(cudaFreeAsync(p, stream));
    OK(cudaMallocAsync(&q, 1000, stream));
    CHECK(p == q);
    OK(cudaFreeAsync(q, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
    CHECK_EQ(value, 0);
    value = UINT64_MAX;
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    OK(cudaMallocAsync(&p, 1000, stream));
    OK(cudaFreeAsync(p, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
    CHECK_EQ(value, 32 * MIB);
    OK(cudaMemPoolTrimTo(pool, 0));
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
    CHECK_EQ(value, 0);
    CHECK_EQ(simcuda_used_bytes(0), 0);
}

static void own_pools_work_alike(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    cudaMemPool_t pool;
    cudaMemPool_t current;
    void *p;

    OK(cudaMemPoolCreate(&pool, &props));
    OK(cudaMallocFromPoolAsync(&p, 5000, pool, NULL));
    OK(cudaFreeAsync(p, NULL));
    OK(cudaDeviceSetMemPool(0, pool));
    OK(cudaDeviceGetMemPool(&current, 0));
    CHECK(current == pool);
    OK(cudaMallocAsync(&p, 5000, NULL));
    OK(cudaFree(p));
    OK(cudaMemPoolDestroy(pool));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(simcuda_used_bytes(0), 0);
}

static const struct check_case cases[] = {
    {"free_memory_moves_in_chunks", free_memory_moves_in_chunks, "SIMCUDA_MEM=64M", 0},
    {"fragments_do_not_fill_a_device", fragments_do_not_fill_a_device, "SIMCUDA_MEM=64M", 0},
    {"many_blocks_stay_fast", many_blocks_stay_fast, NULL, 0},
    {"copies_carry_bytes", copies_carry_bytes, NULL, 0},
    {"planes_keep_their_pitch", planes_keep_their_pitch, NULL, 0},
    {"wide_sets_fill_elements", wide_sets_fill_elements, NULL, 0},
    {"device_memory_is_not_host_memory", device_memory_is_not_host_memory, NULL, 0},
    {"host_memory_is_known", host_memory_is_known, NULL, 0},
    {"managed_memory_is_both", managed_memory_is_both, NULL, 0},
    {"pointers_tell_their_block", pointers_tell_their_block, NULL, 0},
    {"pools_reserve_and_release", pools_reserve_and_release, NULL, 0},
    {"own_pools_work_alike", own_pools_work_alike, NULL, 0},
};

CHECK_MAIN(cases)
