/* SPDX-License-Identifier: MIT */
/* A stream is destroyed, and before the call returns another thread gets its handle for a new
 * stream, which it captures. Memory is freed while that capture goes on. */
#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>

#include "program.h"

extern void (*cca_test_done)(void);

static sem_t destroyed, captures, freed;
static cudaStream_t old;

static void let_other_capture(void)
{
    sem_post(&destroyed);
    sem_wait(&captures);
}

static void *capture(void *unused)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    MUST(cudaSetDevice(0));
    sem_wait(&destroyed);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    printf("the same handle: %s\n", stream == old ? "yes" : "no");
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    sem_post(&captures);
    sem_wait(&freed);
    printf("end of the capture: %d\n", (int)cudaStreamEndCapture(stream, &graph));
    return unused;
}

int main(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    pthread_t thread;
    void *p;
    sem_init(&destroyed, 0, 0);
    sem_init(&captures, 0, 0);
    sem_init(&freed, 0, 0);
    MUST(cudaMalloc(&p, 1 << 20));
    MUST(cudaStreamCreateWithFlags(&old, cudaStreamNonBlocking));
    MUST(cudaThreadExchangeStreamCaptureMode(&mode));
    pthread_create(&thread, NULL, capture, NULL);
    cca_test_done = let_other_capture;
    printf("destroy: %d\n", (int)cuStreamDestroy(old));
    printf("free: %d\n", (int)cudaFree(p));
    sem_post(&freed);
    pthread_join(thread, NULL);
    return 0;
}
