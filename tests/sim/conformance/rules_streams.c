/* SPDX-License-Identifier: MIT */
/* Streams, host functions, launches. */
#include "rule.h"

#include <pthread.h>
#include <unistd.h>

static cudaStream_t new_stream(unsigned flags)
{
    cudaStream_t stream;

    OK(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

static unsigned long long id_of(cudaStream_t stream)
{
    unsigned long long id;

    OK(cudaStreamGetId(stream, &id));
    return id;
}

RULE(stream, ids_are_never_used_again, "cuda.h, cuStreamGetId")
{
    cudaStream_t stream = new_stream(0);
    unsigned long long before = id_of(stream);

    OK(cudaStreamDestroy(stream));
    CHECK(before != id_of(new_stream(0)));
}

RULE(stream, handles_are_used_again, "assumed", RULE_SIMULATED)
{
    cudaStream_t stream = new_stream(0);

    OK(cudaStreamDestroy(stream));
    CHECK(new_stream(0) == stream);
}

RULE(stream, null_is_the_legacy_stream, "cuda.h, cuStreamGetId")
{
    CHECK(id_of(NULL) == id_of(cudaStreamLegacy));
    CHECK(id_of(NULL) != id_of(cudaStreamPerThread));
}

static void *get_own_id(void *id)
{
    *(unsigned long long *)id = id_of(cudaStreamPerThread);
    return NULL;
}

RULE(stream, every_thread_has_its_default_stream, "guide, Default Stream")
{
    unsigned long long other;
    pthread_t thread;

    pthread_create(&thread, NULL, get_own_id, &other);
    pthread_join(thread, NULL);
    CHECK(other != id_of(cudaStreamPerThread));
}

RULE(stream, flags_are_kept, "cuda.h, cuStreamGetFlags")
{
    unsigned flags = 7;

    OK(cudaStreamGetFlags(new_stream(cudaStreamNonBlocking), &flags));
    CHECK_EQ(flags, cudaStreamNonBlocking);
    OK(cudaStreamGetFlags(NULL, &flags));
    CHECK_EQ(flags, 0);
}

RULE(stream, unknown_flags_are_refused, "cuda.h, cuStreamCreate")
{
    CUstream stream;

    rule_start(0);
    CHECK_EQ(cuStreamCreate(&stream, 64), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(stream, priorities_are_clamped, "cuda.h, cuStreamCreateWithPriority")
{
    cudaStream_t stream;
    int least;
    int greatest;
    int priority;

    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    OK(cudaStreamCreateWithPriority(&stream, 0, greatest - 100));
    OK(cudaStreamGetPriority(stream, &priority));
    CHECK_EQ(priority, greatest);
}

RULE(stream, its_context_is_known, "cuda.h, cuStreamGetCtx")
{
    CUcontext own = rule_start(0);
    CUcontext context;

    OK(cuStreamGetCtx(new_stream(0), &context));
    CHECK(context == own);
}

RULE(stream, a_destroyed_one_is_an_invalid_handle, "assumed", RULE_SIMULATED)
{
    cudaStream_t stream = new_stream(0);

    OK(cudaStreamDestroy(stream));
    CHECK_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}

RULE(stream, default_streams_are_not_destroyed, "assumed")
{
    OK(cudaFree(NULL));
    CHECK_EQ(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
}

RULE(stream, an_idle_one_is_ready, "cuda.h, cuStreamQuery")
{
    OK(cudaStreamQuery(new_stream(0)));
    OK(cudaStreamSynchronize(new_stream(0)));
}

RULE(stream, a_busy_one_is_not_ready, "cuda.h, cuStreamQuery")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream(0);

    rule_close(&gate, stream);
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamQuery(stream));
}

RULE(stream, synchronising_waits, "cuda.h, cuStreamSynchronize")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream(0);

    rule_close(&gate, stream);
    rule_open_soon(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK(rule_is_open(&gate));
}

RULE(stream, synchronising_one_does_not_wait_for_others, "cuda.h, cuStreamSynchronize")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);

    rule_close(&gate, stream);
    OK(cudaStreamSynchronize(new_stream(cudaStreamNonBlocking)));
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(stream, the_device_waits_for_all, "cuda.h, cuCtxSynchronize")
{
    struct rule_gate gate;

    rule_close(&gate, new_stream(cudaStreamNonBlocking));
    rule_open_soon(&gate);
    OK(cudaDeviceSynchronize());
    CHECK(rule_is_open(&gate));
}

RULE(stream, work_runs_in_order, "guide, Streams")
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    struct rule_gate gate;
    char *p;

    OK(cudaMalloc((void **)&p, 16));
    rule_close(&gate, stream);
    OK(launch_fill(p, 16, 1, stream));
    OK(launch_fill(p, 16, 2, stream));
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 2);
}

