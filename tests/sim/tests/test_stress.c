/* SPDX-License-Identifier: MIT */
/* Eight threads allocate, launch, copy, synchronise and free at once, each in its own streams;
 * every byte must come back, and nothing may be called a violation. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { THREADS = 8, ROUNDS = 300, BLOCKS = 16, BYTES = 2048 };

struct worker {
    pthread_t thread;
    unsigned state;
};

static unsigned draw(struct worker *worker)
{
    worker->state = worker->state * 1664525u + 1013904223u;
    return worker->state >> 16;
}

static void one_round(struct worker *worker, cudaStream_t stream, char *blocks[BLOCKS])
{
    unsigned index = draw(worker) % BLOCKS;
    unsigned value = draw(worker) % 100;
    char host[BYTES];

    if (blocks[index] == NULL) {
        OK(draw(worker) % 2 != 0 ? cudaMalloc((void **)&blocks[index], BYTES)
                                 : cudaMallocAsync((void **)&blocks[index], BYTES, stream));
    }
    OK(sim_fill(blocks[index], BYTES, (int)value, stream));
    OK(cudaMemsetAsync(blocks[index], (int)value + 1, BYTES / 2, stream));
    OK(cudaMemcpyAsync(host, blocks[index], BYTES, cudaMemcpyDeviceToHost, stream));
    CHECK_EQ(host[0], value + 1);
    CHECK_EQ(host[BYTES - 1], value);
    switch (draw(worker) % 4) {
    case 0: OK(cudaStreamSynchronize(stream)); break;
    case 1: OK(cudaDeviceSynchronize()); break;
    case 2:
        OK(cudaFreeAsync(blocks[index], stream));
        blocks[index] = NULL;
        break;
    default:
        OK(cudaStreamSynchronize(stream));
        OK(cudaFree(blocks[index]));
        blocks[index] = NULL;
        break;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    cudaStream_t stream;
    char *blocks[BLOCKS] = {0};

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < ROUNDS; i++) {
        one_round(worker, stream, blocks);
    }
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < BLOCKS; i++) {
        OK(cudaFree(blocks[i]));
    }
    OK(cudaStreamDestroy(stream));
    return NULL;
}

static void all_together(void)
{
    struct worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i].state = (unsigned)i;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    OK(cudaDeviceSynchronize());
    CHECK_EQ(simcuda_live_blocks(0), 0);
    CHECK_EQ(simcuda_used_bytes(0), 0);
    CHECK_EQ(simcuda_violations(), 0);
}

/* Every kind of work that threads share something in: contexts, pools, graphs, addresses. */
struct mixed {
    struct worker worker;
    cudaStream_t streams[2];
    cudaEvent_t event;
    cudaGraphExec_t exec;
    CUdeviceptr range;
    CUmemGenericAllocationHandle memory;
    int calls;
    double until_s;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void CUDART_CB count_call(void *count)
{
    ++*(int *)count;
}

static const CUmemAllocationProp mixed_prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static void prepare(struct mixed *mixed)
{
    cudaGraph_t graph;
    void *q;

    OK(cudaFree(NULL));
    for (int i = 0; i < 2; i++) {
        OK(cudaStreamCreateWithFlags(&mixed->streams[i], cudaStreamNonBlocking));
    }
    OK(cudaEventCreateWithFlags(&mixed->event, cudaEventDisableTiming));
    OK(cudaStreamBeginCapture(mixed->streams[0], cudaStreamCaptureModeRelaxed));
    OK(cudaMallocAsync(&q, BYTES, mixed->streams[0]));
    OK(sim_fill(q, BYTES, 1, mixed->streams[0]));
    OK(cudaEventRecord(mixed->event, mixed->streams[0]));
    OK(cudaStreamWaitEvent(mixed->streams[1], mixed->event, 0));
    OK(cudaLaunchHostFunc(mixed->streams[1], count_call, &mixed->calls));
    OK(sim_fill(q, BYTES, 2, mixed->streams[0]));
    OK(cudaEventRecord(mixed->event, mixed->streams[1]));
    OK(cudaStreamWaitEvent(mixed->streams[0], mixed->event, 0));
    OK(cudaFreeAsync(q, mixed->streams[0]));
    OK(cudaStreamEndCapture(mixed->streams[0], &graph));
    OK(cudaGraphInstantiate(&mixed->exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cuMemAddressReserve(&mixed->range, 2 * 1024 * 1024, 0, 0, 0));
}

static void map_and_unmap(struct mixed *mixed, cudaStream_t stream)
{
    const size_t size = 2 * 1024 * 1024;
    CUmemAccessDesc desc = {.location = mixed_prop.location,
                            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    OK(cuMemCreate(&mixed->memory, size, &mixed_prop, 0));
    OK(cuMemMap(mixed->range, size, 0, mixed->memory, 0));
    OK(cuMemSetAccess(mixed->range, size, &desc, 1));
    OK(sim_fill((void *)mixed->range, 4096, 3, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cuMemUnmap(mixed->range, size));
    OK(cuMemRelease(mixed->memory));
}

/* Nothing here may stop another thread: no thread captures while others run. */
static void mixed_round(struct mixed *mixed)
{
    cudaStream_t stream = mixed->streams[draw(&mixed->worker) % 2];
    cudaStream_t short_lived;
    CUcontext context;
    size_t size;
    size_t total;
    void *p;
    void *q;

    switch (draw(&mixed->worker) % 8) {
    case 0: OK(cudaGraphLaunch(mixed->exec, stream)); break;
    case 1: map_and_unmap(mixed, stream); break;
    case 2:
        OK(cudaMallocAsync(&p, BYTES, stream));
        OK(sim_fill(p, BYTES, 1, stream));
        OK(cudaFreeAsync(p, stream));
        break;
    case 3:
        OK(cudaMalloc(&p, BYTES));
        OK(cudaMallocHost(&q, BYTES));
        OK(cudaMemcpyAsync(p, q, BYTES, cudaMemcpyHostToDevice, stream));
        OK(cudaFree(p));
        OK(cudaFreeHost(q));
        break;
    case 4:
        OK(cudaEventRecord(mixed->event, mixed->streams[0]));
        OK(cudaStreamWaitEvent(mixed->streams[1], mixed->event, 0));
        OK(cudaEventSynchronize(mixed->event));
        break;
    case 5:
        OK(cuCtxGetCurrent(&context));
        OK(cuCtxRecordEvent(context, mixed->event));
        OK(cudaEventSynchronize(mixed->event));
        OK(cudaMemGetInfo(&size, &total));
        break;
    case 6:
        OK(cudaStreamCreate(&short_lived));
        OK(sim_spin(10, short_lived));
        OK(cudaStreamDestroy(short_lived));
        break;
    default: OK(cudaLaunchHostFunc(stream, count_call, &mixed->calls)); break;
    }
}

static void *mix(void *argument)
{
    struct mixed *mixed = argument;

    while (now_s() < mixed->until_s) {
        mixed_round(mixed);
    }
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(mixed->exec));
    OK(cuMemAddressFree(mixed->range, 2 * 1024 * 1024));
    return NULL;
}

static void everything_mixed(void)
{
    struct mixed mixed[THREADS] = {0};
    const char *level = getenv("CCA_TEST_LEVEL");
    double seconds = level != NULL && strcmp(level, "full") == 0 ? 60 : 5;

    /* Captures first: a thread that captures forbids other threads much. */
    for (int i = 0; i < THREADS; i++) {
        mixed[i].worker.state = (unsigned)i;
        mixed[i].until_s = now_s() + seconds;
        prepare(&mixed[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&mixed[i].worker.thread, NULL, mix, &mixed[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(mixed[i].worker.thread, NULL);
    }
    OK(cudaDeviceGraphMemTrim(0));
    CHECK_EQ(simcuda_used_bytes(0), 0);
    CHECK_EQ(simcuda_violations(), 0);
}

static const struct check_case cases[] = {
    {"all_together", all_together, NULL, 0},
    {"everything_mixed", everything_mixed, NULL, 0},
    {"all_together/virtual", all_together, "SIMCUDA_TIME=virtual", 0},
    {"all_together/slow", all_together, "SIMCUDA_KERNEL_US=50 SIMCUDA_COPY_US=20", 0},
};

CHECK_MAIN(cases)
