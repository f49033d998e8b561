/* SPDX-License-Identifier: MIT */
/* Events over a whole context, what waits for what, and what a capture forbids meanwhile. */
#include "probe.h"

#include <semaphore.h>
#include <string.h>

enum { CALLS = 200, BUSY_US = 20000 };

/* The time of one call, ns, and of a plain record for comparison. */
static void time_records(const char *state, unsigned streams, CUcontext context, cudaStream_t any)
{
    long long whole[CALLS];
    long long single[CALLS];
    CUevent event;

    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; i < CALLS; i++) {
        long long start = now_ns();
        CUresult result = cuCtxRecordEvent(context, event);
        whole[i] = now_ns() - start;
        if (result != CUDA_SUCCESS) {
            printf("streams_%u.%s.error %d\n", streams, state, (int)result);
            return;
        }
        start = now_ns();
        MUST(cuEventRecord(event, any));
        single[i] = now_ns() - start;
    }
    printf("streams_%u.%s.context_ns %lld\n", streams, state, median(whole, CALLS));
    printf("streams_%u.%s.stream_ns %lld\n", streams, state, median(single, CALLS));
    MUST(cuEventDestroy(event));
}

void probe_context_event(void)
{
    static const unsigned counts[] = {1, 16, 128};
    static cudaStream_t streams[128];
    unsigned made = 0;
    CUcontext context;

    MUST(cuCtxGetCurrent(&context));
    for (unsigned i = 0; i < 3; i++) {
        while (made < counts[i]) {
            MUST(cudaStreamCreateWithFlags(&streams[made], cudaStreamNonBlocking));
            MUST(spin(1, streams[made]));
            made++;
        }
        MUST(cudaDeviceSynchronize());
        time_records("idle", made, context, streams[0]);
        for (unsigned k = 0; k < made; k++) {
            MUST(spin(BUSY_US, streams[k]));
        }
        time_records("busy", made, context, streams[0]);
        MUST(cudaDeviceSynchronize());
    }
}

static void CUDART_CB wait_for_key(void *key)
{
    sem_wait(key);
}

/* Is the event not complete while the stream is held? The event is recorded by record. */
static void cover(const char *name, cudaStream_t stream, CUcontext context)
{
    sem_t key;
    CUevent event;

    sem_init(&key, 0, 0);
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cudaLaunchHostFunc(stream, wait_for_key, &key));
    CUresult result = cuCtxRecordEvent(context, event);
    if (result == CUDA_SUCCESS) {
        printf("%s %s\n", name, word(cuEventQuery(event) == CUDA_ERROR_NOT_READY));
    } else {
        printf("%s \"error %d\"\n", name, (int)result);
    }
    sem_post(&key);
    MUST(cudaDeviceSynchronize());
    MUST(cuEventDestroy(event));
}

static void cover_green(CUcontext context)
{
    CUdevResource all;
    CUdevResource part;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    CUstream stream;
    unsigned groups = 1;
    CUresult result = cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);

    if (result == CUDA_SUCCESS) {
        result = cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 8);
    }
    if (result == CUDA_SUCCESS) {
        result = cuDevResourceGenerateDesc(&desc, &part, 1);
    }
    if (result == CUDA_SUCCESS) {
        result = cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    }
    if (result == CUDA_SUCCESS) {
        result = cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0);
    }
    if (result != CUDA_SUCCESS) {
        printf("green \"error %d\"\n", (int)result);
        return;
    }
    cover("green", stream, context);
}

static void cover_graph(CUcontext context)
{
    sem_t key;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUevent event;

    sem_init(&key, 0, 0);
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    MUST(cudaLaunchHostFunc(stream, wait_for_key, &key));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    CUresult result = cuCtxRecordEvent(context, event);
    if (result == CUDA_SUCCESS) {
        printf("graph %s\n", word(cuEventQuery(event) == CUDA_ERROR_NOT_READY));
    } else {
        printf("graph \"error %d\"\n", (int)result);
    }
    sem_post(&key);
    MUST(cudaDeviceSynchronize());
}

void probe_coverage(void)
{
    struct kind kinds[KINDS];
    CUcontext context;

    MUST(cuCtxGetCurrent(&context));
    make_kinds(kinds);
    for (int i = 0; i < KINDS; i++) {
        cover(kinds[i].name, kinds[i].stream, context);
    }
    cover_graph(context);
    cover_green(context);
}

static void *small_block;
static void *host_block;

static void call_free(void)
{
    MUST(cudaFree(small_block));
}

