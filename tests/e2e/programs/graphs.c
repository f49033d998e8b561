/* SPDX-License-Identifier: MIT */
/* Captures and graphs while another thread frees and allocates: graphs WAY [COUNT].
 *   replay    one graph, launched COUNT times
 *   capture   COUNT captures, by turns in relaxed and thread-local mode
 *   calls     what memory calls answer inside captures of each mode
 *   beside    memory comes and goes several times over beside one long capture of another thread,
 * by way of blocks of COUNT KiB cached    the same for what was freed before that capture began
 *   reset     a device reset in the middle of a capture
 *   destroy   the capturing stream is destroyed */
#include "program.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { PARTS = 4 };
#define BYTES ((size_t)256 << 10)

static atomic_int must_stop;
static atomic_int rounds;

static void *churn(void *unused)
{
    cudaStream_t stream;
    (void)unused;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; !atomic_load(&must_stop); i++) {
        void *plain = NULL, *ordered = NULL;
        MUST(cudaMalloc(&plain, BYTES + (size_t)(i % 5) * 8192));
        MUST(cudaMemsetAsync(plain, 9, BYTES, stream));
        MUST(cudaMallocAsync(&ordered, BYTES, stream));
        MUST(cudaMemsetAsync(ordered, 8, BYTES, stream));
        MUST(cudaFreeAsync(ordered, stream));
        MUST(cudaFree(plain));
        atomic_fetch_add(&rounds, 1);
    }
    MUST(cudaStreamDestroy(stream));
    return NULL;
}

