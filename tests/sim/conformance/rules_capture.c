/* SPDX-License-Identifier: MIT */
/* Stream capture and what ends it. */
#include "rule.h"

#include <pthread.h>

static cudaStream_t stream;
static char *p;

static void start(enum cudaStreamCaptureMode mode)
{
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, 256));
    OK(cudaMemset(p, 0, 256));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamBeginCapture(stream, mode));
}

static enum cudaStreamCaptureStatus status_of(cudaStream_t of)
{
    enum cudaStreamCaptureStatus status;

    OK(cudaStreamIsCapturing(of, &status));
    return status;
}

static void check_ends_well(void)
{
    cudaGraph_t graph = NULL;

    OK(cudaStreamEndCapture(stream, &graph));
    CHECK(graph != NULL);
    OK(cudaGraphDestroy(graph));
    CHECK_EQ(status_of(stream), cudaStreamCaptureStatusNone);
}

static void check_ends_broken(void)
{
    cudaGraph_t graph = (cudaGraph_t)&graph;

    CHECK_EQ(status_of(stream), cudaStreamCaptureStatusInvalidated);
    CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK(graph == NULL);
    CHECK_EQ(status_of(stream), cudaStreamCaptureStatusNone);
}

RULE(capture, work_does_not_run, "cuda.h, cuStreamBeginCapture")
{
    start(cudaStreamCaptureModeRelaxed);
    OK(launch_fill(p, 256, 1, stream));
    OK(cudaMemsetAsync(p, 2, 256, stream));
    CHECK_EQ(status_of(stream), cudaStreamCaptureStatusActive);
    check_ends_well();
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 0);
}

RULE(capture, the_legacy_stream_cannot, "cuda.h, cuStreamBeginCapture")
{
    OK(cudaFree(NULL));
    CHECK_EQ(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
             cudaErrorStreamCaptureUnsupported);
}

RULE(capture, it_begins_once, "cuda.h, cuStreamBeginCapture")
{
    start(cudaStreamCaptureModeGlobal);
    CHECK_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
    check_ends_well();
}

RULE(capture, it_ends_only_if_begun, "cuda.h, cuStreamEndCapture")
{
    cudaGraph_t graph;

    OK(cudaStreamCreate(&stream));
    CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
}

RULE(capture, modes_are_checked, "cuda.h, cuThreadExchangeStreamCaptureMode")
{
    enum cudaStreamCaptureMode mode = (enum cudaStreamCaptureMode)9;

    OK(cudaStreamCreate(&stream));
    CHECK_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaErrorInvalidValue);
    CHECK_EQ(cudaStreamBeginCapture(stream, mode), cudaErrorInvalidValue);
}

