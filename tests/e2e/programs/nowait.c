/* SPDX-License-Identifier: MIT */
/* Calls that return at once although the device is busy: a host function keeps a stream occupied
 * until the call, chosen by the argument, has returned. A watchdog ends a program that waits, after
 * the seconds of a second argument. */
#include <stdatomic.h>

#include <cuda.h>

#include "program.h"
#include "watchdog.h"

/* The header names a later form, which old drivers lack. */
#undef cuCtxCreate_v2
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);

enum { HANG_SECONDS = 4 };
static const double at_once_seconds = 1.5;

static atomic_int started, released;
static cudaStream_t blocked, idle, doomed;
static cudaEvent_t event;
static void *p, *q;

static void CUDART_CB wait_for_release(void *unused)
{
    (void)unused;
    atomic_store(&started, 1);
    while (!atomic_load(&released)) {
        usleep(200);
    }
}

static void allocate(void)
{
    MUST(cudaMalloc(&p, 1 << 20));
    MUST(cudaMalloc(&q, 1 << 20));
}

static void allocate_async(void)
{
    MUST(cudaMallocAsync(&p, 1 << 20, idle));
    MUST(cudaMallocAsync(&q, 1 << 20, blocked));
    MUST(cudaDeviceSynchronize());
}

/* Leaves 64 MiB idle in whatever keeps freed memory. */
static void fill_cache(void)
{
    MUST(cudaMalloc(&p, 64 << 20));
    MUST(cudaMalloc(&q, 1 << 20));
    MUST(cudaFree(p));
    MUST(cudaFree(q));
    MUST(cudaMallocAsync(&p, 3 << 20, idle));
    MUST(cudaFreeAsync(p, idle));
    MUST(cudaDeviceSynchronize());
    p = q = NULL;
}

