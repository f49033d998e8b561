/* SPDX-License-Identifier: MIT */
/* Memory of one device, freed in the order of a busy stream of the other, then a wait for its own
 * device: that wait is silent about the stream. */
#include "program.h"
#include "support/sim_kernels.h"

enum { BYTES = 4 << 20 };

int main(void)
{
    void *p = NULL, *q = NULL;
    cudaStream_t far;
    cudaMemPool_t pool = NULL;
    struct cudaMemAccessDesc access = {0};
    MUST(cudaSetDevice(1));
    MUST(cudaMalloc(&q, 4096));
    MUST(cudaFree(q));
    MUST(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    MUST(cudaSetDevice(0));
    MUST(cudaMallocAsync(&p, BYTES, NULL));
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = 1;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    MUST(cudaMemPoolSetAccess(pool, &access, 1));
    MUST(cudaDeviceSynchronize());
    MUST(cudaSetDevice(1));
    MUST(sim_fill_slow(p, BYTES, 7, 300000, far));
    MUST(cudaFreeAsync(p, far));
    MUST(cudaSetDevice(0));
    MUST(cudaDeviceSynchronize());
    MUST(cudaMalloc(&q, BYTES));
    MUST(cudaMemset(q, 3, BYTES));
    MUST(cudaDeviceSynchronize());
    MUST(cudaSetDevice(1));
    MUST(cudaDeviceSynchronize());
    MUST(cudaSetDevice(0));
    printf("new memory: %s\n", all_bytes_are(q, BYTES, 3) ? "right" : "WRONG");
    return 0;
}
