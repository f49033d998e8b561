/* SPDX-License-Identifier: MIT */
/* Streams and events in real time: order, ids, queries, host functions, delays. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void ids_are_never_used_again(void)
{
    cudaStream_t first;
    cudaStream_t second;
    unsigned long long id[2];
    unsigned long long legacy;

    OK(cudaStreamCreate(&first));
    OK(cudaStreamGetId(first, &id[0]));
    OK(cudaStreamDestroy(first));
    OK(cudaStreamCreate(&second));
    OK(cudaStreamGetId(second, &id[1]));
    CHECK(first == second);
    CHECK(id[0] != id[1]);
    OK(cudaStreamGetId(NULL, &legacy));
    OK(cudaStreamGetId(cudaStreamLegacy, &id[0]));
    CHECK_EQ(legacy, id[0]);
    OK(cudaStreamGetId(cudaStreamPerThread, &id[0]));
    CHECK(legacy != id[0]);
    OK(cudaStreamDestroy(second));
    CHECK_EQ(cudaStreamSynchronize(second), cudaErrorInvalidResourceHandle);
}

static void *get_thread_stream(void *id)
{
    OK(cudaStreamGetId(cudaStreamPerThread, id));
    return NULL;
}

static void every_thread_has_its_stream(void)
{
    unsigned long long own;
    unsigned long long other;
    pthread_t thread;

    OK(cudaStreamGetId(cudaStreamPerThread, &own));
    pthread_create(&thread, NULL, get_thread_stream, &other);
    pthread_join(thread, NULL);
    CHECK(own != other);
}

static void streams_have_properties(void)
{
    cudaStream_t stream;
    unsigned flags;
    int priority;
    int least;
    int greatest;
    CUcontext of_stream;
    CUcontext current;

    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least > greatest);
    OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -100));
    OK(cudaStreamGetFlags(stream, &flags));
    CHECK_EQ(flags, cudaStreamNonBlocking);
    OK(cudaStreamGetPriority(stream, &priority));
    CHECK_EQ(priority, greatest);
    OK(cuStreamGetCtx(stream, &of_stream));
    OK(cuCtxGetCurrent(&current));
    CHECK(of_stream == current);
}

static void delays_pass_in_the_background(void)
{
    cudaStream_t stream;
    char *p;
    double start;

    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc((void **)&p, 100));
    start = now_ms();
    OK(sim_fill_slow(p, 100, 1, 300000, stream));
    CHECK(now_ms() - start < 300);
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    CHECK_EQ(cudaGetLastError(), cudaErrorNotReady);
    OK(cudaStreamSynchronize(stream));
    CHECK(now_ms() - start >= 300);
    OK(cudaStreamQuery(stream));
}

static void free_waits_for_the_context(void)
{
    cudaStream_t stream;
    char *p;
    char *q;
    double start = now_ms();

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, 100));
    OK(cudaMalloc((void **)&q, 100));
    OK(sim_fill_slow(p, 100, 1, 50000, stream));
    OK(cudaFree(q));
    CHECK(now_ms() - start >= 50);
    OK(cudaStreamQuery(stream));
}

static void the_legacy_stream_waits_for_blocking_ones(void)
{
    cudaStream_t blocking;
    cudaStream_t free_running;
    int *p;
    int host = 0;

    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, 64));
    OK(sim_spin(20000, blocking));
    OK(sim_fill(p, 64, 1, blocking));
    OK(sim_spin(600000, free_running));
    OK(cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost));
    CHECK_EQ(host, 0x01010101);
    CHECK_EQ(cudaStreamQuery(free_running), cudaErrorNotReady);
    OK(sim_spin(200000, NULL));
    OK(sim_fill(p, 64, 2, blocking));
    CHECK_EQ(cudaStreamQuery(blocking), cudaErrorNotReady);
    OK(cudaStreamSynchronize(blocking));
    OK(cudaDeviceSynchronize());
}

static void events_mark_and_measure(void)
{
    cudaStream_t stream;
    cudaEvent_t start;
    cudaEvent_t end;
    cudaEvent_t untimed;
    float ms;

    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    OK(cudaEventQuery(start));
    CHECK_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);
    OK(cudaEventRecord(start, stream));
    OK(sim_spin(200000, stream));
    OK(cudaEventRecord(end, stream));
    CHECK_EQ(cudaEventQuery(end), cudaErrorNotReady);
    CHECK_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms >= 200.0f && ms < 10000.0f);
    OK(cudaEventRecord(untimed, stream));
    CHECK_EQ(cudaEventElapsedTime(&ms, start, untimed), cudaErrorInvalidResourceHandle);
    OK(cudaEventDestroy(untimed));
    CHECK_EQ(cudaEventQuery(untimed), cudaErrorInvalidResourceHandle);
}

static void a_context_event_covers_every_stream(void)
{
    cudaStream_t free_running;
    CUevent event;
    CUcontext context;

    OK(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
    OK(cuCtxGetCurrent(&context));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuCtxRecordEvent(context, event));
    OK(cuEventQuery(event));
    OK(sim_spin(400000, free_running));
    OK(sim_spin(1000, cudaStreamPerThread));
    OK(cuCtxRecordEvent(context, event));
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    OK(cuEventSynchronize(event));
    OK(cuStreamQuery(free_running));
    CHECK_EQ(cuCtxRecordEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void a_context_can_wait_for_an_event(void)
{
    cudaStream_t first;
    cudaStream_t second;
    cudaStream_t later;
    cudaEvent_t event;

    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaEventCreate(&event));
    OK(sim_spin(300000, first));
    OK(cudaEventRecord(event, first));
    OK(cuCtxWaitEvent(NULL, event));
    OK(cudaStreamCreateWithFlags(&later, cudaStreamNonBlocking));
    OK(sim_spin(0, second));
    OK(sim_spin(0, later));
    CHECK_EQ(cudaStreamQuery(second), cudaErrorNotReady);
    CHECK_EQ(cudaStreamQuery(later), cudaErrorNotReady);
    OK(cudaEventSynchronize(event));
    OK(cudaStreamSynchronize(second));
    OK(cudaStreamSynchronize(later));
}

struct note {
    int calls;
    int inner_result;
    pthread_t thread;
};

static void CUDART_CB write_note(void *data)
{
    struct note *note = data;
    void *p;

    note->inner_result = (int)cudaMalloc(&p, 1);
    note->thread = pthread_self();
    note->calls++;
}

static void CUDART_CB write_note_by_callback(cudaStream_t stream, cudaError_t status, void *data)
{
    (void)stream;
    ((struct note *)data)->inner_result = (int)status;
    ((struct note *)data)->calls++;
}

static void host_functions_run_elsewhere(void)
{
    struct note note = {0};

    OK(cudaFree(NULL));
    OK(cudaLaunchHostFunc(NULL, write_note, &note));
    OK(cudaStreamSynchronize(NULL));
    CHECK_EQ(note.calls, 1);
    CHECK(!pthread_equal(note.thread, pthread_self()));
    CHECK_EQ(note.inner_result, cudaErrorNotPermitted);
    OK(cudaStreamAddCallback(NULL, write_note_by_callback, &note, 0));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(note.calls, 2);
    CHECK_EQ(note.inner_result, 0);
}

static void pageable_memory_is_staged(void)
{
    cudaStream_t stream;
    char *p;
    char host = 1;
    char back = 0;
    char *pinned;

    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc((void **)&p, 1));
    OK(cudaMallocHost((void **)&pinned, 1));
    OK(sim_spin(20000, stream));
    OK(cudaMemcpyAsync(p, &host, 1, cudaMemcpyHostToDevice, stream));
    host = 2;
    OK(cudaMemcpyAsync(&back, p, 1, cudaMemcpyDeviceToHost, stream));
    CHECK_EQ(back, 1);
    *pinned = 3;
    OK(sim_spin(20000, stream));
    OK(cudaMemcpyAsync(p, pinned, 1, cudaMemcpyHostToDevice, stream));
    *pinned = 4;
    OK(cudaMemcpyAsync(&back, p, 1, cudaMemcpyDeviceToHost, stream));
    CHECK_EQ(back, 4);
}

static int thread_count(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    int count = 0;

    while (fgets(line, sizeof(line), status) != NULL) {
        if (sscanf(line, "Threads: %d", &count) == 1) {
            break;
        }
    }
    fclose(status);
    return count;
}

static void there_is_no_thread_without_delays(void)
{
    char *p;
    int before = thread_count();

    OK(cudaMalloc((void **)&p, 100));
    OK(sim_fill(p, 100, 1, NULL));
    OK(cudaFree(p));
    CHECK_EQ(thread_count(), before);
    OK(sim_spin(1000, NULL));
    CHECK(thread_count() > before);
}

static const struct check_case cases[] = {
    {"ids_are_never_used_again", ids_are_never_used_again, NULL, 0},
    {"every_thread_has_its_stream", every_thread_has_its_stream, NULL, 0},
    {"streams_have_properties", streams_have_properties, NULL, 0},
    {"delays_pass_in_the_background", delays_pass_in_the_background, NULL, 0},
    {"free_waits_for_the_context", free_waits_for_the_context, NULL, 0},
    {"the_legacy_stream_waits_for_blocking_ones", the_legacy_stream_waits_for_blocking_ones, NULL,
     0},
    {"events_mark_and_measure", events_mark_and_measure, NULL, 0},
    {"a_context_event_covers_every_stream", a_context_event_covers_every_stream, NULL, 0},
    {"a_context_can_wait_for_an_event", a_context_can_wait_for_an_event, NULL, 0},
    {"host_functions_run_elsewhere", host_functions_run_elsewhere, NULL, 0},
    {"pageable_memory_is_staged", pageable_memory_is_staged, NULL, 0},
    {"there_is_no_thread_without_delays", there_is_no_thread_without_delays, NULL, 0},
};

CHECK_MAIN(cases)