/* Does work in the second stream wait for the first? */
static int waits(cudaStream_t first, cudaStream_t second)
{
    struct rule_gate gate;
    cudaEvent_t event;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    rule_close(&gate, first);
    OK(launch_shape((dim3){1, 1, 1}, (dim3){1, 1, 1}, second));
    OK(cudaEventRecord(event, second));
    for (int i = 0; i < 100 && cudaEventQuery(event) == cudaErrorNotReady; i++) {
        usleep(1000);
    }
    int is_waiting = cudaEventQuery(event) == cudaErrorNotReady;
    cudaGetLastError();
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
    return is_waiting;
}

RULE(stream, the_legacy_stream_waits_for_blocking_ones, "guide, Implicit Synchronization")
{
    CHECK(waits(new_stream(0), NULL));
}

RULE(stream, blocking_ones_wait_for_the_legacy_stream, "guide, Implicit Synchronization")
{
    CHECK(waits(NULL, new_stream(0)));
}

RULE(stream, the_legacy_stream_passes_non_blocking_ones, "cuda.h, CU_STREAM_NON_BLOCKING")
{
    CHECK(!waits(new_stream(cudaStreamNonBlocking), NULL));
}

RULE(stream, non_blocking_ones_pass_the_legacy_stream, "cuda.h, CU_STREAM_NON_BLOCKING")
{
    CHECK(!waits(NULL, new_stream(cudaStreamNonBlocking)));
}

RULE(stream, a_per_thread_stream_is_a_blocking_one, "api, Stream synchronization behavior")
{
    CHECK(waits(cudaStreamPerThread, NULL));
    CHECK(waits(NULL, cudaStreamPerThread));
}

RULE(stream, blocking_ones_do_not_wait_for_each_other, "guide, Streams")
{
    CHECK(!waits(new_stream(0), new_stream(0)));
}

RULE(stream, destroying_does_not_wait, "cuda.h, cuStreamDestroy")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    char *p;

    OK(cudaMalloc((void **)&p, 16));
    rule_close(&gate, stream);
    OK(launch_fill(p, 16, 6, stream));
    OK(cudaStreamDestroy(stream));
    CHECK(!rule_is_open(&gate));
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
    CHECK_EQ(rule_first_byte(p), 6);
}

struct note {
    int calls;
    int result;
    pthread_t thread;
};

static void CUDART_CB take_note(void *data)
{
    struct note *note = data;

    note->calls++;
    note->thread = pthread_self();
}

static void CUDART_CB allocate_inside(void *data)
{
    void *p;

    ((struct note *)data)->result = (int)cudaMalloc(&p, 16);
}

static void CUDART_CB take_status(cudaStream_t stream, cudaError_t status, void *data)
{
    (void)stream;
    ((struct note *)data)->result = (int)status;
    ((struct note *)data)->calls++;
}

RULE(host_function, it_runs_once_on_another_thread, "cuda.h, cuLaunchHostFunc")
{
    struct note note = {0};

    OK(cudaFree(NULL));
    OK(cudaLaunchHostFunc(NULL, take_note, &note));
    OK(cudaStreamSynchronize(NULL));
    CHECK_EQ(note.calls, 1);
    CHECK(!pthread_equal(note.thread, pthread_self()));
}