/* Sets each of the parts to its number, through memory of the graph's own. */
static cudaGraphExec_t capture(cudaStream_t stream, void **parts, enum cudaStreamCaptureMode mode)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    void *own = NULL;
    MUST(cudaStreamBeginCapture(stream, mode));
    MUST(cudaMallocAsync(&own, BYTES, stream));
    for (int i = 0; i < PARTS; i++) {
        MUST(cudaMemsetAsync(own, i + 1, BYTES, stream));
        MUST(cudaMemcpyAsync(parts[i], own, BYTES, cudaMemcpyDeviceToDevice, stream));
    }
    MUST(cudaFreeAsync(own, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return exec;
}

static int parts_are_right(void *const *parts)
{
    int right = 0;
    for (int i = 0; i < PARTS; i++) {
        right += all_bytes_are(parts[i], BYTES, i + 1);
        MUST(cudaMemset(parts[i], 0, BYTES));
    }
    MUST(cudaStreamSynchronize(cudaStreamLegacy));
    return right;
}

static void with_churn(const char *way, int count)
{
    void *parts[PARTS];
    cudaStream_t stream;
    pthread_t thread;
    int right = 0, checks = 0;
    for (int i = 0; i < PARTS; i++) {
        MUST(cudaMalloc(&parts[i], BYTES));
    }
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    pthread_create(&thread, NULL, churn, NULL);
    while (atomic_load(&rounds) == 0) {
        usleep(1000);
    }
    if (strcmp(way, "replay") == 0) {
        cudaGraphExec_t exec = capture(stream, parts, cudaStreamCaptureModeRelaxed);
        for (int i = 0; i < count; i++) {
            MUST(cudaGraphLaunch(exec, stream));
            if (i % 100 == 99) {
                MUST(cudaStreamSynchronize(stream));
                right += parts_are_right(parts);
                checks += PARTS;
            }
        }
        MUST(cudaGraphExecDestroy(exec));
    } else {
        for (int i = 0; i < count; i++) {
            cudaGraphExec_t exec = capture(stream, parts,
                                           i % 2 ? cudaStreamCaptureModeThreadLocal
                                                 : cudaStreamCaptureModeRelaxed);
            MUST(cudaGraphLaunch(exec, stream));
            MUST(cudaStreamSynchronize(stream));
            right += parts_are_right(parts);
            checks += PARTS;
            MUST(cudaGraphExecDestroy(exec));
        }
    }
    atomic_store(&must_stop, 1);
    pthread_join(thread, NULL);
    printf("%s: %s\n", way, right == checks ? "right" : "WRONG");
    for (int i = 0; i < PARTS; i++) {
        SHOW(cudaFree(parts[i]));
    }
    MUST(cudaStreamDestroy(stream));
}

/* Memory calls of the capturing thread, on streams that do not capture. */
static void calls(enum cudaStreamCaptureMode mode, int is_warm)
{
    cudaStream_t captured, other;
    cudaGraph_t graph = NULL;
    void *live = NULL, *own = NULL, *beside = NULL, *larger = NULL, *async = NULL;
    enum cudaStreamCaptureStatus status;
    printf("mode %d\n", (int)mode);
    MUST(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    MUST(cudaMalloc(&live, BYTES));
    MUST(cudaMallocAsync(&async, BYTES, other));
    MUST(cudaStreamSynchronize(other));
    if (is_warm) {
        MUST(cudaMallocAsync(&beside, BYTES, other));
        MUST(cudaFreeAsync(beside, other));
    }
    SHOW(cudaStreamBeginCapture(captured, mode));
    SHOW(cudaMallocAsync(&own, BYTES, captured));
    SHOW(cudaMemsetAsync(own, 1, BYTES, captured));
    SHOW(cudaMallocAsync(&beside, BYTES, other));
    SHOW(cudaMallocAsync(&larger, 30 * BYTES * 4, other));
    SHOW(cudaMemsetAsync(beside, 2, BYTES, other));
    SHOW(cudaFreeAsync(beside, other));
    SHOW(cudaFreeAsync(larger, other));
    SHOW(cudaFreeAsync(async, other));
    SHOW(cudaFreeAsync(own, captured));
    SHOW(cudaStreamIsCapturing(captured, &status));
    printf("status %d\n", (int)status);
    if (mode == cudaStreamCaptureModeRelaxed) {
        void *plain = NULL, *large = NULL;
        SHOW(cudaMalloc(&plain, BYTES));
        SHOW(cudaMalloc(&large, 64 * BYTES * 4));
        SHOW(cudaFree(plain));
        SHOW(cudaFree(large));
        SHOW(cudaFree(live));
        live = NULL;
    }
    SHOW(cudaStreamEndCapture(captured, &graph));
    printf("a graph was %s\n", graph != NULL ? "captured" : "NOT captured");
    if (graph != NULL) {
        SHOW(cudaGraphDestroy(graph));
    }
    SHOW(cudaFree(live));
    SHOW(cudaDeviceSynchronize());
    SHOW(cudaStreamDestroy(captured));
    SHOW(cudaStreamDestroy(other));
}

/* The cache must go on serving after a capture that never ended by itself. */
static void broken_off(int by_reset)
{
    cudaStream_t stream;
    void *p = NULL;
    MUST(cudaMalloc(&p, BYTES));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SHOW(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    if (by_reset) {
        SHOW(cudaDeviceReset());
    } else {
        SHOW(cudaStreamDestroy(stream));
        SHOW(cudaFree(p));
    }
    for (int i = 0; i < 50; i++) {
        MUST(cudaMalloc(&p, (size_t)3 << 30));
        MUST(cudaFree(p));
        MUST(cudaMalloc(&p, (size_t)9 << 30));
        MUST(cudaFree(p));
    }
    printf("goes on\n");
}

/* Memory comes and goes several times over. */
static void fill_again_and_again(void)
{
    size_t left = 0, total = 0;
    void *p = NULL;
    MUST(cudaMemGetInfo(&left, &total));
    for (int i = 0; i < 40; i++) {
        MUST(cudaMalloc(&p, left / 16));
        MUST(cudaFree(p));
    }
    printf("forty times a sixteenth\n");
}

/* Captures from before the first post until after the second one. */
struct captor {
    enum cudaStreamCaptureMode mode;
    sem_t begun, may_end;
};

static void *capture_long(void *user)
{
    struct captor *captor = user;
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, captor->mode));
    sem_post(&captor->begun);
    while (sem_wait(&captor->may_end) != 0) {
    }
    SHOW(cudaStreamEndCapture(stream, &graph));
    SHOW(cudaGraphDestroy(graph));
    SHOW(cudaStreamDestroy(stream));
    return NULL;
}

static void start_captor(struct captor *captor, enum cudaStreamCaptureMode mode, pthread_t *thread)
{
    captor->mode = mode;
    sem_init(&captor->begun, 0, 0);
    sem_init(&captor->may_end, 0, 0);
    pthread_create(thread, NULL, capture_long, captor);
    while (sem_wait(&captor->begun) != 0) {
    }
}

static void end_captor(struct captor *captor, pthread_t thread)
{
    sem_post(&captor->may_end);
    pthread_join(thread, NULL);
}

/* Blocks of one size, used, half of them kept over one round, until several times the device's
 * memory has been freed. */
static void come_and_go(size_t bytes)
{
    enum { BLOCKS = 8 };
    void *blocks[2][BLOCKS] = {{NULL}};
    size_t left = 0, total = 0, freed = 0;
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMemGetInfo(&left, &total));
    for (int round = 0; freed < 4 * total; round++) {
        void **mine = blocks[round % 2];
        for (int i = 0; i < BLOCKS; i++) {
            MUST(cudaFree(mine[i]));
            MUST(cudaMalloc(&mine[i], bytes + (size_t)(i * 512)));
            MUST(cudaMemsetAsync(mine[i], round, 4096, stream));
            freed += bytes;
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        SHOW(cudaFree(blocks[0][i]));
        SHOW(cudaFree(blocks[1][i]));
    }
    SHOW(cudaStreamDestroy(stream));
}

static void beside(enum cudaStreamCaptureMode mode, size_t bytes)
{
    struct captor captor;
    pthread_t thread;
    start_captor(&captor, mode, &thread);
    come_and_go(bytes);
    end_captor(&captor, thread);
    come_and_go(bytes);
}

/* What is cached in other sizes when the capture begins is there for the program. */
static void cached(enum cudaStreamCaptureMode mode)
{
    struct captor captor;
    pthread_t thread;
    size_t left = 0, total = 0;
    void *p = NULL;
    MUST(cudaMemGetInfo(&left, &total));
    MUST(cudaMalloc(&p, left / 4 * 3));
    MUST(cudaFree(p));
    start_captor(&captor, mode, &thread);
    MUST(cudaMalloc(&p, left / 8 * 7));
    SHOW(cudaFree(p));
    end_captor(&captor, thread);
}

/* As many captures at once. */
static void many_at_once(int count)
{
    cudaStream_t *streams = calloc((size_t)count, sizeof(*streams));
    void *p = NULL;
    MUST(cudaMalloc(&p, 4096));
    MUST(cudaFree(p));
    for (int i = 0; i < count; i++) {
        MUST(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    }
    for (int i = 0; i < count; i++) {
        MUST(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeRelaxed));
    }
    for (int i = 0; i < count; i++) {
        cudaGraph_t graph = NULL;
        MUST(cudaStreamEndCapture(streams[i], &graph));
        MUST(cudaGraphDestroy(graph));
    }
    fill_again_and_again();
    free(streams);
}

/* A capture that a call of its own makes invalid. */
static void invalid(void)
{
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    void *p = NULL;
    MUST(cudaMalloc(&p, 4096));
    MUST(cudaFree(p));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    SHOW(cudaStreamSynchronize(stream));
    SHOW(cudaStreamEndCapture(stream, &graph));
    fill_again_and_again();
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int count = argc > 2 ? atoi(argv[2]) : 100;
    if (strcmp(way, "calls") == 0) {
        for (int warm = 0; warm < 2; warm++) {
            calls(cudaStreamCaptureModeGlobal, warm);
            calls(cudaStreamCaptureModeThreadLocal, warm);
            calls(cudaStreamCaptureModeRelaxed, warm);
        }
    } else if (strcmp(way, "reset") == 0 || strcmp(way, "destroy") == 0) {
        broken_off(strcmp(way, "reset") == 0);
    } else if (strcmp(way, "beside") == 0 || strcmp(way, "cached") == 0) {
        for (int i = 0; i < 2; i++) {
            enum cudaStreamCaptureMode mode = i == 0 ? cudaStreamCaptureModeRelaxed
                                                     : cudaStreamCaptureModeThreadLocal;
            strcmp(way, "cached") == 0 ? cached(mode) : beside(mode, (size_t)count << 10);
        }
    } else if (strcmp(way, "many") == 0) {
        many_at_once(count);
    } else if (strcmp(way, "invalid") == 0) {
        invalid();
    } else {
        with_churn(way, count);
    }
    return 0;
}
