/* SPDX-License-Identifier: MIT */
/* Eight threads do everything at once: each kind of work that threads share something in. Five
 * seconds, and a minute with CCA_TEST_LEVEL=full; the thread sanitizer must have nothing to say. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 8, BYTES = 2048, RANGE = 2 * 1024 * 1024 };

/* One thread's own: two streams, a graph that allocates, addresses, a word that streams wait for,
 * and a context of its own to capture in. */
struct mixer {
    pthread_t thread;
    unsigned state;
    cudaStream_t streams[2];
    cudaEvent_t event;
    cudaGraphExec_t exec;
    CUdeviceptr range;
    CUcontext own_context;
    CUstream own_stream;
    unsigned *word;
    unsigned turns;
    int calls;
    atomic_int ended_objects;
    double until_s;
};

static unsigned draw(struct mixer *mixer)
{
    mixer->state = mixer->state * 1664525u + 1013904223u;
    return mixer->state >> 16;
}

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

static void CUDART_CB count_end(void *count)
{
    atomic_fetch_add((atomic_int *)count, 1);
}

static void launch(struct mixer *mixer, cudaStream_t stream)
{
    OK(cudaGraphLaunch(mixer->exec, stream));
}

static void map_and_unmap(struct mixer *mixer, cudaStream_t stream)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc desc = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;

    OK(cuMemCreate(&memory, RANGE, &prop, 0));
    OK(cuMemMap(mixer->range, RANGE, 0, memory, 0));
    OK(cuMemSetAccess(mixer->range, RANGE, &desc, 1));
    OK(sim_fill((void *)mixer->range, 4096, 3, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cuMemUnmap(mixer->range, RANGE));
    OK(cuMemRelease(memory));
}

static void allocate_in_order(struct mixer *mixer, cudaStream_t stream)
{
    void *p;

    (void)mixer;
    OK(cudaMallocAsync(&p, BYTES, stream));
    OK(sim_fill(p, BYTES, 1, stream));
    OK(cudaFreeAsync(p, stream));
}

static void copy_from_pinned(struct mixer *mixer, cudaStream_t stream)
{
    void *p;
    void *q;

    (void)mixer;
    OK(cudaMalloc(&p, BYTES));
    OK(cudaMallocHost(&q, BYTES));
    OK(cudaMemcpyAsync(p, q, BYTES, cudaMemcpyHostToDevice, stream));
    OK(cudaFree(p));
    OK(cudaFreeHost(q));
}

static void wait_for_event(struct mixer *mixer, cudaStream_t stream)
{
    (void)stream;
    OK(cudaEventRecord(mixer->event, mixer->streams[0]));
    OK(cudaStreamWaitEvent(mixer->streams[1], mixer->event, 0));
    OK(cudaEventSynchronize(mixer->event));
}

static void record_context(struct mixer *mixer, cudaStream_t stream)
{
    CUcontext context;
    size_t size;
    size_t total;

    (void)stream;
    OK(cuCtxGetCurrent(&context));
    OK(cuCtxRecordEvent(context, mixer->event));
    OK(cudaEventSynchronize(mixer->event));
    OK(cudaMemGetInfo(&size, &total));
}

static void use_a_short_lived_stream(struct mixer *mixer, cudaStream_t stream)
{
    cudaStream_t short_lived;

    (void)mixer;
    (void)stream;
    OK(cudaStreamCreate(&short_lived));
    OK(sim_spin(10, short_lived));
    OK(cudaStreamDestroy(short_lived));
}

static void call_host(struct mixer *mixer, cudaStream_t stream)
{
    OK(cudaLaunchHostFunc(stream, count_call, &mixer->calls));
}

static void wait_for_word(struct mixer *mixer, cudaStream_t stream)
{
    CUdeviceptr word = (CUdeviceptr)mixer->word;
    void *p;

    (void)stream;
    OK(cudaMalloc(&p, BYTES));
    mixer->turns++;
    OK(cuStreamWaitValue32(mixer->streams[0], word, mixer->turns, CU_STREAM_WAIT_VALUE_GEQ));
    OK(sim_fill(p, BYTES, 2, mixer->streams[0]));
    OK(sim_fill(p, BYTES, 1, mixer->streams[1]));
    OK(cuStreamWriteValue32(mixer->streams[1], word, mixer->turns, 0));
    OK(cudaFree(p));
}

