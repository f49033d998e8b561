/* SPDX-License-Identifier: MIT */
/* Frees memory while a kernel still writes to it, then allocates and writes on another stream:
 * correct only if memory is never handed on too early. Where there are two devices, without peer
 * access, every other thread uses the second. Arguments: rounds in all, threads, seed, and
 * "endless" for a kernel that outlasts the program, or "full" for blocks that need one another's
 * memory, or "captured" for one thread's work throughout another one's capture. */
#include <pthread.h>

#include "program.h"
#include "support/sim_kernels.h"

enum { KERNEL_US = 500 };

/* How the memory is allocated, on which stream it is used, and how it is freed. */
enum kind {
    FREE,
    FREE_ASYNC_OF_ASYNC,
    FREE_ASYNC_OF_MALLOC,
    FREE_AFTER_WAIT,
    DESTROY_STREAM,
    LEGACY_FREE,
    LEGACY_ASYNC,
    PER_THREAD_FREE,
    PER_THREAD_ASYNC,
    FREE_WITH_OTHER_DEVICE,
    KINDS
};

static int rounds_per_thread;
static unsigned first_seed;
static int device_count;

struct worker {
    cudaStream_t writer, other; /* non-blocking, never ordered against each other */
    unsigned seed;
    int device;
};

static size_t draw_size(struct worker *worker)
{
    static const size_t sizes[] = {512, 4096, 65536, 256 << 10, (1 << 20) + 512};
    return sizes[(unsigned)rand_r(&worker->seed) % (sizeof(sizes) / sizeof(sizes[0]))];
}

static cudaStream_t stream_of(const struct worker *worker, enum kind kind)
{
    cudaStream_t stream = worker->writer;
    if (kind == DESTROY_STREAM) {
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    } else if (kind == LEGACY_FREE || kind == LEGACY_ASYNC) {
        stream = cudaStreamLegacy;
    } else if (kind == PER_THREAD_FREE || kind == PER_THREAD_ASYNC) {
        stream = cudaStreamPerThread;
    }
    return stream;
}

static int is_allocated_async(enum kind kind)
{
    return kind == FREE_ASYNC_OF_ASYNC || kind == FREE_AFTER_WAIT || kind == DESTROY_STREAM ||
           kind == LEGACY_ASYNC || kind == PER_THREAD_ASYNC;
}

static void free_it(const struct worker *worker, enum kind kind, void *p, cudaStream_t stream)
{
    switch (kind) {
    case FREE_WITH_OTHER_DEVICE:
        MUST(cudaSetDevice((worker->device + 1) % device_count));
        MUST(cudaFree(p));
        MUST(cudaSetDevice(worker->device));
        break;
    case FREE_AFTER_WAIT:
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaFree(p));
        break;
    case FREE:
    case LEGACY_FREE:
    case PER_THREAD_FREE: MUST(cudaFree(p)); break;
    default: MUST(cudaFreeAsync(p, stream));
    }
}

/* Memory with a slow kernel at work on it, freed in one of several ways. */
static void write_and_free(const struct worker *worker, enum kind kind, size_t bytes)
{
    cudaStream_t stream = stream_of(worker, kind);
    void *p = NULL;
    if (is_allocated_async(kind)) {
        MUST(cudaMallocAsync(&p, bytes, stream));
    } else {
        MUST(cudaMalloc(&p, bytes));
    }
    MUST(sim_fill_slow(p, bytes, 0xAA, KERNEL_US, stream));
    free_it(worker, kind, p, stream);
    if (kind == DESTROY_STREAM) {
        MUST(cudaStreamDestroy(stream));
    }
}

static void write_elsewhere_and_check(struct worker *worker, enum kind kind, size_t bytes,
                                      int value)
{
    void *p = NULL;
    int is_async = kind == FREE_ASYNC_OF_ASYNC || kind == LEGACY_ASYNC || kind == PER_THREAD_ASYNC;
    if (is_async) {
        MUST(cudaMallocAsync(&p, bytes, worker->other));
    } else {
        MUST(cudaMalloc(&p, bytes));
    }
    MUST(cudaMemsetAsync(p, value, bytes, worker->other));
    MUST(cudaStreamSynchronize(worker->other));
    size_t some = bytes < 4096 ? bytes : 4096;
    if (!all_bytes_are(p, some, value)) {
        printf("WRONG: memory was handed on too early\n");
        exit(1);
    }
    if (is_async) {
        MUST(cudaFreeAsync(p, worker->other));
    } else {
        MUST(cudaFree(p));
    }
}

