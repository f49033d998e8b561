/* SPDX-License-Identifier: MIT */
/* What a program must not do with memory, and what it may. A device is silent about the first kind;
 * the simulator is not, whatever the timing was. */
#include "rule.h"

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

static char *take(cudaStream_t stream)
{
    void *q;

    OK(cudaMallocAsync(&q, BYTES, stream));
    return q;
}

static void order(cudaStream_t before, cudaStream_t after)
{
    cudaEvent_t event;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaEventRecord(event, before));
    OK(cudaStreamWaitEvent(after, event, 0));
    OK(cudaEventDestroy(event));
}

RULE(order, dead_memory_is_not_touched, "cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS", RULE_WRONG)
{
    start();
    OK(cudaFree(p));
    CHECK_EQ(cudaMemset(p, 0, BYTES), cudaErrorIllegalAddress);
}

RULE(order, an_illegal_address_ends_the_context, "cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS", RULE_WRONG)
{
    start();
    OK(cudaFree(p));
    CHECK_EQ(cudaMemset(p, 0, BYTES), cudaErrorIllegalAddress);
    CHECK_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CHECK_EQ(cudaMalloc((void **)&p, 1), cudaErrorIllegalAddress);
}

RULE(order, dead_memory_is_not_copied_from, "cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS", RULE_WRONG)
{
    char host[16];

    start();
    OK(cudaFree(p));
    CHECK_EQ(cudaMemcpy(host, p, 16, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
}

RULE(order, kernels_do_not_touch_dead_memory, "cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS", RULE_WRONG)
{
    start();
    OK(cudaFree(p));
    CHECK_EQ(launch_fill(p, 16, 1, first), cudaErrorIllegalAddress);
}

RULE(order, a_set_stays_in_its_block, "cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS", RULE_WRONG)
{
    start();
    CHECK_EQ(cudaMemset(p, 0, BYTES + 1), cudaErrorIllegalAddress);
}

RULE(order, a_copy_stays_in_its_block, "cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS", RULE_WRONG)
{
    static char host[BYTES];

    start();
    CHECK_EQ(cudaMemcpy(p + 1, host, BYTES, cudaMemcpyHostToDevice), cudaErrorIllegalAddress);
}

RULE(order, two_streams_do_not_write_at_once, "guide, Streams", RULE_WRONG)
{
    start();
    OK(launch_fill(p, BYTES, 1, first));
    CHECK_EQ(cudaMemsetAsync(p + 100, 0, 1, second), cudaErrorIllegalAddress);
}

RULE(order, none_writes_what_another_reads, "guide, Streams", RULE_WRONG)
{
    char *q;

    start();
    OK(cudaMalloc((void **)&q, BYTES));
    OK(launch_copy(q, p, BYTES, first));
    CHECK_EQ(launch_fill(p, 1, 1, second), cudaErrorIllegalAddress);
}

RULE(order, none_reads_what_another_writes, "guide, Streams", RULE_WRONG)
{
    char *q;

    start();
    OK(cudaMalloc((void **)&q, BYTES));
    OK(launch_fill(p + 8, 1, 1, second));
    CHECK_EQ(launch_copy(q, p, BYTES, first), cudaErrorIllegalAddress);
}

RULE(order, a_copy_to_the_host_reads, "guide, Streams", RULE_WRONG)
{
    void *pinned;

    start();
    OK(cudaMallocHost(&pinned, 16));
    OK(launch_fill(p, BYTES, 1, first));
    CHECK_EQ(cudaMemcpyAsync(pinned, p, 16, cudaMemcpyDeviceToHost, second),
             cudaErrorIllegalAddress);
}

RULE(order, rows_may_meet, "guide, Streams", RULE_WRONG)
{
    start();
    OK(cudaMemset2DAsync(p, 64, 1, 33, 16, first));
    CHECK_EQ(cudaMemset2DAsync(p + 32, 64, 1, 32, 16, second), cudaErrorIllegalAddress);
}

RULE(order, an_earlier_event_does_not_help, "cuda.h, cuEventRecord", RULE_WRONG)
{
    cudaEvent_t event;

    start();
    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, first));
    OK(launch_fill(p, BYTES, 1, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    CHECK_EQ(launch_fill(p, BYTES, 2, second), cudaErrorIllegalAddress);
}

RULE(order, an_event_moved_on_does_not_help, "cuda.h, cuStreamWaitEvent", RULE_WRONG)
{
    cudaEvent_t event;

    start();
    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    OK(launch_fill(p, BYTES, 1, first));
    OK(cudaEventRecord(event, first));
    CHECK_EQ(launch_fill(p, BYTES, 2, second), cudaErrorIllegalAddress);
}

RULE(order, waiting_goes_one_way, "cuda.h, cuStreamWaitEvent", RULE_WRONG)
{
    start();
    OK(launch_fill(p, BYTES, 1, first));
    order(second, first);
    CHECK_EQ(launch_fill(p, BYTES, 2, second), cudaErrorIllegalAddress);
}

RULE(order, the_legacy_stream_does_not_order_non_blocking_ones, "cuda.h, CU_STREAM_NON_BLOCKING",
     RULE_WRONG)
{
    start();
    OK(launch_fill(p, BYTES, 1, NULL));
    CHECK_EQ(launch_fill(p, BYTES, 2, first), cudaErrorIllegalAddress);
}

RULE(order, synchronising_another_stream_does_not_help, "cuda.h, cuStreamSynchronize", RULE_WRONG)
{
    cudaStream_t third;

    start();
    OK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
    OK(launch_fill(p, BYTES, 1, first));
    OK(cudaStreamSynchronize(third));
    CHECK_EQ(launch_fill(p, BYTES, 2, second), cudaErrorIllegalAddress);
}

RULE(order, a_destroyed_stream_is_still_working, "cuda.h, cuStreamDestroy", RULE_WRONG)
{
    cudaStream_t third;

    start();
    OK(launch_fill(p, BYTES, 1, first));
    OK(cudaStreamDestroy(first));
    OK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
    CHECK_EQ(launch_fill(p, BYTES, 2, third), cudaErrorIllegalAddress);
}

RULE(order, an_ordered_free_needs_order, "guide, Stream Ordered Memory Allocator", RULE_WRONG)
{
    start();
    char *q = take(first);
    OK(launch_fill(q, BYTES, 1, first));
    CHECK_EQ(cudaFreeAsync(q, second), cudaErrorIllegalAddress);
}

RULE(order, an_ordered_free_is_the_end, "cuda.h, cuMemFreeAsync", RULE_WRONG)
{
    start();
    char *q = take(first);
    OK(cudaFreeAsync(q, first));
    CHECK_EQ(launch_fill(q, BYTES, 1, first), cudaErrorIllegalAddress);
}

RULE(order, memory_is_not_used_before_its_allocation, "cuda.h, cuMemAllocAsync", RULE_WRONG)
{
    start();
    CHECK_EQ(launch_fill(take(first), BYTES, 1, second), cudaErrorIllegalAddress);
}

RULE(order, a_plain_free_of_pool_memory_does_not_wait, "cuda.h, cuMemFree", RULE_WRONG)
{
    start();
    char *q = take(first);
    OK(launch_fill(q, BYTES, 1, first));
    CHECK_EQ(cudaFree(q), cudaErrorIllegalAddress);
}

RULE(order, streams_order, "guide, Streams", RULE_RIGHT)
{
    start();
    OK(launch_fill(p, BYTES, 1, first));
    OK(cudaMemsetAsync(p, 2, BYTES, first));
    OK(launch_fill(p, BYTES, 3, first));
    OK(cudaDeviceSynchronize());
}

RULE(order, events_order, "cuda.h, cuStreamWaitEvent", RULE_RIGHT)
{
    char *q;

    start();
    OK(cudaMalloc((void **)&q, BYTES));
    OK(launch_fill(p, BYTES, 1, first));
    order(first, second);
    OK(launch_copy(q, p, BYTES, second));
    order(second, first);
    OK(launch_fill(p, BYTES, 2, first));
    OK(cudaDeviceSynchronize());
}

RULE(order, order_passes_on, "cuda.h, cuStreamWaitEvent", RULE_RIGHT)
{
    cudaStream_t third;

    start();
    OK(cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking));
    OK(launch_fill(p, BYTES, 1, first));
    order(first, second);
    order(second, third);
    OK(launch_fill(p, BYTES, 2, third));
    OK(cudaDeviceSynchronize());
}

RULE(order, synchronising_orders, "cuda.h, cuStreamSynchronize", RULE_RIGHT)
{
    start();
    OK(launch_fill(p, BYTES, 1, first));
    OK(cudaStreamSynchronize(first));
    OK(launch_fill(p, BYTES, 2, second));
    OK(cudaDeviceSynchronize());
    OK(launch_fill(p, BYTES, 3, cudaStreamPerThread));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    OK(launch_fill(p, BYTES, 4, first));
    OK(cudaDeviceSynchronize());
}

RULE(order, a_complete_event_orders, "cuda.h, cuEventQuery", RULE_RIGHT)
{
    cudaEvent_t event;

    start();
    OK(cudaEventCreate(&event));
    OK(launch_fill(p, BYTES, 1, first));
    OK(cudaEventRecord(event, first));
    OK(cudaEventSynchronize(event));
    OK(cudaEventQuery(event));
    OK(launch_fill(p, BYTES, 2, second));
    OK(cudaDeviceSynchronize());
}

RULE(order, the_legacy_stream_orders_blocking_ones, "guide, Implicit Synchronization", RULE_RIGHT)
{
    cudaStream_t blocking;

    start();
    OK(cudaStreamCreate(&blocking));
    OK(launch_fill(p, BYTES, 1, blocking));
    OK(launch_fill(p, BYTES, 2, NULL));
    OK(launch_fill(p, BYTES, 3, blocking));
    OK(launch_fill(p, BYTES, 4, cudaStreamLegacy));
    OK(launch_fill(p, BYTES, 5, cudaStreamPerThread));
    OK(cudaDeviceSynchronize());
}

RULE(order, neighbours_do_not_meet, "assumed", RULE_RIGHT)
{
    start();
    OK(launch_fill(p, 2048, 1, first));
    OK(launch_fill(p + 2048, 2048, 2, second));
    OK(cudaDeviceSynchronize());
    OK(cudaMemset2DAsync(p, 64, 1, 32, 16, first));
    OK(cudaMemset2DAsync(p + 32, 64, 1, 32, 16, second));
    OK(cudaDeviceSynchronize());
}

RULE(order, reads_go_together, "assumed", RULE_RIGHT)
{
    char *q;

    start();
    OK(cudaMalloc((void **)&q, BYTES));
    OK(launch_copy(q, p, 1024, first));
    OK(launch_copy(q + 1024, p, 1024, second));
    OK(cudaDeviceSynchronize());
}

RULE(order, context_events_order_everything, "cuda.h, cuCtxRecordEvent", RULE_RIGHT)
{
    CUevent event;
    CUcontext context = rule_start(0);

    start();
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(launch_fill(p, BYTES, 1, first));
    OK(cuCtxRecordEvent(context, event));
    OK(cuStreamWaitEvent(second, event, 0));
    OK(launch_fill(p, BYTES, 2, second));
    OK(cuCtxRecordEvent(context, event));
    OK(cuEventSynchronize(event));
    OK(launch_fill(p, BYTES, 3, first));
    OK(cuCtxRecordEvent(context, event));
    OK(cuCtxWaitEvent(context, event));
    OK(launch_fill(p, BYTES, 4, second));
    OK(cudaDeviceSynchronize());
}

RULE(order, pool_memory_moves_in_stream_order, "guide, Stream Ordered Memory Allocator", RULE_RIGHT)
{
    start();
    for (int i = 0; i < 5; i++) {
        char *q = take(first);
        OK(launch_fill(q, BYTES, 1, first));
        OK(cudaFreeAsync(q, first));
        order(first, second);
        char *r = take(second);
        OK(launch_fill(r, BYTES, 2, second));
        OK(cudaFreeAsync(r, second));
        OK(cudaStreamSynchronize(second));
    }
    OK(cudaDeviceSynchronize());
}

RULE(order, a_free_makes_memory_anyones, "assumed", RULE_RIGHT)
{
    char *q;

    start();
    OK(launch_fill(p, BYTES, 1, first));
    OK(cudaFree(p));
    OK(cudaMalloc((void **)&q, BYTES));
    OK(launch_fill(q, BYTES, 1, second));
    OK(cudaDeviceSynchronize());
}

RULE(order, a_host_function_orders_for_the_host, "cuda.h, cuLaunchHostFunc", RULE_RIGHT)
{
    start();
    OK(launch_fill(p, BYTES, 1, first));
    order(first, second);
    OK(cudaStreamSynchronize(second));
    OK(launch_fill(p, BYTES, 2, cudaStreamPerThread));
    OK(cudaDeviceSynchronize());
}
