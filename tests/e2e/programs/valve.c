/* SPDX-License-Identifier: MIT */
/* Things that end caching, one chosen by the argument, with memory live before and after. */
#include "program.h"

static void capture(void)
{
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    void *p = NULL;
    MUST(cudaMalloc(&p, 4096));
    MUST(cudaStreamCreate(&stream));
    SHOW(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    SHOW(cudaMemsetAsync(p, 1, 4096, stream));
    SHOW(cudaStreamEndCapture(stream, &graph));
    printf("a graph was %s\n", graph != NULL ? "captured" : "NOT captured");
    SHOW(cudaGraphDestroy(graph));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(p));
}

static void peer(void)
{
    SHOW(cudaDeviceEnablePeerAccess(1, 0));
    MUST(cudaSetDevice(1));
    SHOW(cudaDeviceEnablePeerAccess(0, 0));
    MUST(cudaSetDevice(0));
}

static void pool(void)
{
    cudaMemPool_t default_pool;
    uint64_t threshold = UINT64_MAX;
    MUST(cudaDeviceGetDefaultMemPool(&default_pool, 0));
    SHOW(cudaMemPoolSetAttribute(default_pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

static void ipc(size_t bytes)
{
    cudaIpcMemHandle_t handle;
    void *p = NULL;
    MUST(cudaMalloc(&p, bytes));
    SHOW(cudaIpcGetMemHandle(&handle, p));
    MUST(cudaFree(p));
}

int main(int argc, char **argv)
{
    void *live = NULL, *later = NULL, *freed = NULL;
    const char *what = argc > 1 ? argv[1] : "";
    MUST(cudaMalloc(&live, 1 << 20));
    MUST(cudaMemset(live, 5, 1 << 20));
    MUST(cudaMalloc(&freed, 2 << 20));
    MUST(cudaFree(freed));
    if (strcmp(what, "capture") == 0) {
        capture();
    } else if (strcmp(what, "peer") == 0) {
        peer();
    } else if (strcmp(what, "pool") == 0) {
        pool();
    } else if (strcmp(what, "ipc") == 0) {
        ipc(24 << 20);
    } else if (strcmp(what, "ipc-part") == 0) {
        ipc(4096);
    }
    MUST(cudaMalloc(&later, 1 << 20));
    MUST(cudaMemset(later, 6, 1 << 20));
    printf("live: %s, later: %s\n", all_bytes_are(live, 1 << 20, 5) ? "right" : "WRONG",
           all_bytes_are(later, 1 << 20, 6) ? "right" : "WRONG");
    SHOW(cudaFree(live));
    SHOW(cudaFree(later));
    SHOW(cudaFree(live));
    return 0;
}