static void advise_managed(struct mixer *mixer, cudaStream_t stream)
{
    struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = 0};
    int where = -1;
    void *p;

    (void)mixer;
    OK(cudaMallocManaged(&p, BYTES, cudaMemAttachGlobal));
    OK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetReadMostly, location));
    OK(cudaMemPrefetchAsync(p, BYTES, location, 0, stream));
    OK(cudaMemRangeGetAttribute(&where, sizeof(where), cudaMemRangeAttributeLastPrefetchLocation, p,
                                BYTES));
    CHECK_EQ(where, 0);
    OK(cudaFree(p));
}

static void use_an_array(struct mixer *mixer, cudaStream_t stream)
{
    struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0,
                                                              cudaChannelFormatKindFloat);
    cudaArray_t array;
    float in[16] = {0};

    (void)mixer;
    OK(cudaMallocArray(&array, &desc, 8, 2, 0));
    OK(cudaMemcpy2DToArrayAsync(array, 0, 0, in, 32, 32, 2, cudaMemcpyHostToDevice, stream));
    OK(cudaFreeArray(array));
}

static void use_a_pool(struct mixer *mixer, cudaStream_t stream)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    cudaMemPool_t pool;
    void *p;

    (void)mixer;
    OK(cudaMemPoolCreate(&pool, &props));
    OK(cudaMallocFromPoolAsync(&p, BYTES, pool, stream));
    OK(cudaFreeAsync(p, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemPoolTrimTo(pool, 0));
    OK(cudaMemPoolDestroy(pool));
}

static void build_a_graph(struct mixer *mixer, cudaStream_t stream)
{
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t graphs[2];
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    cudaUserObject_t object;
    struct cudaMemsetParams set = {.elementSize = 1, .width = BYTES, .height = 1};

    OK(cudaMalloc(&set.dst, BYTES));
    OK(cudaGraphCreate(&graphs[0], 0));
    OK(cudaGraphCreate(&graphs[1], 0));
    OK(cudaGraphAddMemsetNode(&node, graphs[0], NULL, 0, &set));
    OK(cudaGraphAddChildGraphNode(&node, graphs[1], NULL, 0, graphs[0]));
    OK(cudaUserObjectCreate(&object, &mixer->ended_objects, count_end, 1,
                            cudaUserObjectNoDestructorSync));
    OK(cudaGraphRetainUserObject(graphs[1], object, 1, cudaGraphUserObjectMove));
    OK(cudaGraphInstantiate(&exec, graphs[1], 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecUpdate(exec, graphs[1], &info));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graphs[1]));
    OK(cudaGraphDestroy(graphs[0]));
    OK(cudaFree(set.dst));
}

static void ask_about_memory(struct mixer *mixer, cudaStream_t stream)
{
    struct cudaPointerAttributes attributes;
    CUdeviceptr base;
    size_t pitch;
    size_t size;
    void *p;

    (void)mixer;
    OK(cudaMallocPitch(&p, &pitch, 100, 4));
    OK(cudaMemset2DAsync(p, pitch, 1, 100, 4, stream));
    OK(cudaPointerGetAttributes(&attributes, (char *)p + 5));
    CHECK_EQ(attributes.type, cudaMemoryTypeDevice);
    OK(cuMemGetAddressRange(&base, &size, (CUdeviceptr)p + 5));
    CHECK(base == (CUdeviceptr)p);
    OK(cudaFree(p));
}

static void register_memory(struct mixer *mixer, cudaStream_t stream)
{
    char *host = aligned_alloc(4096, 4096);
    void *p;

    (void)mixer;
    OK(cudaHostRegister(host, 4096, 0));
    OK(cudaMalloc(&p, BYTES));
    OK(cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, stream));
    OK(cudaFree(p));
    OK(cudaHostUnregister(host));
    free(host);
}

static void share(struct mixer *mixer, cudaStream_t stream)
{
    cudaIpcMemHandle_t handle;
    cudaIpcEventHandle_t event_handle;
    cudaEvent_t event;
    void *p;

    (void)mixer;
    OK(cudaMalloc(&p, BYTES));
    OK(cudaIpcGetMemHandle(&handle, p));
    OK(sim_fill(p, BYTES, 1, stream));
    OK(cudaFree(p));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
    OK(cudaIpcGetEventHandle(&event_handle, event));
    OK(cudaEventRecord(event, stream));
    OK(cudaEventSynchronize(event));
    OK(cudaEventDestroy(event));
}

/* In a context of the thread's own: others may wait for all of theirs meanwhile. */
static void capture(struct mixer *mixer, cudaStream_t stream)
{
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr p;

    (void)stream;
    OK(cuCtxPushCurrent(mixer->own_context));
    OK(cuMemAlloc(&p, BYTES));
    OK(cuStreamBeginCapture(mixer->own_stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(p, 1, BYTES, mixer->own_stream));
    OK(cuStreamEndCapture(mixer->own_stream, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, mixer->own_stream));
    OK(cuCtxSynchronize());
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuMemFree(p));
    OK(cuCtxPopCurrent(NULL));
}

