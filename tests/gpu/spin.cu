/* SPDX-License-Identifier: MIT */
#include "probe.h"

/* The simulator knows it by name. */
__global__ void sim_spin(unsigned us)
{
    unsigned long long start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < us * 1000ull);
}

cudaError_t spin(unsigned us, cudaStream_t stream)
{
    sim_spin<<<1, 1, 0, stream>>>(us);
    return cudaGetLastError();
}
