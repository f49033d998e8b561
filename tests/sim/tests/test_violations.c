/* SPDX-License-Identifier: MIT */
/* What a program must not do is caught, and what it may do is not. The cases of the first kind end
 * with exit status 97; every case runs in real and in virtual time. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>

#define BYTES 4096

static cudaStream_t first;
static cudaStream_t second;
static char *p;

/* Two streams that are not ordered by anything, and a block. */
static void start(void)
{
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, BYTES));
}

static void dead_memory(void)
{
    start();
    OK(cudaFree(p));
    CHECK_EQ(cudaMemset(p, 0, BYTES), cudaErrorIllegalAddress);
    CHECK_EQ(simcuda_violations(), 1);
    CHECK_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CHECK_EQ(cudaMalloc((void **)&p, 1), cudaErrorIllegalAddress);
}

static void end_of_a_block(void)
{
    start();
    CHECK_EQ(cudaMemset(p, 0, BYTES + 1), cudaErrorIllegalAddress);
}

static void argument_of_an_unknown_kernel(void)
{
    CUmodule module;
    CUfunction function;

    /* The sizes of its parameters come from the code; nvcc's program tests that. Here a kernel that
     * declares its ranges stands for it. */
    start();
    OK(cuModuleLoadData(&module, &sim_kernels_fatbin));
    OK(cuModuleGetFunction(&function, module, "sim_fill"));
    OK(cudaFree(p));
    CHECK_EQ(sim_fill(p, 16, 1, first), cudaErrorIllegalAddress);
}

static void two_writes(void)
{
    start();
    OK(sim_fill(p, BYTES, 1, first));
    CHECK_EQ(cudaMemsetAsync(p + 100, 0, 1, second), cudaErrorIllegalAddress);
    CHECK_EQ(simcuda_violations(), 1);
}

static void write_after_read(void)
{
    char *q;

    start();
    OK(cudaMalloc((void **)&q, BYTES));
    OK(sim_copy(q, p, BYTES, first));
    CHECK_EQ(sim_fill(p, 1, 1, second), cudaErrorIllegalAddress);
}

static void read_after_write(void)
{
    char *q;

    start();
    OK(cudaMalloc((void **)&q, BYTES));
    OK(sim_fill(p + 8, 1, 1, second));
    CHECK_EQ(sim_copy(q, p, BYTES, first), cudaErrorIllegalAddress);
}

