/* SPDX-License-Identifier: MIT */
/* What allocation costs a program: an ordinary CUDA program that measures its own pairs, run alone
 * or under the library.
 *   bench_hooks async|malloc|stacks|driver [BYTES]
 * With CCA_BENCH_OPS=N it runs exactly N pairs once and prints no time. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"

enum { FRAMES = 20 };

static size_t bytes = 1024;
static cudaStream_t stream;
static CUevent event;

static void must(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "bench_hooks: %s: %d\n", what, code);
        exit(1);
    }
}

static void async_pairs(void *ctx, long ops)
{
    (void)ctx;
    for (long i = 0; i < ops; i++) {
        void *p = NULL;
        must(cudaMallocAsync(&p, bytes, stream), "cudaMallocAsync");
        must(cudaFreeAsync(p, stream), "cudaFreeAsync");
    }
}

static void malloc_pairs(void *ctx, long ops)
{
    (void)ctx;
    for (long i = 0; i < ops; i++) {
        void *p = NULL;
        must(cudaMalloc(&p, bytes), "cudaMalloc");
        must(cudaFree(p), "cudaFree");
    }
}

/* From twenty frames further down, as in a real program. */
__attribute__((noinline)) static void deep_pairs(int depth, long ops)
{
    if (depth == 0) {
        async_pairs(NULL, ops);
    } else {
        deep_pairs(depth - 1, ops);
    }
    __asm__ volatile(""); /* keeps the frame */
}

static void stack_pairs(void *ctx, long ops)
{
    (void)ctx;
    deep_pairs(FRAMES, ops);
}

/* The one driver call that a free in fence mode cannot do without. */
static void records(void *ctx, long ops)
{
    CUcontext context = ctx;
    for (long i = 0; i < ops; i++) {
        must(cuCtxRecordEvent(context, event), "cuCtxRecordEvent");
    }
}

static void stream_ids(void *ctx, long ops)
{
    unsigned long long id = 0;
    (void)ctx;
    for (long i = 0; i < ops; i++) {
        must(cuStreamGetId(stream, &id), "cuStreamGetId");
    }
}

static void run(const char *detail, batch_fn batch, void *ctx)
{
    const char *only = getenv("CCA_BENCH_OPS");
    if (only != NULL) {
        batch(ctx, 64);
        batch(ctx, atol(only));
        return;
    }
    struct figure figure = measure_batches(batch, ctx, 500, 400);
    const char *preload = getenv("LD_PRELOAD");
    measure_print(preload != NULL && strstr(preload, "cca") != NULL ? "hooks" : "native", detail,
                  &figure);
}

int main(int argc, char **argv)
{
    CUcontext context = NULL;
    const char *what = argc > 1 ? argv[1] : "";
    bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : bytes;
    measure_pin(0);
    must(cudaFree(NULL), "start");
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    must(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    if (strcmp(what, "async") == 0) {
        run("cudaMallocAsync and cudaFreeAsync, pair", async_pairs, NULL);
    } else if (strcmp(what, "malloc") == 0) {
        run("cudaMalloc and cudaFree, pair", malloc_pairs, NULL);
    } else if (strcmp(what, "stacks") == 0) {
        run("the asynchronous pair from 20 frames down", stack_pairs, NULL);
    } else if (strcmp(what, "driver") == 0) {
        run("cuCtxRecordEvent", records, context);
        run("cuStreamGetId", stream_ids, NULL);
    } else {
        fprintf(stderr, "usage: bench_hooks async|malloc|stacks|driver [BYTES]\n");
        return 2;
    }
    return 0;
}
