/* SPDX-License-Identifier: MIT */
/* One thread resets device 1 over and over, another allocates and frees on device 0. The argument
 * is the number of resets. */
#include <pthread.h>
#include <stdatomic.h>

#include "program.h"

static atomic_int stop, rounds;

static void *allocate_and_free(void *unused)
{
    void *p = NULL;
    MUST(cudaSetDevice(0));
    while (!atomic_load(&stop)) {
        MUST(cudaMalloc(&p, 4096));
        MUST(cudaMemset(p, 1, 4096));
        MUST(cudaFree(p));
        atomic_fetch_add(&rounds, 1);
    }
    printf("last error of device 0: %d\n", (int)cudaGetLastError());
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int resets = argc > 1 ? atoi(argv[1]) : 20;
    MUST(cudaSetDevice(1));
    pthread_create(&thread, NULL, allocate_and_free, NULL);
    for (int i = 0; i < resets; i++) {
        void *p = NULL;
        int seen = atomic_load(&rounds);
        MUST(cudaMalloc(&p, 1 << 20));
        MUST(cudaMemset(p, 1, 1 << 20));
        if (i % 2 == 0) {
            MUST(cudaFree(p));
        }
        MUST(cudaDeviceReset());
        while (atomic_load(&rounds) < seen + 5) {
            usleep(100);
        }
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    printf("%d resets, last error %d\n", resets, (int)cudaGetLastError());
    return 0;
}
