/* SPDX-License-Identifier: MIT */
/* cudaMalloc on a thread whose stream captures, and the graph launched while another thread frees
 * and allocates blocks of the same size: incapture global|thread|relaxed warm|cold LAUNCHES. Warm:
 * there was such a block before. */
#include <pthread.h>
#include <stdatomic.h>

#include "program.h"
#include "support/sim_kernels.h"

enum { BYTES = 256, MARK = 0x5a, OTHER = 0x11 };

static atomic_int must_stop, rounds;

static void *churn(void *unused)
{
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    while (!atomic_load(&must_stop)) {
        void *p = NULL;
        MUST(cudaMalloc(&p, BYTES));
        MUST(cudaMemsetAsync(p, OTHER, BYTES, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaFree(p));
        atomic_fetch_add(&rounds, 1);
    }
    MUST(cudaStreamDestroy(stream));
    return unused;
}

static void launch(cudaGraph_t graph, void *block, cudaStream_t stream, int launches)
{
    cudaGraphExec_t exec;
    pthread_t thread;
    int right = 0;
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    pthread_create(&thread, NULL, churn, NULL);
    while (atomic_load(&rounds) == 0) {
        usleep(100);
    }
    for (int i = 0; i < launches; i++) {
        MUST(cudaMemsetAsync(block, i & 0x0f, BYTES, stream));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        right += all_bytes_are(block, BYTES, MARK);
    }
    atomic_store(&must_stop, 1);
    pthread_join(thread, NULL);
    printf("%d launches, %d right\n", launches, right);
    MUST(cudaGraphExecDestroy(exec));
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "", *state = argc > 2 ? argv[2] : "";
    int launches = argc > 3 ? atoi(argv[3]) : 100;
    enum cudaStreamCaptureMode capture_mode = strcmp(mode, "global") == 0
                                                  ? cudaStreamCaptureModeGlobal
                                              : strcmp(mode, "thread") == 0
                                                  ? cudaStreamCaptureModeThreadLocal
                                                  : cudaStreamCaptureModeRelaxed;
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    cudaStream_t stream;
    void *block = NULL;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (strcmp(state, "warm") == 0) {
        MUST(cudaMalloc(&block, BYTES));
        MUST(cudaFree(block));
    }
    MUST(cudaStreamBeginCapture(stream, capture_mode));
    cudaError_t code = cudaMalloc(&block, BYTES);
    printf("malloc -> %d\n", (int)code);
    if (code == cudaSuccess) {
        MUST(sim_fill(block, BYTES, MARK, stream));
    }
    MUST(cudaStreamIsCapturing(stream, &status));
    printf("status %d\n", (int)status);
    printf("end -> %d\n", (int)cudaStreamEndCapture(stream, &graph));
    (void)cudaGetLastError();
    if (graph != NULL) {
        launch(graph, block, stream, launches);
        MUST(cudaGraphDestroy(graph));
        printf("free -> %d\n", (int)cudaFree(block));
    }
    return 0;
}