RULE(host_function, it_may_not_call_cuda, "cuda.h, cuLaunchHostFunc")
{
    struct note note = {0};

    OK(cudaFree(NULL));
    OK(cudaLaunchHostFunc(NULL, allocate_inside, &note));
    OK(cudaStreamSynchronize(NULL));
    CHECK_EQ(note.result, cudaErrorNotPermitted);
}

RULE(host_function, later_work_waits_for_it, "cuda.h, cuLaunchHostFunc")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event;
    char *p;

    OK(cudaMalloc((void **)&p, 16));
    OK(cudaEventCreate(&event));
    rule_close(&gate, stream);
    OK(launch_fill(p, 16, 1, stream));
    OK(cudaEventRecord(event, stream));
    CHECK_EQ(cudaEventQuery(event), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 1);
}

RULE(host_function, none_is_an_invalid_value, "cuda.h, cuLaunchHostFunc")
{
    rule_start(0);
    CHECK_EQ(cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

RULE(host_function, callbacks_get_the_status, "cuda.h, cuStreamAddCallback")
{
    struct note note = {.result = 7};

    OK(cudaFree(NULL));
    OK(cudaStreamAddCallback(NULL, take_status, &note, 0));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(note.calls, 1);
    CHECK_EQ(note.result, 0);
    CHECK_EQ(cudaStreamAddCallback(NULL, take_status, &note, 1), cudaErrorInvalidValue);
}

RULE(launch, empty_shapes_are_refused, "cuda_runtime_api.h, cudaLaunchKernel")
{
    CHECK_EQ(launch_shape((dim3){0, 1, 1}, (dim3){1, 1, 1}, NULL), cudaErrorInvalidConfiguration);
    CHECK_EQ(launch_shape((dim3){1, 1, 1}, (dim3){0, 1, 1}, NULL), cudaErrorInvalidConfiguration);
    cudaGetLastError();
}

RULE(launch, blocks_have_1024_threads_at_most, "guide, Compute Capabilities")
{
    OK(launch_shape((dim3){1, 1, 1}, (dim3){1024, 1, 1}, NULL));
    CHECK_EQ(launch_shape((dim3){1, 1, 1}, (dim3){1025, 1, 1}, NULL),
             cudaErrorInvalidConfiguration);
    CHECK_EQ(launch_shape((dim3){1, 1, 1}, (dim3){1, 1, 65}, NULL), cudaErrorInvalidConfiguration);
    cudaGetLastError();
}

RULE(launch, grids_are_65535_high_at_most, "guide, Compute Capabilities")
{
    OK(launch_shape((dim3){1, 65535, 1}, (dim3){1, 1, 1}, NULL));
    CHECK_EQ(launch_shape((dim3){1, 65536, 1}, (dim3){1, 1, 1}, NULL),
             cudaErrorInvalidConfiguration);
    cudaGetLastError();
}

RULE(launch, only_kernels_are_launched, "cuda_runtime_api.h, cudaLaunchKernel")
{
    dim3 one = {1, 1, 1};
    int other = 0;
    void *arguments[] = {&other};

    CHECK_EQ(cudaLaunchKernel(&other, one, one, arguments, 0, NULL),
             cudaErrorInvalidDeviceFunction);
}

RULE(launch, kernels_have_attributes, "cuda_runtime_api.h, cudaFuncGetAttributes")
{
    struct cudaFuncAttributes attributes;

    OK(cudaFuncGetAttributes(&attributes, kernel_fill()));
    CHECK(attributes.maxThreadsPerBlock > 0);
    CHECK(attributes.binaryVersion > 0);
    CHECK_EQ(cudaFuncGetAttributes(&attributes, &attributes), cudaErrorInvalidDeviceFunction);
}

RULE(launch, a_multiprocessor_holds_some_blocks,
     "cuda.h, cuOccupancyMaxActiveBlocksPerMulti"
     "processor")
{
    int blocks = 0;

    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, kernel_fill(), 128, 0, 0));
    CHECK(blocks > 0);
}
