/* SPDX-License-Identifier: MIT */
/* Stream-ordered allocation on streams of every kind, frees on other streams, streams destroyed. */
#include "program.h"

static void use(cudaStream_t stream, size_t bytes, int value)
{
    void *p = NULL;
    MUST(cudaMallocAsync(&p, bytes, stream));
    MUST(cudaMemsetAsync(p, value, bytes, stream));
    MUST(cudaStreamSynchronize(stream));
    printf("%zu bytes of %d: %s\n", bytes, value,
           all_bytes_are(p, bytes, value) ? "right" : "WRONG");
    MUST(cudaFreeAsync(p, stream));
}

int main(void)
{
    cudaStream_t blocking, other;
    void *p = NULL;
    for (int round = 0; round < 20; round++) {
        MUST(cudaStreamCreate(&blocking));
        MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
        use(blocking, 1000 + (size_t)round * 4096, round);
        use(other, (size_t)3 << 20, round + 100);
        use(0, 4096, 7);
        use(cudaStreamPerThread, 8192, 8);
        use(cudaStreamLegacy, 8192, 9);

        /* From one stream to the other, ordered by an event. */
        cudaEvent_t event;
        MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        MUST(cudaMallocAsync(&p, 1 << 20, blocking));
        MUST(cudaMemsetAsync(p, 3, 1 << 20, blocking));
        MUST(cudaEventRecord(event, blocking));
        MUST(cudaStreamWaitEvent(other, event, 0));
        MUST(cudaMemsetAsync(p, 4, 1 << 20, other));
        MUST(cudaFreeAsync(p, other));
        MUST(cudaEventDestroy(event));

        /* cudaMalloc with cudaFreeAsync, and the other way round. */
        MUST(cudaMalloc(&p, 5000));
        MUST(cudaFreeAsync(p, blocking));
        MUST(cudaMallocAsync(&p, 5000, other));
        MUST(cudaStreamSynchronize(other));
        MUST(cudaFree(p));

        MUST(cudaStreamDestroy(blocking));
        MUST(cudaStreamDestroy(other));
    }
    MUST(cudaDeviceSynchronize());
    printf("done, last error %d\n", (int)cudaGetLastError());
    return 0;
}