static void *work(void *arg)
{
    struct worker worker = {.seed = first_seed + (unsigned)(intptr_t)arg,
                            .device = (int)(intptr_t)arg % device_count};
    MUST(cudaSetDevice(worker.device));
    MUST(cudaStreamCreateWithFlags(&worker.writer, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&worker.other, cudaStreamNonBlocking));
    for (int i = 0; i < rounds_per_thread; i++) {
        enum kind kind = (enum kind)(rand_r(&worker.seed) % KINDS);
        size_t bytes = draw_size(&worker);
        write_and_free(&worker, kind, bytes);
        write_elsewhere_and_check(&worker, kind, bytes, 1 + i % 150);
        if (i % 32 == 31) {
            MUST(cudaDeviceSynchronize()); /* also what was left on destroyed streams */
        }
    }
    MUST(cudaStreamSynchronize(worker.writer));
    MUST(cudaStreamDestroy(worker.writer));
    MUST(cudaStreamDestroy(worker.other));
    return NULL;
}

/* Never waits for the device, so that only a free could hang. */
static void free_beside_an_endless_kernel(int rounds)
{
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(sim_spin(600u * 1000 * 1000, stream));
    for (int i = 0; i < rounds; i++) {
        void *p = NULL;
        MUST(cudaMalloc(&p, 1 << 20));
        MUST(cudaFree(p));
    }
    printf("done\n");
    fflush(stdout);
    _exit(0);
}

/* Each block needs what the one before has freed, with a kernel still at work on it. */
static void fill_the_device_by_turns(int rounds)
{
    size_t free_bytes = 0, total_bytes = 0;
    cudaStream_t streams[2];
    MUST(cudaMemGetInfo(&free_bytes, &total_bytes));
    for (int i = 0; i < 2; i++) {
        MUST(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    }
    for (int i = 0; i < rounds; i++) {
        size_t bytes = free_bytes / 10 * (size_t)(6 + i % 2);
        void *p = NULL;
        if (cudaMallocAsync(&p, bytes, streams[i % 2]) != cudaSuccess) {
            (void)cudaGetLastError();
            MUST(cudaDeviceSynchronize());
            MUST(cudaMallocAsync(&p, bytes, streams[i % 2]));
        }
        MUST(sim_fill_slow(p, bytes, 0xAA, KERNEL_US, streams[i % 2]));
        MUST(cudaFreeAsync(p, streams[i % 2]));
    }
    MUST(cudaDeviceSynchronize());
    printf("filled\n");
}

static void *reuse_at_once(void *arg)
{
    cudaStream_t writer, other;
    MUST(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (int i = 0; i < *(int *)arg; i++) {
        void *p = NULL;
        MUST(cudaMalloc(&p, 1 << 20));
        MUST(sim_fill_slow(p, 1 << 20, 0xAA, KERNEL_US, writer));
        MUST(cudaFree(p));
        MUST(cudaMalloc(&p, 1 << 20));
        MUST(cudaMemsetAsync(p, 1, 1 << 20, other));
        MUST(cudaStreamSynchronize(other));
        MUST(cudaFree(p));
    }
    return NULL;
}

/* One thread captures while another one works. */
static void work_beside_a_capture(int rounds)
{
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    pthread_t thread;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    pthread_create(&thread, NULL, reuse_at_once, &rounds);
    pthread_join(thread, NULL);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphDestroy(graph));
    printf("captured\n");
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int rounds = argc > 1 ? atoi(argv[1]) : 1000, count = argc > 2 ? atoi(argv[2]) : 8;
    first_seed = argc > 3 ? (unsigned)atoi(argv[3]) * 1000 : 1;
    if (argc > 4 && strcmp(argv[4], "endless") == 0) {
        free_beside_an_endless_kernel(rounds);
    }
    if (argc > 4 && strcmp(argv[4], "full") == 0) {
        fill_the_device_by_turns(rounds);
        return 0;
    }
    if (argc > 4 && strcmp(argv[4], "captured") == 0) {
        work_beside_a_capture(rounds);
        return 0;
    }
    MUST(cudaGetDeviceCount(&device_count));
    device_count = device_count > 2 ? 2 : device_count;
    count = count < 1 ? 1 : count > 64 ? 64 : count;
    rounds_per_thread = (rounds + count - 1) / count;
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d threads, %d rounds each: right\n", count, rounds_per_thread);
    return 0;
}
