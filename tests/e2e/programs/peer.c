/* SPDX-License-Identifier: MIT */
/* Two devices with access to each other, and the wait of cudaFree: work of the other device on the
 * freed memory is over when it returns. With `pool` access is given by the default pool. */
#include "program.h"
#include "support/sim_kernels.h"

/* What the pool was given is not what the program enables for itself. */
static int enable_after_pool(void)
{
    cudaMemPool_t pool = NULL;
    struct cudaMemAccessDesc access = {0};
    void *p = NULL;
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = 1;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    MUST(cudaSetDevice(1));
    MUST(cudaFree(NULL));
    MUST(cudaSetDevice(0));
    MUST(cudaMallocAsync(&p, 1 << 20, NULL));
    MUST(cudaStreamSynchronize(NULL));
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    SHOW(cudaMemPoolSetAccess(pool, &access, 1));
    MUST(cudaSetDevice(1));
    SHOW(cudaDeviceDisablePeerAccess(0));
    for (int i = 0; i < 2; i++) {
        SHOW(cudaDeviceEnablePeerAccess(0, 0));
        SHOW(cudaDeviceEnablePeerAccess(0, 0));
        SHOW(cudaDeviceDisablePeerAccess(0));
        SHOW(cudaDeviceDisablePeerAccess(0));
    }
    SHOW(cudaMemset(p, 3, 1 << 20));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaDeviceEnablePeerAccess(0, 0));
    SHOW(cudaDeviceReset());
    SHOW(cudaDeviceDisablePeerAccess(0));
    SHOW(cudaDeviceEnablePeerAccess(0, 0));
    SHOW(cudaDeviceEnablePeerAccess(0, 0));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "enable") == 0) {
        return enable_after_pool();
    }
    void *p = NULL, *q = NULL;
    cudaStream_t far;
    int by_pool = argc > 1 && strcmp(argv[1], "pool") == 0;
    MUST(cudaSetDevice(1));
    MUST(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    MUST(cudaSetDevice(0));
    if (by_pool) {
        cudaMemPool_t pool = NULL;
        struct cudaMemAccessDesc access = {0};
        access.location.type = cudaMemLocationTypeDevice;
        access.location.id = 1;
        access.flags = cudaMemAccessFlagsProtReadWrite;
        MUST(cudaMallocAsync(&p, 1 << 20, NULL));
        MUST(cudaStreamSynchronize(NULL));
        MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
        MUST(cudaMemPoolSetAccess(pool, &access, 1));
    } else {
        MUST(cudaMalloc(&p, 1 << 20));
        MUST(cudaSetDevice(1));
        MUST(cudaDeviceEnablePeerAccess(0, 0));
    }
    MUST(cudaSetDevice(1));
    MUST(sim_fill_slow(p, 1 << 20, 7, 100000, far));
    MUST(cudaSetDevice(0));
    if (by_pool) {
        MUST(cudaSetDevice(1));
        MUST(cudaStreamSynchronize(far));
        MUST(cudaSetDevice(0));
        MUST(cudaFreeAsync(p, NULL));
        MUST(cudaMallocAsync(&q, 1 << 20, NULL));
    } else {
        MUST(cudaFree(p));
        printf("the other device is %s\n", cudaStreamQuery(far) == cudaSuccess ? "done" : "busy");
        MUST(cudaMalloc(&q, 1 << 20));
    }
    MUST(cudaMemset(q, 3, 1 << 20));
    printf("reused memory: %s\n", all_bytes_are(q, 1 << 20, 3) ? "right" : "WRONG");
    MUST(cudaFree(q));
    return 0;
}