static void call_malloc(void)
{
    void *p;

    MUST(cudaMalloc(&p, (size_t)64 << 20));
}

static void call_free_host(void)
{
    MUST(cudaFreeHost(host_block));
}

static void call_mem_get_info(void)
{
    size_t available;
    size_t total;

    MUST(cudaMemGetInfo(&available, &total));
}

static void call_driver_free(void)
{
    MUST(cuMemFree((CUdeviceptr)small_block));
}

/* Is the stream's kernel over when the call returns? */
void probe_waits(void)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } calls[] = {{"cudaFree", call_free},
                 {"cuMemFree", call_driver_free},
                 {"cudaMalloc", call_malloc},
                 {"cudaFreeHost", call_free_host},
                 {"cudaMemGetInfo", call_mem_get_info}};
    struct kind kinds[KINDS];

    make_kinds(kinds);
    for (unsigned c = 0; c < sizeof(calls) / sizeof(*calls); c++) {
        for (int i = 0; i < KINDS; i++) {
            MUST(cudaMalloc(&small_block, 1 << 20));
            MUST(cudaMallocHost(&host_block, 1 << 20));
            MUST(cudaDeviceSynchronize());
            MUST(spin(BUSY_US * 5, kinds[i].stream));
            int was_busy = is_busy(kinds[i].stream);
            long long start = now_ns();
            calls[c].call();
            long long took_ns = now_ns() - start;
            int is_still_busy = is_busy(kinds[i].stream);
            printf("%s.%s.waits %s\n", calls[c].name, kinds[i].name,
                   was_busy ? word(!is_still_busy) : "null");
            printf("%s.%s.us %lld\n", calls[c].name, kinds[i].name, took_ns / 1000);
            MUST(cudaDeviceSynchronize());
        }
    }
}

static cudaStream_t other_stream;
static CUevent some_event;

static int try_malloc(void)
{
    void *p;

    return cudaMalloc(&p, 1 << 20);
}

static int try_free(void)
{
    return cudaFree(small_block);
}

static int try_malloc_async(void)
{
    void *p;

    return cudaMallocAsync(&p, 1 << 20, other_stream);
}

static int try_context_event(void)
{
    CUcontext context;

    MUST(cuCtxGetCurrent(&context));
    return cuCtxRecordEvent(context, some_event);
}

static int try_record(void)
{
    return cuEventRecord(some_event, other_stream);
}

static int try_event_query(void)
{
    return cuEventQuery(some_event);
}

static int try_stream_query(void)
{
    return cudaStreamQuery(other_stream);
}

static int try_stream_synchronize(void)
{
    return cudaStreamSynchronize(other_stream);
}

static int try_device_synchronize(void)
{
    return cudaDeviceSynchronize();
}

static int try_mem_get_info(void)
{
    size_t available;
    size_t total;

    return cudaMemGetInfo(&available, &total);
}

/* What a call made while another stream captures returns, and whether the capture lives on. */
void probe_capture(void)
{
    static const struct {
        const char *name;
        int (*call)(void);
    } calls[] = {{"cudaMalloc", try_malloc},
                 {"cudaFree", try_free},
                 {"cudaMallocAsync", try_malloc_async},
                 {"cuCtxRecordEvent", try_context_event},
                 {"cuEventRecord", try_record},
                 {"cuEventQuery", try_event_query},
                 {"cudaStreamQuery", try_stream_query},
                 {"cudaStreamSynchronize", try_stream_synchronize},
                 {"cudaDeviceSynchronize", try_device_synchronize},
                 {"cudaMemGetInfo", try_mem_get_info}};
    static const char *const modes[] = {"global", "thread_local", "relaxed"};

    for (int mode = 0; mode < 3; mode++) {
        for (unsigned c = 0; c < sizeof(calls) / sizeof(*calls); c++) {
            cudaStream_t stream;
            cudaGraph_t graph = NULL;
            MUST(cudaMalloc(&small_block, 1 << 20));
            MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            MUST(cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking));
            MUST(cuEventCreate(&some_event, CU_EVENT_DISABLE_TIMING));
            MUST(cuEventRecord(some_event, other_stream));
            MUST(cudaStreamSynchronize(other_stream));
            MUST(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode));
            int result = calls[c].call();
            int ended = cudaStreamEndCapture(stream, &graph);
            printf("%s.%s.result %d\n", modes[mode], calls[c].name, result);
            printf("%s.%s.end_capture %d\n", modes[mode], calls[c].name, ended);
            cudaGetLastError();
            MUST(cudaStreamDestroy(stream));
        }
    }
}
