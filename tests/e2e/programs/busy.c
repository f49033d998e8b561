/* SPDX-License-Identifier: MIT */
/* As many threads as the argument says, each allocating and freeing on a stream of its own, without
 * a pause, until a line comes on stdin. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "program.h"

enum { THREADS_MAX = 64, HELD = 12 };

static atomic_bool is_over;
static atomic_int wrong;

static void *work(void *seed_)
{
    unsigned seed = (unsigned)(size_t)seed_;
    void *held[HELD] = {NULL};
    cudaStream_t stream;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; !atomic_load(&is_over); i = (i + 1) % HELD) {
        size_t bytes = (size_t)1 + rand_r(&seed) % (3 << 20);
        bool is_ordered = rand_r(&seed) % 2 == 0;
        atomic_fetch_add(&wrong, cudaFree(held[i]) != cudaSuccess);
        atomic_fetch_add(&wrong, (is_ordered ? cudaMallocAsync(&held[i], bytes, stream)
                                             : cudaMalloc(&held[i], bytes)) != cudaSuccess);
    }
    for (int i = 0; i < HELD; i++) {
        atomic_fetch_add(&wrong, cudaFree(held[i]) != cudaSuccess);
    }
    MUST(cudaStreamDestroy(stream));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    int count = argc > 1 ? atoi(argv[1]) : 1;
    void *first = NULL;
    char line[16];

    MUST(cudaMalloc(&first, 4096));
    for (int i = 0; i < count && i < THREADS_MAX; i++) {
        pthread_create(&threads[i], NULL, work, (void *)(size_t)(i + 1));
    }
    printf("ready\n");
    fflush(stdout);
    (void)!fgets(line, sizeof(line), stdin);
    atomic_store(&is_over, true);
    for (int i = 0; i < count && i < THREADS_MAX; i++) {
        pthread_join(threads[i], NULL);
    }
    MUST(cudaFree(first));
    printf("wrong %d\n", atomic_load(&wrong));
    return 0;
}
