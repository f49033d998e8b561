/* SPDX-License-Identifier: MIT */
/* Stream capture and what ends it. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <pthread.h>

static cudaStream_t stream;
static char *p;

static void start(enum cudaStreamCaptureMode mode)
{
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, 256));
    OK(cudaMemset(p, 0, 256));
    OK(cudaStreamBeginCapture(stream, mode));
}

static void check_ends_well(void)
{
    cudaGraph_t graph;

    OK(cudaStreamEndCapture(stream, &graph));
    CHECK(graph != NULL);
    OK(cudaGraphDestroy(graph));
}

static void check_ends_broken(void)
{
    cudaGraph_t graph;
    enum cudaStreamCaptureStatus status;

    OK(cudaStreamIsCapturing(stream, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusInvalidated);
    CHECK_EQ(sim_fill(p, 1, 1, stream), cudaErrorStreamCaptureInvalidated);
    CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    OK(cudaStreamIsCapturing(stream, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusNone);
}

static void captured_work_does_not_run(void)
{
    enum cudaStreamCaptureStatus status;

    start(cudaStreamCaptureModeGlobal);
    OK(sim_fill(p, 256, 1, stream));
    OK(cudaMemsetAsync(p, 2, 256, stream));
    OK(cudaStreamIsCapturing(stream, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusActive);
    CHECK_EQ(((char *)simcuda_payload((uint64_t)p))[0], 0);
    check_ends_well();
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(((char *)simcuda_payload((uint64_t)p))[0], 0);
}

static void a_free_breaks_it(void)
{
    start(cudaStreamCaptureModeGlobal);
    CHECK_EQ(cudaFree(p), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
    OK(cudaFree(p));
}

static void an_allocation_breaks_it(void)
{
    void *q;

    start(cudaStreamCaptureModeThreadLocal);
    CHECK_EQ(cudaMalloc(&q, 1), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

static void a_relaxed_capture_allows_both(void)
{
    void *q;

    start(cudaStreamCaptureModeRelaxed);
    OK(cudaMalloc(&q, 1));
    OK(cudaFree(q));
    check_ends_well();
}

static void a_relaxed_thread_may_too(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    void *q;

    start(cudaStreamCaptureModeGlobal);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK_EQ(mode, cudaStreamCaptureModeGlobal);
    OK(cudaMalloc(&q, 1));
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    check_ends_well();
}

static void a_context_event_breaks_any(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CUcontext context;
    CUevent event;

    OK(cudaFree(NULL));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    start(cudaStreamCaptureModeRelaxed);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    OK(cuCtxGetCurrent(&context));
    CHECK_EQ(cuCtxRecordEvent(context, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    check_ends_broken();
    OK(cuCtxRecordEvent(context, event));
}

static void synchronising_the_context_breaks_it(void)
{
    start(cudaStreamCaptureModeRelaxed);
    CHECK_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

static void synchronising_the_stream_breaks_it(void)
{
    start(cudaStreamCaptureModeGlobal);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

static void the_legacy_stream_breaks_a_blocking_one(void)
{
    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc((void **)&p, 256));
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK_EQ(sim_fill(p, 256, 1, NULL), cudaErrorStreamCaptureImplicit);
    check_ends_broken();
}

static void a_captured_event_cannot_be_queried(void)
{
    cudaEvent_t event;

    OK(cudaEventCreate(&event));
    start(cudaStreamCaptureModeRelaxed);
    OK(cudaEventRecord(event, stream));
    CHECK_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
    check_ends_broken();
}

static void other_streams_join_by_events(void)
{
    cudaStream_t other;
    cudaEvent_t event;
    enum cudaStreamCaptureStatus status;

    OK(cudaEventCreate(&event));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    start(cudaStreamCaptureModeGlobal);
    OK(cudaEventRecord(event, stream));
    OK(cudaStreamWaitEvent(other, event, 0));
    OK(cudaStreamIsCapturing(other, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusActive);
    OK(cudaEventRecord(event, other));
    OK(cudaStreamWaitEvent(stream, event, 0));
    check_ends_well();
    OK(cudaStreamIsCapturing(other, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusNone);
}

static void *query(void *event)
{
    return (void *)(uintptr_t)cudaEventQuery(event);
}

static void another_thread_breaks_a_global_one(void)
{
    cudaEvent_t event;
    pthread_t thread;
    void *result;

    OK(cudaEventCreate(&event));
    start(cudaStreamCaptureModeThreadLocal);
    pthread_create(&thread, NULL, query, event);
    pthread_join(thread, &result);
    CHECK_EQ((uintptr_t)result, 0);
    check_ends_well();
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    pthread_create(&thread, NULL, query, event);
    pthread_join(thread, &result);
    CHECK_EQ((uintptr_t)result, cudaErrorStreamCaptureUnsupported);
    check_ends_broken();
}

static void wrong_ends_are_refused(void)
{
    cudaGraph_t graph;

    OK(cudaStreamCreate(&stream));
    CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
    CHECK_EQ(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
             cudaErrorStreamCaptureUnsupported);
}

static const struct check_case cases[] = {
    {"captured_work_does_not_run", captured_work_does_not_run, NULL, 0},
    {"a_free_breaks_it", a_free_breaks_it, NULL, 0},
    {"an_allocation_breaks_it", an_allocation_breaks_it, NULL, 0},
    {"a_relaxed_capture_allows_both", a_relaxed_capture_allows_both, NULL, 0},
    {"a_relaxed_thread_may_too", a_relaxed_thread_may_too, NULL, 0},
    {"a_context_event_breaks_any", a_context_event_breaks_any, NULL, 0},
    {"synchronising_the_context_breaks_it", synchronising_the_context_breaks_it, NULL, 0},
    {"synchronising_the_stream_breaks_it", synchronising_the_stream_breaks_it, NULL, 0},
    {"the_legacy_stream_breaks_a_blocking_one", the_legacy_stream_breaks_a_blocking_one, NULL, 0},
    {"a_captured_event_cannot_be_queried", a_captured_event_cannot_be_queried, NULL, 0},
    {"other_streams_join_by_events", other_streams_join_by_events, NULL, 0},
    {"another_thread_breaks_a_global_one", another_thread_breaks_a_global_one, NULL, 0},
    {"wrong_ends_are_refused", wrong_ends_are_refused, NULL, 0},
};

CHECK_MAIN(cases)