RULE(capture, a_free_breaks_it, "cuda.h, cuThreadExchangeStreamCaptureMode")
{
    start(cudaStreamCaptureModeGlobal);
    CHECK_EQ(cudaFree(p), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
    OK(cudaFree(p));
}

RULE(capture, an_allocation_breaks_it, "cuda.h, cuThreadExchangeStreamCaptureMode")
{
    void *q;

    start(cudaStreamCaptureModeThreadLocal);
    CHECK_EQ(cudaMalloc(&q, 1), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

RULE(capture, a_host_allocation_breaks_it, "assumed")
{
    void *q;

    start(cudaStreamCaptureModeGlobal);
    CHECK_EQ(cudaMallocHost(&q, 1), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

RULE(capture, a_relaxed_one_allows_both, "cuda.h, cuThreadExchangeStreamCaptureMode")
{
    void *q;

    start(cudaStreamCaptureModeRelaxed);
    OK(cudaMalloc(&q, 1));
    OK(cudaFree(q));
    check_ends_well();
}

RULE(capture, a_relaxed_thread_may_too, "cuda.h, cuThreadExchangeStreamCaptureMode")
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    void *q;

    start(cudaStreamCaptureModeGlobal);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK_EQ(mode, cudaStreamCaptureModeGlobal);
    OK(cudaMalloc(&q, 1));
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK_EQ(mode, cudaStreamCaptureModeRelaxed);
    check_ends_well();
}

RULE(capture, work_in_a_broken_one_is_refused, "cuda.h, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")
{
    start(cudaStreamCaptureModeGlobal);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    CHECK_EQ(launch_fill(p, 1, 1, stream), cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    check_ends_broken();
}

RULE(capture, a_context_event_breaks_any, "cuda.h, cuCtxRecordEvent")
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CUcontext context = rule_start(0);
    CUevent event;

    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    start(cudaStreamCaptureModeRelaxed);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK_EQ(cuCtxRecordEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    check_ends_broken();
    OK(cuCtxRecordEvent(context, event));
}

RULE(capture, a_context_wait_breaks_any, "cuda.h, cuCtxWaitEvent")
{
    CUcontext context = rule_start(0);
    CUevent event;

    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuCtxRecordEvent(context, event));
    start(cudaStreamCaptureModeRelaxed);
    CHECK_EQ(cuCtxWaitEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    check_ends_broken();
}

RULE(capture, synchronising_the_device_breaks_it, "guide, Prohibited and Unhandled Operations")
{
    start(cudaStreamCaptureModeRelaxed);
    CHECK_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

RULE(capture, synchronising_the_stream_breaks_it, "guide, Prohibited and Unhandled Operations")
{
    start(cudaStreamCaptureModeRelaxed);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

RULE(capture, querying_the_stream_breaks_it, "guide, Prohibited and Unhandled Operations")
{
    start(cudaStreamCaptureModeRelaxed);
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

RULE(capture, the_legacy_stream_breaks_a_blocking_one, "cuda.h, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT")
{
    OK(cudaMalloc((void **)&p, 256));
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK_EQ(launch_fill(p, 256, 1, NULL), cudaErrorStreamCaptureImplicit);
    cudaGetLastError();
    check_ends_broken();
}

RULE(capture, the_legacy_stream_spares_a_non_blocking_one, "cuda.h, CU_STREAM_NON_BLOCKING")
{
    start(cudaStreamCaptureModeRelaxed);
    OK(launch_fill(p, 256, 1, NULL));
    check_ends_well();
    OK(cudaDeviceSynchronize());
    CHECK_EQ(rule_first_byte(p), 1);
}

RULE(capture, asking_the_legacy_stream_is_implicit, "cuda.h, cuStreamIsCapturing")
{
    enum cudaStreamCaptureStatus status;

    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK_EQ(cudaStreamIsCapturing(NULL, &status), cudaErrorStreamCaptureImplicit);
    check_ends_well();
}

RULE(capture, a_captured_event_cannot_be_queried, "cuda.h, CUDA_ERROR_CAPTURED_EVENT")
{
    cudaEvent_t event;

    OK(cudaEventCreate(&event));
    start(cudaStreamCaptureModeRelaxed);
    OK(cudaEventRecord(event, stream));
    CHECK_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
    check_ends_broken();
}

RULE(capture, other_streams_join_by_events, "guide, Cross-stream Dependencies and Events")
{
    cudaStream_t other;
    cudaEvent_t event;

    OK(cudaEventCreate(&event));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    start(cudaStreamCaptureModeGlobal);
    OK(cudaEventRecord(event, stream));
    OK(cudaStreamWaitEvent(other, event, 0));
    CHECK_EQ(status_of(other), cudaStreamCaptureStatusActive);
    OK(cudaEventRecord(event, other));
    OK(cudaStreamWaitEvent(stream, event, 0));
    check_ends_well();
    CHECK_EQ(status_of(other), cudaStreamCaptureStatusNone);
}

RULE(capture, it_ends_where_it_began, "cuda.h, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED")
{
    cudaStream_t other;
    cudaEvent_t event;
    cudaGraph_t graph;

    OK(cudaEventCreate(&event));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    start(cudaStreamCaptureModeGlobal);
    OK(cudaEventRecord(event, stream));
    OK(cudaStreamWaitEvent(other, event, 0));
    CHECK_EQ(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
}

RULE(capture, outside_work_is_not_waited_for, "cuda.h, CUDA_ERROR_STREAM_CAPTURE_ISOLATION")
{
    cudaEvent_t event;

    OK(cudaEventCreate(&event));
    OK(cudaEventRecord(event, NULL));
    start(cudaStreamCaptureModeGlobal);
    CHECK_EQ(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation);
    check_ends_broken();
}

static void *query(void *event)
{
    return (void *)(size_t)cudaEventQuery(event);
}

static int query_elsewhere(void)
{
    cudaEvent_t event;
    pthread_t thread;
    void *result;

    OK(cudaEventCreate(&event));
    pthread_create(&thread, NULL, query, event);
    pthread_join(thread, &result);
    return (int)(size_t)result;
}

RULE(capture, other_threads_break_a_global_one, "cuda.h, cuThreadExchangeStreamCaptureMode")
{
    start(cudaStreamCaptureModeGlobal);
    CHECK_EQ(query_elsewhere(), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

RULE(capture, other_threads_spare_a_local_one, "cuda.h, cuThreadExchangeStreamCaptureMode")
{
    start(cudaStreamCaptureModeThreadLocal);
    CHECK_EQ(query_elsewhere(), 0);
    check_ends_well();
}

static void *end_it(void *graph)
{
    return (void *)(size_t)cudaStreamEndCapture(stream, graph);
}

RULE(capture, the_thread_that_began_it_ends_it, "cuda.h, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD")
{
    cudaGraph_t graph;
    pthread_t thread;
    void *result;

    start(cudaStreamCaptureModeThreadLocal);
    pthread_create(&thread, NULL, end_it, &graph);
    pthread_join(thread, &result);
    CHECK_EQ((size_t)result, cudaErrorStreamCaptureWrongThread);
    check_ends_well();
}

RULE(capture, any_thread_ends_a_relaxed_one, "cuda.h, cuStreamEndCapture")
{
    cudaGraph_t graph;
    pthread_t thread;
    void *result;

    start(cudaStreamCaptureModeRelaxed);
    pthread_create(&thread, NULL, end_it, &graph);
    pthread_join(thread, &result);
    CHECK_EQ((size_t)result, 0);
}

RULE(capture, it_has_an_id_of_its_own, "cuda.h, cuStreamGetCaptureInfo")
{
    enum cudaStreamCaptureStatus status;
    unsigned long long first = 0;
    unsigned long long second = 0;

    start(cudaStreamCaptureModeGlobal);
    OK(cudaStreamGetCaptureInfo(stream, &status, &first, NULL, NULL, NULL, NULL));
    CHECK_EQ(status, cudaStreamCaptureStatusActive);
    check_ends_well();
    start(cudaStreamCaptureModeGlobal);
    OK(cudaStreamGetCaptureInfo(stream, &status, &second, NULL, NULL, NULL, NULL));
    CHECK(first != second);
    check_ends_well();
}

RULE(capture, memory_it_uses_is_not_freed_meanwhile, "assumed", RULE_WRONG)
{
    start(cudaStreamCaptureModeRelaxed);
    OK(launch_fill(p, 64, 1, stream));
    CHECK_EQ(cudaFree(p), cudaErrorIllegalAddress);
}

RULE(capture, memory_it_has_used_may_be_freed, "assumed", RULE_RIGHT)
{
    start(cudaStreamCaptureModeRelaxed);
    OK(launch_fill(p, 64, 1, stream));
    check_ends_well();
    OK(cudaFree(p));
}
