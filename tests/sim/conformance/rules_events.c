/* SPDX-License-Identifier: MIT */
/* Events of streams and of contexts. */
#include "rule.h"

static cudaEvent_t new_event(void)
{
    cudaEvent_t event;

    OK(cudaEventCreate(&event));
    return event;
}

static cudaStream_t new_stream(void)
{
    cudaStream_t stream;

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

RULE(event, an_unrecorded_one_is_complete, "cuda.h, cuEventQuery")
{
    cudaEvent_t event = new_event();

    OK(cudaEventQuery(event));
    OK(cudaEventSynchronize(event));
    OK(cudaStreamWaitEvent(NULL, event, 0));
}

RULE(event, it_marks_the_work_before_it, "cuda.h, cuEventRecord")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    cudaEvent_t before = new_event();
    cudaEvent_t after = new_event();

    OK(cudaEventRecord(before, stream));
    rule_close(&gate, stream);
    OK(cudaEventRecord(after, stream));
    OK(cudaEventSynchronize(before));
    CHECK_EQ(cudaEventQuery(after), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaEventSynchronize(after));
    OK(cudaEventQuery(after));
}

RULE(event, synchronising_waits, "cuda.h, cuEventSynchronize")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    cudaEvent_t event = new_event();

    rule_close(&gate, stream);
    OK(cudaEventRecord(event, stream));
    rule_open_soon(&gate);
    OK(cudaEventSynchronize(event));
    CHECK(rule_is_open(&gate));
}

RULE(event, recording_again_moves_it, "cuda.h, cuEventRecord")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    cudaEvent_t event = new_event();

    OK(cudaEventRecord(event, stream));
    OK(cudaEventSynchronize(event));
    rule_close(&gate, stream);
    OK(cudaEventRecord(event, stream));
    CHECK_EQ(cudaEventQuery(event), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(event, a_stream_waits_for_it, "cuda.h, cuStreamWaitEvent")
{
    struct rule_gate gate;
    cudaStream_t first = new_stream();
    cudaStream_t second = new_stream();
    cudaEvent_t event = new_event();

    rule_close(&gate, first);
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    OK(launch_shape((dim3){1, 1, 1}, (dim3){1, 1, 1}, second));
    CHECK(rule_is_held(second));
    rule_open(&gate);
    OK(cudaStreamSynchronize(second));
}

RULE(event, a_wait_means_the_record_of_its_time, "cuda.h, cuStreamWaitEvent")
{
    struct rule_gate gate;
    cudaStream_t first = new_stream();
    cudaStream_t second = new_stream();
    cudaEvent_t event = new_event();

    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    rule_close(&gate, first);
    OK(cudaEventRecord(event, first));
    OK(cudaStreamSynchronize(second));
    CHECK(!rule_is_open(&gate));
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(event, times_are_measured, "cuda.h, cuEventElapsedTime")
{
    cudaStream_t stream = new_stream();
    struct rule_gate gate;
    cudaEvent_t start = new_event();
    cudaEvent_t end = new_event();
    float ms = -1;

    OK(cudaEventRecord(start, stream));
    rule_close(&gate, stream);
    OK(cudaEventRecord(end, stream));
    rule_open_soon(&gate);
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms >= 0 && ms < 60000);
}

RULE(event, unrecorded_ones_have_no_time, "cuda.h, cuEventElapsedTime")
{
    float ms;

    CHECK_EQ(cudaEventElapsedTime(&ms, new_event(), new_event()), cudaErrorInvalidResourceHandle);
}

RULE(event, pending_ones_have_no_time_yet, "cuda.h, cuEventElapsedTime")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    cudaEvent_t start = new_event();
    cudaEvent_t end = new_event();
    float ms;

    OK(cudaEventRecord(start, stream));
    rule_close(&gate, stream);
    OK(cudaEventRecord(end, stream));
    CHECK_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(event, timing_can_be_disabled, "cuda.h, cuEventElapsedTime")
{
    cudaEvent_t event;
    float ms;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaEventRecord(event, NULL));
    OK(cudaEventSynchronize(event));
    CHECK_EQ(cudaEventElapsedTime(&ms, event, event), cudaErrorInvalidResourceHandle);
}

RULE(event, other_processes_get_no_timing, "cuda.h, cuEventCreate")
{
    CUevent event;

    rule_start(0);
    CHECK_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    CHECK_EQ(cuEventCreate(&event, 64), CUDA_ERROR_INVALID_VALUE);
}

RULE(event, a_destroyed_one_is_an_invalid_handle, "assumed", RULE_SIMULATED)
{
    cudaEvent_t event = new_event();

    OK(cudaEventDestroy(event));
    CHECK_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
}

RULE(event, destroying_does_not_wait, "cuda.h, cuEventDestroy")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    cudaEvent_t event = new_event();

    rule_close(&gate, stream);
    OK(cudaEventRecord(event, stream));
    OK(cudaEventDestroy(event));
    CHECK(!rule_is_open(&gate));
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(event, it_belongs_to_one_context, "cuda.h, cuEventRecord")
{
    CUcontext made;
    CUevent event;
    CUstream stream;

    rule_start(0);
    OK(cuEventCreate(&event, 0));
    OK(cuCtxCreate(&made, NULL, 0, 0));
    OK(cuStreamCreate(&stream, 0));
    CHECK_EQ(cuEventRecord(event, stream), CUDA_ERROR_INVALID_HANDLE);
}

RULE(event, none_is_an_invalid_handle, "cuda.h, cuEventRecord")
{
    rule_start(0);
    CHECK_EQ(cuEventRecord(NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
}

RULE(event, a_context_event_covers_every_stream, "cuda.h, cuCtxRecordEvent")
{
    struct rule_gate gate;
    CUcontext context = rule_start(0);
    CUevent event;

    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuCtxRecordEvent(context, event));
    OK(cuEventSynchronize(event));
    rule_close(&gate, new_stream());
    OK(cuCtxRecordEvent(context, event));
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    rule_open(&gate);
    OK(cuEventSynchronize(event));
}

RULE(event, a_context_event_is_not_moved_by_later_work, "cuda.h, cuCtxRecordEvent")
{
    struct rule_gate gate;
    CUcontext context = rule_start(0);
    CUevent event;

    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuCtxRecordEvent(context, event));
    rule_close(&gate, new_stream());
    OK(cuEventSynchronize(event));
    CHECK(!rule_is_open(&gate));
    rule_open(&gate);
    OK(cuCtxSynchronize());
}

RULE(event, a_context_event_needs_its_context, "cuda.h, cuCtxRecordEvent")
{
    CUcontext first = rule_start(0);
    CUcontext made;
    CUevent event;

    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK_EQ(cuCtxRecordEvent(first, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxCreate(&made, NULL, 0, 0));
    CHECK_EQ(cuCtxRecordEvent(made, event), CUDA_ERROR_INVALID_HANDLE);
}

RULE(event, a_context_waits_with_all_streams, "cuda.h, cuCtxWaitEvent")
{
    struct rule_gate gate;
    CUcontext context = rule_start(0);
    cudaStream_t first = new_stream();
    cudaStream_t second = new_stream();
    cudaEvent_t event = new_event();

    rule_close(&gate, first);
    OK(cudaEventRecord(event, first));
    OK(cuCtxWaitEvent(context, event));
    cudaStream_t later = new_stream();
    OK(launch_shape((dim3){1, 1, 1}, (dim3){1, 1, 1}, second));
    OK(launch_shape((dim3){1, 1, 1}, (dim3){1, 1, 1}, later));
    CHECK(rule_is_held(second));
    CHECK(rule_is_held(later));
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}
