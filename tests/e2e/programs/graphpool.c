/* SPDX-License-Identifier: MIT */
/* Captures a graph whose memory comes from a private pool, replays it REPLAYS times and checks the
 * data each time, while another thread allocates, fills, checks and frees. Without the library the
 * memory comes from cudaMalloc and the rest is the same: graphpool [REPLAYS]. What only the library
 * can tell goes to stderr. */
#include "program.h"

#include <pthread.h>
#include <stdatomic.h>

#include "cca/cca.h"
#include "support/sim_kernels.h"

enum { NUMBERS = 20000, ROUNDS = 6 };
#define BYTES (NUMBERS * sizeof(int))

static cudaStream_t main_stream, side_stream;
static uint64_t pool;
static int failures;
static void *seen[4 * ROUNDS];
static int seen_count;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("WRONG: %s\n", what);
        failures++;
    }
}

static void note(void *p)
{
    for (int i = 0; i < seen_count; i++) {
        if (seen[i] == p) {
            return;
        }
    }
    seen[seen_count++] = p;
}

static void *take(size_t bytes)
{
    void *p = NULL;
    if (cca_loaded()) {
        p = cca_my_malloc((ptrdiff_t)bytes, 0, main_stream);
        expect(p != NULL, "memory of the pool");
    } else {
        MUST(cudaMalloc(&p, bytes));
    }
    return p;
}

/* Natively the graph needs its memory for as long as it runs. */
static void give(void *p)
{
    if (cca_loaded()) {
        note(p);
        cca_my_free(p, 0, 0, main_stream);
    }
}

/* result = input + 1 + 2 * ROUNDS, by way of temporary memory that both streams use. */
static void work(int *input, int *result)
{
    cudaEvent_t forked, joined;
    MUST(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    int *first = take(BYTES);
    MUST(sim_copy(first, input, BYTES, main_stream));
    MUST(sim_add(first, NUMBERS, 1, main_stream));
    MUST(sim_copy(result, first, BYTES, main_stream));
    give(first);
    for (int i = 0; i < ROUNDS; i++) {
        int *shared = take(BYTES), *scratch = take(BYTES);
        MUST(sim_copy(shared, result, BYTES, main_stream));
        MUST(sim_fill(scratch, BYTES, 0x7f, main_stream));
        MUST(cudaEventRecord(forked, main_stream));
        MUST(cudaStreamWaitEvent(side_stream, forked, 0));
        MUST(sim_add(shared, NUMBERS, 2, side_stream));
        MUST(sim_copy(scratch, shared, BYTES, side_stream));
        MUST(cudaEventRecord(joined, side_stream));
        if (cca_loaded()) {
            expect(cca_record_stream(shared, side_stream) == 0, "a use is recorded");
            expect(cca_record_stream(scratch, side_stream) == 0, "a use is recorded");
        }
        give(shared);
        MUST(cudaStreamWaitEvent(main_stream, joined, 0));
        MUST(sim_copy(result, scratch, BYTES, main_stream));
        give(scratch);
    }
    MUST(cudaEventDestroy(forked));
    MUST(cudaEventDestroy(joined));
}

static cudaGraphExec_t capture(int **input, int **result)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    if (cca_loaded()) {
        expect(cca_pool_create(0, NULL, &pool) == 0, "a pool");
        expect(cca_pool_use_begin(0, pool, CCA_POOL_USE_CAPTURE, main_stream) == 0, "its use");
    }
    MUST(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeRelaxed));
    *input = take(BYTES);
    *result = take(BYTES);
    work(*input, *result);
    MUST(cudaStreamEndCapture(main_stream, &graph));
    if (cca_loaded()) {
        expect(cca_pool_use_end(0, pool) == 0, "the end of its use");
    }
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return exec;
}

static atomic_int is_over;

