/* SPDX-License-Identifier: MIT */
/* Eight threads that allocate, fill, copy back and free, each on a stream of its own. Arguments:
 * rounds, threads. */
#include <pthread.h>

#include "program.h"

static int rounds = 500;

static void fill_and_check(void *block, size_t bytes, int value, cudaStream_t stream)
{
    unsigned char first = 0;
    MUST(cudaMemsetAsync(block, value, bytes, stream));
    MUST(cudaMemcpyAsync(&first, (char *)block + bytes - 1, 1, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    if (first != (unsigned char)value) {
        printf("WRONG\n");
        exit(1);
    }
}

static void *work(void *arg)
{
    int thread = (int)(intptr_t)arg;
    unsigned seed = (unsigned)thread + 1;
    void *kept[4] = {NULL};
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < rounds; i++) {
        size_t bytes = (size_t)1 << (8 + rand_r(&seed) % 14);
        int slot = rand_r(&seed) % 4;
        MUST(cudaFree(kept[slot]));
        MUST(cudaMalloc(&kept[slot], bytes));
        fill_and_check(kept[slot], bytes, thread * 16 + slot, stream);
    }
    for (int slot = 0; slot < 4; slot++) {
        MUST(cudaFree(kept[slot]));
    }
    MUST(cudaStreamDestroy(stream));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int count = 8;
    if (argc > 1) {
        rounds = atoi(argv[1]);
    }
    if (argc > 2 && atoi(argv[2]) <= 64) {
        count = atoi(argv[2]);
    }
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%d threads, %d rounds each: right\n", count, rounds);
    return 0;
}
