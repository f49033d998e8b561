/* SPDX-License-Identifier: MIT */
/* Speed and sizes that are the simulator's own. The rules of memory are in ../conformance. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#define MIB ((size_t)1 << 20)

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

static const struct check_case cases[] = {
    {"many_blocks_stay_fast", many_blocks_stay_fast, NULL, 0},
    {"pools_reserve_and_release", pools_reserve_and_release, NULL, 0},
};

CHECK_MAIN(cases)
