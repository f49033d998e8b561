/* SPDX-License-Identifier: MIT */
/* Memory that the program has freed is there for the program: for one large allocation after a call
 * that ends caching, and down to the last bytes of a small device. Arguments: what, and how freed.
 */
#include "program.h"

#include <cuda.h>

static const size_t large = (size_t)10 << 30; /* of 16 GiB */

static void free_large(const char *how)
{
    void *p = NULL;
    if (strcmp(how, "sync") == 0) {
        MUST(cudaMalloc(&p, large));
        MUST(cudaFree(p));
        return;
    }
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMallocAsync(&p, large, stream));
    MUST(cudaFreeAsync(p, stream));
    if (strcmp(how, "async") == 0) {
        MUST(cudaDeviceSynchronize());
    } else {
        MUST(cudaStreamSynchronize(stream));
    }
}

static void pool(void)
{
    cudaMemPool_t default_pool;
    uint64_t threshold = 0;
    MUST(cudaDeviceGetDefaultMemPool(&default_pool, 0));
    SHOW(cudaMemPoolGetAttribute(default_pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

static void capture(void)
{
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SHOW(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    SHOW(cudaStreamEndCapture(stream, &graph));
    SHOW(cudaGraphDestroy(graph));
}

static void allocate_large(void)
{
    void *p = NULL;
    SHOW(cudaMalloc(&p, large));
    SHOW(cudaFree(p));
    SHOW(cudaMalloc(&p, large));
}

static void allocate_large_pitched(void)
{
    void *p = NULL;
    size_t pitch = 0;
    SHOW(cudaMallocPitch(&p, &pitch, 1 << 20, large >> 20));
    SHOW(cudaFree(p));
    SHOW(cudaMallocPitch(&p, &pitch, SIZE_MAX / 2, 4));
}

/* What is idle on the one device is needed there, and asked for while the other is current. */
static void allocate_on_the_other(void)
{
    CUmemAllocationProp shape = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
    CUmemGenericAllocationHandle handle;
    void *p = NULL;
    MUST(cudaSetDevice(1));
    free_large("sync");
    MUST(cudaSetDevice(0));
    MUST(cudaMalloc(&p, 4096));
    MUST(cudaFree(p));
    printf("cuMemCreate -> %d\n", (int)cuMemCreate(&handle, large, &shape, 0));
}

/* Blocks of one size until there is no more, which is not an error to keep. */
static void fill_with(size_t bytes)
{
    void *p = NULL;
    int count = 0;
    while (cudaMalloc(&p, bytes) == cudaSuccess) {
        count++;
    }
    printf("%d blocks of %zu, last error %d\n", count, bytes, (int)cudaGetLastError());
}

static void last_bytes(void)
{
    void *p = NULL;
    fill_with(20 << 20);
    SHOW(cudaMalloc(&p, 7 << 20));
    SHOW(cudaMalloc(&p, 2 << 20));
    SHOW(cudaMalloc(&p, 6 << 20));
}

/* An asynchronous allocation that is CUDA's own, by a pool of the program's own or by the settings;
 * of 128 MiB, 90 are idle. */
static void allocate_forwarded(const char *how)
{
    void *p = NULL;
    MUST(cudaMalloc(&p, (size_t)90 << 20));
    MUST(cudaFree(p));
    if (strcmp(how, "pool") == 0) {
        struct cudaMemPoolProps shape = {.allocType = cudaMemAllocationTypePinned,
                                         .location = {.type = cudaMemLocationTypeDevice}};
        cudaMemPool_t own;
        MUST(cudaMemPoolCreate(&own, &shape));
        MUST(cudaDeviceSetMemPool(0, own));
    }
    SHOW(cudaMallocAsync(&p, (size_t)64 << 20, NULL));
}

/* Calls that take memory for themselves. */
static void take_by_the_way(const char *how)
{
    CUlinkState state;
    free_large("sync");
    if (strcmp(how, "limit") == 0) {
        SHOW(cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)64 << 20));
    } else {
        printf("link -> %d\n", (int)cuLinkCreate(0, NULL, NULL, &state));
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "sync";
    if (strcmp(what, "fill") == 0) {
        fill_with(strtoul(how, NULL, 10));
        return 0;
    }
    if (strcmp(what, "last") == 0) {
        last_bytes();
        return 0;
    }
    if (strcmp(what, "far") == 0) {
        allocate_on_the_other();
        return 0;
    }
    if (strcmp(what, "forwarded") == 0) {
        allocate_forwarded(how);
        return 0;
    }
    if (strcmp(what, "taken") == 0) {
        take_by_the_way(how);
        return 0;
    }
    free_large(how);
    if (strcmp(what, "pitch") == 0) {
        allocate_large_pitched();
        return 0;
    }
    if (strcmp(what, "pool") == 0) {
        pool();
    } else if (strcmp(what, "capture") == 0) {
        capture();
    } else if (strcmp(what, "peer") == 0) {
        SHOW(cudaDeviceEnablePeerAccess(1, 0));
    }
    allocate_large();
    return 0;
}
