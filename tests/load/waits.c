/* SPDX-License-Identifier: MIT */
/* Memory is freed in the order of a stream, that stream or another one is waited for, and as much
 * is asked for again by cudaMalloc, all while a third stream is busy. Prints how many blocks the
 * library holds then: waits STREAM. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "cca/cca.h"

#define BYTES ((size_t)1 << 30)

static sem_t may_end;
static cudaStream_t streams[3];
static const char *which;
static int result;

static void CUDART_CB wait_for_end(void *unused)
{
    (void)unused;
    sem_wait(&may_end);
}

static cudaStream_t find_stream(const char *name)
{
    if (strcmp(name, "own") == 0) {
        return cudaStreamPerThread;
    }
    return streams[strcmp(name, "same") == 0 ? 0 : 1];
}

static void *wait_for(void *name)
{
    result |= cudaStreamSynchronize(find_stream(name));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *block = NULL;
    which = argc == 2 ? argv[1] : "";
    sem_init(&may_end, 0, 0);
    for (int i = 0; i < 3; i++) {
        result |= cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    }
    cudaStream_t stream = strncmp(which, "own", 3) == 0 ? cudaStreamPerThread : streams[0];
    result |= cudaMallocAsync(&block, BYTES, stream);
    result |= cudaLaunchHostFunc(streams[2], wait_for_end, NULL);
    result |= cudaFreeAsync(block, stream);
    if (strcmp(which, "own elsewhere") == 0) {
        result |= pthread_create(&thread, NULL, wait_for, (void *)"own");
        result |= pthread_join(thread, NULL);
    } else {
        (void)wait_for((void *)which);
    }
    result |= cudaMalloc(&block, BYTES);
    printf("%d %llu\n", result, (unsigned long long)(cca_memory_reserved(0) >> 30));
    sem_post(&may_end);
    return cudaDeviceSynchronize();
}