static void an_event_before_the_work(void)
{
    cudaEvent_t event;

    start();
    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, first));
    OK(sim_fill(p, BYTES, 1, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    CHECK_EQ(sim_fill(p, BYTES, 2, second), cudaErrorIllegalAddress);
}

static void the_legacy_stream_and_a_non_blocking_one(void)
{
    start();
    OK(sim_fill(p, BYTES, 1, NULL));
    CHECK_EQ(sim_fill(p, BYTES, 2, first), cudaErrorIllegalAddress);
}

static void a_free_in_another_stream(void)
{
    char *q;

    start();
    OK(cudaMallocAsync((void **)&q, BYTES, first));
    OK(sim_fill(q, BYTES, 1, first));
    CHECK_EQ(cudaFreeAsync(q, second), cudaErrorIllegalAddress);
}

static void use_after_a_free_in_stream_order(void)
{
    char *q;

    start();
    OK(cudaMallocAsync((void **)&q, BYTES, first));
    OK(cudaFreeAsync(q, first));
    CHECK_EQ(sim_fill(q, BYTES, 1, first), cudaErrorIllegalAddress);
}

static void use_before_the_allocation(void)
{
    char *q;

    start();
    OK(cudaMallocAsync((void **)&q, BYTES, first));
    CHECK_EQ(sim_fill(q, BYTES, 1, second), cudaErrorIllegalAddress);
}

static void a_pool_block_freed_in_use(void)
{
    char *q;

    start();
    OK(cudaMallocAsync((void **)&q, BYTES, first));
    OK(sim_fill(q, BYTES, 1, first));
    CHECK_EQ(cudaFree(q), cudaErrorIllegalAddress);
}

static void a_stream_with_a_recycled_handle(void)
{
    cudaStream_t third;

    start();
    OK(sim_fill(p, BYTES, 1, first));
    OK(cudaStreamDestroy(first));
    OK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
    CHECK(third == first);
    CHECK_EQ(sim_fill(p, BYTES, 2, third), cudaErrorIllegalAddress);
}

static void all_order_is_fine(void)
{
    cudaEvent_t event;
    cudaStream_t blocking;
    char host[16];
    char *q;

    start();
    OK(cudaStreamCreate(&blocking));
    OK(cudaEventCreate(&event));
    OK(cudaMalloc((void **)&q, BYTES));
    OK(sim_fill(p, BYTES, 1, first));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    OK(sim_copy(q, p, BYTES, second));
    OK(cudaStreamSynchronize(second));
    OK(sim_fill(p, BYTES, 2, blocking));
    OK(sim_fill(p, BYTES, 3, NULL));
    OK(sim_fill(p, BYTES, 4, blocking));
    OK(cudaMemcpy(host, p, 16, cudaMemcpyDeviceToHost));
    CHECK_EQ(host[0], 4);
    OK(sim_fill(p, BYTES, 5, first));
    OK(cudaFree(q));
    OK(sim_fill(p, BYTES, 6, second));
    OK(cudaDeviceSynchronize());
    OK(sim_fill(p, BYTES, 7, cudaStreamPerThread));
    OK(cudaEventRecord(event, cudaStreamPerThread));
    OK(cudaEventSynchronize(event));
    OK(sim_fill(p, BYTES, 8, first));
    CHECK_EQ(simcuda_violations(), 0);
}

static void neighbours_and_reads_are_fine(void)
{
    char *q;

    start();
    OK(cudaMalloc((void **)&q, BYTES));
    OK(sim_fill(p, 2048, 1, first));
    OK(sim_fill(p + 2048, 2048, 2, second));
    OK(cudaDeviceSynchronize());
    OK(sim_copy(q, p, 1024, first));
    OK(sim_copy(q + 1024, p, 1024, second));
    OK(cudaDeviceSynchronize());
    OK(cudaMemset2DAsync(p, 64, 1, 32, 16, first));
    OK(cudaMemset2DAsync(p + 32, 64, 1, 32, 16, second));
    OK(cudaDeviceSynchronize());
}

static void context_events_order_everything(void)
{
    CUevent event;
    CUcontext context;

    start();
    OK(cuCtxGetCurrent(&context));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(sim_fill(p, BYTES, 1, first));
    OK(cuCtxRecordEvent(context, event));
    OK(cuStreamWaitEvent(second, event, 0));
    OK(sim_fill(p, BYTES, 2, second));
    OK(cuCtxRecordEvent(context, event));
    OK(cuEventSynchronize(event));
    OK(sim_fill(p, BYTES, 3, first));
    OK(cuCtxRecordEvent(context, event));
    OK(cuCtxWaitEvent(context, event));
    OK(sim_fill(p, BYTES, 4, second));
    OK(cudaDeviceSynchronize());
}

static void stream_order_of_pools_is_fine(void)
{
    char *q;
    char *r;
    cudaEvent_t event;

    start();
    OK(cudaEventCreate(&event));
    for (int i = 0; i < 5; i++) {
        OK(cudaMallocAsync((void **)&q, BYTES, first));
        OK(sim_fill(q, BYTES, 1, first));
        OK(cudaFreeAsync(q, first));
        OK(cudaEventRecord(event, first));
        OK(cudaStreamWaitEvent(second, event, 0));
        OK(cudaMallocAsync((void **)&r, BYTES, second));
        OK(sim_fill(r, BYTES, 2, second));
        OK(cudaFreeAsync(r, second));
        OK(cudaStreamSynchronize(second));
    }
    OK(cudaMallocAsync((void **)&q, BYTES, first));
    OK(cudaStreamSynchronize(first));
    OK(sim_fill(q, BYTES, 1, second));
    OK(cudaFreeAsync(q, second));
    OK(cudaDeviceSynchronize());
}

static void free_and_allocate_again_is_fine(void)
{
    char *q;

    start();
    OK(sim_fill(p, BYTES, 1, first));
    OK(cudaFree(p));
    OK(cudaMalloc((void **)&q, BYTES));
    CHECK(p == q);
    OK(sim_fill(q, BYTES, 1, second));
}

static void reports_do_not_change_the_status(void)
{
    start();
    OK(sim_fill(p, BYTES, 1, first));
    CHECK_EQ(sim_fill(p, BYTES, 1, second), cudaErrorIllegalAddress);
    simcuda_violations_reset();
    OK(cudaDeviceSynchronize());
    OK(sim_fill(p, BYTES, 1, first));
    CHECK_EQ(sim_fill(p, BYTES, 1, second), cudaErrorIllegalAddress);
}

static void ignored_ones_are_counted(void)
{
    start();
    OK(sim_fill(p, BYTES, 1, first));
    OK(sim_fill(p, BYTES, 1, second));
    CHECK_EQ(simcuda_violations(), 1);
}

#define VIRTUAL "SIMCUDA_TIME=virtual"
#define SLOW    "SIMCUDA_KERNEL_US=2000"

#define WRONG(name)                                                 \
    {#name, name, NULL, 97}, {#name "/virtual", name, VIRTUAL, 97}, \
    {                                                               \
#name "/slow", name, SLOW, 97                               \
    }
#define RIGHT(name)                                               \
    {#name, name, NULL, 0}, {#name "/virtual", name, VIRTUAL, 0}, \
    {                                                             \
#name "/slow", name, SLOW, 0                              \
    }

static const struct check_case cases[] = {
    WRONG(dead_memory),
    WRONG(end_of_a_block),
    WRONG(argument_of_an_unknown_kernel),
    WRONG(two_writes),
    WRONG(write_after_read),
    WRONG(read_after_write),
    WRONG(an_event_before_the_work),
    WRONG(the_legacy_stream_and_a_non_blocking_one),
    WRONG(a_free_in_another_stream),
    WRONG(use_after_a_free_in_stream_order),
    WRONG(use_before_the_allocation),
    WRONG(a_pool_block_freed_in_use),
    WRONG(a_stream_with_a_recycled_handle),
    RIGHT(all_order_is_fine),
    RIGHT(neighbours_and_reads_are_fine),
    RIGHT(context_events_order_everything),
    RIGHT(stream_order_of_pools_is_fine),
    RIGHT(free_and_allocate_again_is_fine),
    {"reports_do_not_change_the_status", reports_do_not_change_the_status,
     "SIMCUDA_VIOLATIONS=report", 0},
    {"ignored_ones_are_counted", ignored_ones_are_counted, "SIMCUDA_VIOLATIONS=ignore", 0},
};

CHECK_MAIN(cases)
