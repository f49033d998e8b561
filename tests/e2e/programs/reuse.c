/* SPDX-License-Identifier: MIT */
/* Frees memory while a kernel still writes to it, then allocates and writes on another stream:
 * correct only if memory is never handed on too early. Arguments: rounds in all, threads, seed, and
 * "endless" for a kernel that outlasts the program. */
#include <pthread.h>

#include "program.h"
#include "support/sim_kernels.h"

enum { KERNEL_US = 500, KINDS = 5 };

static int rounds_per_thread;
static unsigned first_seed;

struct worker {
    cudaStream_t writer, other; /* non-blocking, never ordered against each other */
    unsigned seed;
};

static size_t draw_size(struct worker *worker)
{
    static const size_t sizes[] = {512, 4096, 65536, 256 << 10, (1 << 20) + 512};
    return sizes[(unsigned)rand_r(&worker->seed) % (sizeof(sizes) / sizeof(sizes[0]))];
}

/* Memory with a slow kernel at work on it, freed in one of several ways. */
static void write_and_free(struct worker *worker, int kind, size_t bytes)
{
    cudaStream_t stream = worker->writer;
    void *p = NULL;
    if (kind == 4) {
        MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    if (kind == 0 || kind == 2) {
        MUST(cudaMalloc(&p, bytes));
    } else {
        MUST(cudaMallocAsync(&p, bytes, stream));
    }
    MUST(sim_fill_slow(p, bytes, 0xAA, KERNEL_US, stream));
    if (kind == 0) {
        MUST(cudaFree(p));
    } else if (kind == 3) {
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaFree(p));
    } else {
        MUST(cudaFreeAsync(p, stream));
    }
    if (kind == 4) {
        MUST(cudaStreamDestroy(stream));
    }
}

static void write_elsewhere_and_check(struct worker *worker, int kind, size_t bytes, int value)
{
    void *p = NULL;
    int is_async = kind == 1;
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
    struct worker worker = {.seed = first_seed + (unsigned)(intptr_t)arg};
    MUST(cudaStreamCreateWithFlags(&worker.writer, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&worker.other, cudaStreamNonBlocking));
    for (int i = 0; i < rounds_per_thread; i++) {
        int kind = rand_r(&worker.seed) % KINDS;
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

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int rounds = argc > 1 ? atoi(argv[1]) : 1000, count = argc > 2 ? atoi(argv[2]) : 8;
    first_seed = argc > 3 ? (unsigned)atoi(argv[3]) * 1000 : 1;
    if (argc > 4 && strcmp(argv[4], "endless") == 0) {
        free_beside_an_endless_kernel(rounds);
    }
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