/* Memory of every kind on a stream of its own. */
static void *be_eager(void *unused)
{
    enum { MOST = 100000 };
    cudaStream_t stream;
    unsigned seed = 7;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    while (!atomic_load(&is_over)) {
        void *plain = NULL, *ordered = NULL, *own = NULL;
        size_t bytes = (seed = seed * 1103515245 + 12345) / 65536 % MOST + 1;
        MUST(cudaMalloc(&plain, bytes));
        MUST(cudaMallocAsync(&ordered, bytes, stream));
        own = cca_my_malloc((ptrdiff_t)bytes, 0, stream);
        MUST(sim_fill(plain, bytes, 1, stream));
        MUST(sim_fill(ordered, bytes, 2, stream));
        if (own != NULL) {
            MUST(sim_fill(own, bytes, 3, stream));
        }
        MUST(cudaStreamSynchronize(stream));
        expect(all_bytes_are(plain, bytes, 1), "eager memory");
        expect(all_bytes_are(ordered, bytes, 2), "eager ordered memory");
        expect(own == NULL || all_bytes_are(own, bytes, 3), "eager own memory");
        cca_my_free(own, (ptrdiff_t)bytes, 0, stream);
        MUST(cudaFreeAsync(ordered, stream));
        MUST(cudaFree(plain));
    }
    MUST(cudaStreamDestroy(stream));
    return unused;
}

static void replay(cudaGraphExec_t exec, int *input, int *result, int count)
{
    static int numbers[NUMBERS];
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        for (int n = 0; n < NUMBERS; n++) {
            numbers[n] = i + n;
        }
        MUST(cudaMemcpyAsync(input, numbers, BYTES, cudaMemcpyHostToDevice, main_stream));
        MUST(cudaGraphLaunch(exec, main_stream));
        MUST(cudaMemcpyAsync(numbers, result, BYTES, cudaMemcpyDeviceToHost, main_stream));
        MUST(cudaStreamSynchronize(main_stream));
        for (int n = 0; n < NUMBERS; n++) {
            wrong += numbers[n] != i + n + 1 + 2 * ROUNDS;
        }
    }
    printf("%d replays, %d wrong numbers\n", count, wrong);
    failures += wrong != 0;
}

static void show_pool(const char *when)
{
    struct cca_sums_info sums = {.struct_bytes = sizeof(sums)};
    if (cca_loaded() && cca_pool_stats(0, pool, &sums, NULL) == 0) {
        fprintf(stderr, "%s: pool %lld live in %lld blocks, %lld free, %lld pending\n", when,
                (long long)sums.live_bytes, (long long)sums.live_blocks, (long long)sums.free_bytes,
                (long long)sums.pending_bytes);
    }
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    int *input = NULL, *result = NULL;
    pthread_t eager;
    MUST(cudaFree(NULL));
    MUST(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&side_stream, cudaStreamNonBlocking));
    void *first = NULL; /* the device comes into use */
    MUST(cudaMalloc(&first, 1));
    MUST(cudaFree(first));
    pthread_create(&eager, NULL, be_eager, NULL);
    cudaGraphExec_t exec = capture(&input, &result);
    show_pool("captured");
    replay(exec, input, result, count);
    atomic_store(&is_over, 1);
    pthread_join(eager, NULL);
    MUST(cudaGraphExecDestroy(exec));
    if (cca_loaded()) {
        show_pool("replayed");
        give(input);
        give(result);
        expect(cca_pool_destroy(0, pool) == 0, "the end of the pool");
        MUST(cudaDeviceSynchronize());
        expect(cca_empty_cache() == 0, "an empty cache");
        expect(cca_pool_stats(0, pool, NULL, NULL) == -ENOENT, "no pool any more");
        fprintf(stderr, "%d temporary addresses, %llu bytes reserved\n", seen_count - 2,
                (unsigned long long)cca_memory_reserved(0));
    }
    MUST(cudaStreamDestroy(main_stream));
    MUST(cudaStreamDestroy(side_stream));
    return failures != 0;
}
