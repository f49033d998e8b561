/* SPDX-License-Identifier: MIT */
/* Speed and sizes that are the simulator's own. The rules of memory are in ../conformance. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <time.h>

#define MIB ((size_t)1 << 20)

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* What one allocation and one free cost, in microseconds of this thread, while about count blocks
 * live. They are freed in a scattered order. */
static double cost_us(size_t count, int rounds)
{
    CUdeviceptr *p = malloc(count * sizeof(*p));
    double start = now_us();

    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            if (cuMemAlloc(&p[i], 512) != CUDA_SUCCESS) {
                CHECK(0);
            }
        }
        if (round == 0) {
            CHECK_EQ(simcuda_live_blocks(0), count);
        }
        for (size_t i = 0; i < count; i++) {
            if (cuMemFree(p[(i * 7919) % count]) != CUDA_SUCCESS) {
                CHECK(0);
            }
        }
    }
    double cost = (now_us() - start) / ((double)count * rounds);
    CHECK_EQ(simcuda_used_bytes(0), 0);
    free(p);
    return cost;
}

/* No walk, and no deep tree: what is left between few blocks and many is the price of memory that
 * is in no cache. A tree over the blocks was 150 times as slow, a list 100,000 times. */
static void a_million_blocks_cost_like_a_thousand(void)
{
    OK(cudaFree(NULL));
    double few = cost_us(1000, 200);
    double many = cost_us(1000000, 2);
    printf("# 1,000 live blocks: %.2f us, 1,000,000: %.2f us\n", few, many);
    CHECK(many < 40 * few);
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
    {"a_million_blocks_cost_like_a_thousand", a_million_blocks_cost_like_a_thousand,
     "SIMCUDA_RECORD=off", 0},
    {"pools_reserve_and_release", pools_reserve_and_release, NULL, 0},
};

CHECK_MAIN(cases)
