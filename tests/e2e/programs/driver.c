/* SPDX-License-Identifier: MIT */
/* A program that links the driver and uses nothing else of CUDA: memory in both orders, streams, a
 * capture, and how calls fail. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOW(call) printf("%s -> %d\n", #call, (int)(call))
#define MUST(call)                                   \
    do {                                             \
        CUresult result_ = (call);                   \
        if (result_ != CUDA_SUCCESS) {               \
            printf("%s: %d\n", #call, (int)result_); \
            exit(3);                                 \
        }                                            \
    } while (0)

enum { ROUNDS = 200 };
#define MIB ((size_t)1 << 20)

static void keep_one(CUdeviceptr *addr)
{
    MUST(cuMemAlloc(addr, 5 * MIB));
}

static void in_host_order(void)
{
    CUdeviceptr addr = 0;
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemAlloc(&addr, 512 + (size_t)(i % 9) * 1000));
        MUST(cuMemsetD8(addr, 1, 512));
        MUST(cuMemFree(addr));
    }
    SHOW(cuMemFree(addr));
    SHOW(cuMemFree(0));
    SHOW(cuMemAlloc(&addr, 0));
    SHOW(cuMemAlloc(NULL, 512));
    SHOW(cuMemAlloc(&addr, (size_t)1 << 50));
    SHOW(cuMemAlloc(&addr, SIZE_MAX));
}

static void in_stream_order(CUstream stream)
{
    CUdeviceptr addr = 0;
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemAllocAsync(&addr, MIB + (size_t)(i % 5) * 4096, stream));
        MUST(cuMemsetD8Async(addr, 2, MIB, stream));
        MUST(cuMemFreeAsync(addr, stream));
        if (i % 20 == 0) {
            MUST(cuStreamSynchronize(stream));
        }
    }
    SHOW(cuMemAllocAsync(&addr, (size_t)1 << 50, stream));
    SHOW(cuMemFreeAsync(12345, stream));
    MUST(cuMemAllocAsync(&addr, MIB, stream));
    MUST(cuStreamSynchronize(stream));
    SHOW(cuMemFree(addr));
    MUST(cuMemAlloc(&addr, MIB));
    SHOW(cuMemFreeAsync(addr, stream));
}

static void captured(CUstream stream)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUdeviceptr outside = 0, inside = 0;
    MUST(cuMemAlloc(&outside, MIB));
    SHOW(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SHOW(cuMemAllocAsync(&inside, MIB, stream));
    SHOW(cuMemsetD8Async(inside, 3, MIB, stream));
    SHOW(cuMemsetD8Async(outside, 4, MIB, stream));
    SHOW(cuMemFreeAsync(inside, stream));
    SHOW(cuStreamEndCapture(stream, &graph));
    SHOW(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 10; i++) {
        MUST(cuGraphLaunch(exec, stream));
    }
    SHOW(cuStreamSynchronize(stream));
    SHOW(cuGraphExecDestroy(exec));
    SHOW(cuGraphDestroy(graph));
    SHOW(cuMemFree(outside));
}

int main(void)
{
    CUcontext context = NULL;
    CUstream stream = NULL;
    CUdeviceptr kept = 0, early = 0;
    size_t free_bytes = 0, total_bytes = 0;
    SHOW(cuMemAlloc(&early, 512));
    MUST(cuInit(0));
    SHOW(cuMemAlloc(&early, 512));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    keep_one(&kept);
    in_host_order();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    in_stream_order(stream);
    in_stream_order(NULL);
    in_stream_order(CU_STREAM_PER_THREAD);
    captured(stream);
    in_host_order();
    SHOW(cuMemGetInfo(&free_bytes, &total_bytes));
    SHOW(cuMemGetInfo(NULL, NULL));
    SHOW(cuCtxSynchronize());
    SHOW(cuStreamDestroy(stream));
    SHOW(cuMemFree(kept));
    SHOW(cuDevicePrimaryCtxRelease(0));
    SHOW(cuMemFree(kept));
    return 5;
}
