/* SPDX-License-Identifier: MIT */
/* Weak references to CUDA names, in a process without CUDA: prints what calls answer where the
 * library has made them strong. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WEAK __attribute__((weak))
WEAK int cudaMalloc(void **ptr, size_t bytes);
WEAK int cudaFree(void *ptr);
WEAK int cudaSetDevice(int device);
WEAK int cudaMallocAsync(void **ptr, size_t bytes, void *stream);
WEAK int cudaFreeAsync(void *ptr, void *stream);
WEAK int cuMemAlloc_v2(uint64_t *addr, size_t bytes);
WEAK int cuMemFree_v2(uint64_t addr);
WEAK int cuMemAllocAsync(uint64_t *addr, size_t bytes, void *stream);
WEAK int cuMemFreeAsync(uint64_t addr, void *stream);
WEAK int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
WEAK int cuCtxCreate_v2(void **ctx, unsigned flags, int device);
WEAK int cuCtxDestroy_v2(void *ctx);
WEAK int cuCtxSynchronize(void);
WEAK int cuEventSynchronize(void *event);
WEAK int cuStreamSynchronize(void *stream);
WEAK int cuStreamDestroy_v2(void *stream);
WEAK int cuDevicePrimaryCtxReset_v2(int device);
WEAK int cuDevicePrimaryCtxRelease_v2(int device);
WEAK int cuStreamBeginCapture_v2(void *stream, int mode);
WEAK int cuStreamEndCapture(void *stream, void **graph);
WEAK int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *s);

#define SHOW(name, ...) \
    printf("%s %d\n", #name, (void *)(uintptr_t)name != NULL ? name(__VA_ARGS__) : -1)

int main(void)
{
    void *ptr = NULL;
    uint64_t addr = 0;
    int status = 0;
    SHOW(cudaMalloc, &ptr, 512);
    SHOW(cudaMalloc, &ptr, 0);
    SHOW(cudaMalloc, NULL, 512);
    SHOW(cudaFree, NULL);
    SHOW(cudaFree, (void *)512);
    SHOW(cudaSetDevice, 0);
    SHOW(cudaMallocAsync, &ptr, 512, NULL);
    SHOW(cudaFreeAsync, (void *)512, NULL);
    SHOW(cuMemAlloc_v2, &addr, 512);
    SHOW(cuMemAlloc_v2, NULL, 0);
    SHOW(cuMemFree_v2, 512);
    SHOW(cuMemAllocAsync, &addr, 512, NULL);
    SHOW(cuMemFreeAsync, 512, NULL);
    SHOW(cuMemGetInfo_v2, NULL, NULL);
    SHOW(cuCtxCreate_v2, NULL, 0, 0);
    SHOW(cuCtxDestroy_v2, NULL);
    SHOW(cuCtxSynchronize);
    SHOW(cuEventSynchronize, NULL);
    SHOW(cuStreamSynchronize, NULL);
    SHOW(cuStreamDestroy_v2, NULL);
    SHOW(cuDevicePrimaryCtxReset_v2, 0);
    SHOW(cuDevicePrimaryCtxRelease_v2, 0);
    SHOW(cuStreamBeginCapture_v2, NULL, 0);
    SHOW(cuStreamEndCapture, NULL, &ptr);
    SHOW(cuGetProcAddress_v2, "cuInit", &ptr, 12000, 0, &status);
    return 0;
}