static cudaMemPool_t default_pool(void)
{
    cudaMemPool_t pool;
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static void allocate_async_then_pool(void)
{
    uint64_t threshold = 0;
    allocate_async();
    MUST(cudaMemPoolGetAttribute(default_pool(), cudaMemPoolAttrReleaseThreshold, &threshold));
}

static void use_doomed(void)
{
    MUST(cudaMallocAsync(&p, 1 << 20, doomed));
    MUST(cudaMemsetAsync(p, 1, 1 << 20, doomed));
    MUST(cudaFreeAsync(p, doomed));
}

static void use_and_free_on_doomed(void)
{
    allocate_async();
    MUST(cudaFreeAsync(p, doomed));
    MUST(cudaFree(q));
}

static void record(void)
{
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    fill_cache();
}

static void two_large_holes(void)
{
    MUST(cudaMalloc(&p, (size_t)6 << 30));
    MUST(cudaMalloc(&q, (size_t)6 << 30));
    MUST(cudaFree(p));
    MUST(cudaFree(q));
}

/* On drivers before 12.5 the second context ends caching, which leaves 64 MiB idle. */
static void fill_cache_and_end_caching(void)
{
    CUcontext mine, before;
    fill_cache();
    cuCtxGetCurrent(&before);
    printf("cuCtxCreate -> %d\n", (int)cuCtxCreate_v2(&mine, 0, 0));
    cuCtxSetCurrent(before);
}

static void call_malloc_that_fits(void)
{
    SHOW(cudaMalloc(&p, 600 << 20));
}

static void allocate_async_much(void)
{
    MUST(cudaMallocAsync(&p, 64 << 20, idle));
}

static void call_free_async_and_wait(void)
{
    SHOW(cudaFreeAsync(p, idle));
    SHOW(cudaStreamSynchronize(idle));
    SHOW(cudaMalloc(&p, 128 << 20));
}

static void call_malloc_free_async(void)
{
    for (int i = 0; i < 4; i++) {
        cudaStream_t stream = i % 2 == 0 ? idle : blocked;
        SHOW(cudaMallocAsync(&p, 1 << 20, stream));
        SHOW(cudaMemsetAsync(p, i, 1 << 20, stream));
        SHOW(cudaFreeAsync(p, stream));
    }
}

static void call_malloc_free_async_default(void)
{
    SHOW(cudaMallocAsync(&p, 1 << 20, cudaStreamLegacy));
    SHOW(cudaFreeAsync(p, cudaStreamLegacy));
    SHOW(cudaMallocAsync(&p, 1 << 20, cudaStreamPerThread));
    SHOW(cudaFreeAsync(p, cudaStreamPerThread));
}

static void call_free(void)
{
    SHOW(cudaFree(p));
    SHOW(cudaFree(q));
}

static void call_free_async(void)
{
    SHOW(cudaFreeAsync(p, idle));
    SHOW(cudaFreeAsync(q, blocked));
}

static void call_stream_destroy(void)
{
    SHOW(cudaStreamDestroy(doomed));
}

static void call_capture(void)
{
    cudaGraph_t graph = NULL;
    SHOW(cudaStreamBeginCapture(idle, cudaStreamCaptureModeGlobal));
    SHOW(cudaStreamEndCapture(idle, &graph));
}

static void call_pool_get(void)
{
    uint64_t threshold = 0;
    SHOW(cudaMemPoolGetAttribute(default_pool(), cudaMemPoolAttrReleaseThreshold, &threshold));
}

static void call_pool_set(void)
{
    uint64_t threshold = UINT64_MAX;
    SHOW(cudaMemPoolSetAttribute(default_pool(), cudaMemPoolAttrReleaseThreshold, &threshold));
}

static void call_pool_create(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    cudaMemPool_t pool;
    SHOW(cudaMemPoolCreate(&pool, &props));
    SHOW(cudaDeviceSetMemPool(0, pool));
}

static void call_peer(void)
{
    SHOW(cudaDeviceEnablePeerAccess(1, 0));
}

static void call_malloc(void)
{
    SHOW(cudaMalloc(&p, 1 << 20));
    SHOW(cudaMalloc(&q, 64 << 20));
}

static void call_malloc_too_much(void)
{
    SHOW(cudaMalloc(&p, (size_t)20 << 30));
}

static void call_malloc_too_much_beside_pending(void)
{
    call_free_async();
    call_malloc_too_much();
}

static void call_malloc_over_holes(void)
{
    SHOW(cudaMalloc(&p, (size_t)10 << 30));
}

static void call_mem_get_info(void)
{
    size_t free_bytes, total;
    SHOW(cudaMemGetInfo(&free_bytes, &total));
}

static void call_event_query(void)
{
    SHOW(cudaEventQuery(event));
    SHOW(cudaEventRecord(event, blocked));
    SHOW(cudaEventQuery(event));
}

static const struct {
    const char *name;
    void (*prepare)(void);
    void (*call)(void);
} cases[] = {
    {"malloc-free-async", fill_cache, call_malloc_free_async},
    {"malloc-free-async-default", fill_cache, call_malloc_free_async_default},
    {"free", allocate, call_free},
    {"free-of-async", allocate_async, call_free},
    {"free-async", allocate_async, call_free_async},
    {"free-async-of-malloc", allocate, call_free_async},
    {"free-async-after-pool", allocate_async_then_pool, call_free_async},
    {"free-of-async-after-pool", allocate_async_then_pool, call_free},
    {"stream-destroy", use_doomed, call_stream_destroy},
    {"stream-destroy-freed-there", use_and_free_on_doomed, call_stream_destroy},
    {"capture", fill_cache, call_capture},
    {"pool-get", fill_cache, call_pool_get},
    {"pool-set", fill_cache, call_pool_set},
    {"pool-create", fill_cache, call_pool_create},
    {"peer", fill_cache, call_peer},
    {"malloc", fill_cache, call_malloc},
    {"malloc-that-fits", fill_cache_and_end_caching, call_malloc_that_fits},
    {"free-async-and-wait", allocate_async_much, call_free_async_and_wait},
    {"malloc-too-much", fill_cache, call_malloc_too_much},
    {"malloc-too-much-pending", allocate_async, call_malloc_too_much_beside_pending},
    {"malloc-over-holes", two_large_holes, call_malloc_over_holes},
    {"mem-get-info", fill_cache, call_mem_get_info},
    {"event-query", record, call_event_query},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(name, cases[i].name) != 0) {
            continue;
        }
        watchdog(argc > 2 ? atoi(argv[2]) : HANG_SECONDS);
        MUST(cudaStreamCreateWithFlags(&blocked, cudaStreamNonBlocking));
        MUST(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
        MUST(cudaStreamCreateWithFlags(&doomed, cudaStreamNonBlocking));
        cases[i].prepare();
        MUST(cudaLaunchHostFunc(blocked, wait_for_release, NULL));
        while (!atomic_load(&started)) {
            usleep(100);
        }
        double start = seconds();
        cases[i].call();
        double took = seconds() - start;
        atomic_store(&released, 1);
        MUST(cudaDeviceSynchronize());
        fprintf(stderr, "took %.3f s\n", took);
        printf("%s: %s\n", name, took < at_once_seconds ? "at once" : "SLOW");
        return 0;
    }
    printf("no such case\n");
    return 2;
}