static void use_a_green_context(struct mixer *mixer, cudaStream_t stream)
{
    CUdevResource all;
    CUdevResource part;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUstream own;
    unsigned count = 1;

    (void)mixer;
    (void)stream;
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevSmResourceSplitByCount(&part, &count, &all, NULL, 0, 8));
    OK(cuDevResourceGenerateDesc(&description, &part, 1));
    OK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(cuGreenCtxStreamCreate(&own, green, CU_STREAM_NON_BLOCKING, 0));
    OK(sim_spin(1, own));
    OK(cuStreamSynchronize(own));
    OK(cuStreamDestroy(own));
    OK(cuGreenCtxDestroy(green));
}

static void (*const parts[])(struct mixer *mixer, cudaStream_t stream) = {
    launch,          map_and_unmap,    allocate_in_order,
    wait_for_event,  record_context,   use_a_short_lived_stream,
    call_host,       wait_for_word,    advise_managed,
    use_an_array,    use_a_pool,       build_a_graph,
    register_memory, ask_about_memory, copy_from_pinned,
    share,           capture,          use_a_green_context};

static void prepare(struct mixer *mixer)
{
    cudaGraph_t graph;
    void *q;

    OK(cudaFree(NULL));
    for (int i = 0; i < 2; i++) {
        OK(cudaStreamCreateWithFlags(&mixer->streams[i], cudaStreamNonBlocking));
    }
    OK(cudaEventCreateWithFlags(&mixer->event, cudaEventDisableTiming));
    OK(cudaMallocHost((void **)&mixer->word, sizeof(*mixer->word)));
    *mixer->word = 0;
    OK(cudaStreamBeginCapture(mixer->streams[0], cudaStreamCaptureModeRelaxed));
    OK(cudaMallocAsync(&q, BYTES, mixer->streams[0]));
    OK(sim_fill(q, BYTES, 1, mixer->streams[0]));
    OK(cudaEventRecord(mixer->event, mixer->streams[0]));
    OK(cudaStreamWaitEvent(mixer->streams[1], mixer->event, 0));
    OK(cudaLaunchHostFunc(mixer->streams[1], count_call, &mixer->calls));
    OK(sim_fill(q, BYTES, 2, mixer->streams[0]));
    OK(cudaEventRecord(mixer->event, mixer->streams[1]));
    OK(cudaStreamWaitEvent(mixer->streams[0], mixer->event, 0));
    OK(cudaFreeAsync(q, mixer->streams[0]));
    OK(cudaStreamEndCapture(mixer->streams[0], &graph));
    OK(cudaGraphInstantiate(&mixer->exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    OK(cuMemAddressReserve(&mixer->range, RANGE, 0, 0, 0));
    OK(cuCtxCreate(&mixer->own_context, NULL, 0, 0));
    OK(cuStreamCreate(&mixer->own_stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxPopCurrent(NULL));
}

static void *mix(void *argument)
{
    struct mixer *mixer = argument;

    OK(cudaSetDevice(0));
    while (now_s() < mixer->until_s) {
        parts[draw(mixer) % (sizeof(parts) / sizeof(parts[0]))](mixer,
                                                                mixer->streams[draw(mixer) % 2]);
    }
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(mixer->exec));
    OK(cuMemAddressFree(mixer->range, RANGE));
    OK(cudaFreeHost(mixer->word));
    OK(cuCtxDestroy(mixer->own_context));
    return NULL;
}

/* Captures first: in the common context they forbid other threads much. */
static void everything_mixed(void)
{
    struct mixer *mixers = calloc(THREADS, sizeof(*mixers));
    const char *level = getenv("CCA_TEST_LEVEL");
    double seconds = level != NULL && strcmp(level, "full") == 0 ? 60 : 5;

    for (int i = 0; i < THREADS; i++) {
        mixers[i].state = (unsigned)i;
        prepare(&mixers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        mixers[i].until_s = now_s() + seconds;
        pthread_create(&mixers[i].thread, NULL, mix, &mixers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(mixers[i].thread, NULL);
    }
    OK(cudaDeviceGraphMemTrim(0));
    CHECK_EQ(simcuda_used_bytes(0), 0);
    CHECK_EQ(simcuda_violations(), 0);
}

static const struct check_case cases[] = {
    {"everything_mixed", everything_mixed, NULL, 0},
};

CHECK_MAIN(cases)
