/* SPDX-License-Identifier: MIT */
/* Fills most of the device through the cache, lets a capture begin and end in the way that is asked
 * for, and prints whether the memory is there again: captures WAY. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MUST(call) ((call) == 0 ? (void)0 : fail(#call))
#define MOST       ((size_t)10 << 30) /* of 16 */

static cudaStream_t stream;

static void fail(const char *call)
{
    printf("failed: %s\n", call);
}

static void begin(void)
{
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

static void *end(void *unused)
{
    cudaGraph_t graph = NULL;
    printf("end %d\n", cudaStreamEndCapture(stream, &graph));
    return unused;
}

static void end_elsewhere(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, end, NULL));
    MUST(pthread_join(thread, NULL));
}

static void capture(const char *way)
{
    CUgraph graph = NULL;
    if (strcmp(way, "plain") == 0) {
        begin();
        end(NULL);
    } else if (strcmp(way, "driver") == 0) {
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        MUST(cuStreamEndCapture(stream, &graph));
    } else if (strcmp(way, "refused") == 0) {
        printf("begin %d\n", cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal));
    } else if (strcmp(way, "twice") == 0) {
        begin();
        printf("begin %d\n", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        end(NULL);
    } else if (strcmp(way, "elsewhere") == 0) {
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        end_elsewhere();
        end(NULL);
    } else if (strcmp(way, "destroyed") == 0) {
        begin();
        MUST(cudaStreamDestroy(stream));
    } else if (strcmp(way, "invalid") == 0) {
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        printf("sync %d\n", cudaStreamSynchronize(stream));
        end(NULL);
    } else if (strcmp(way, "many") == 0) {
        for (int i = 0; i < 200; i++) {
            begin();
            end(NULL);
        }
    }
}

int main(int argc, char **argv)
{
    void *block = NULL;
    int is_early = argc == 3 && strcmp(argv[2], "early") == 0;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (is_early) {
        capture(argv[1]);
    }
    MUST(cudaMallocAsync(&block, MOST, NULL));
    MUST(cudaFreeAsync(block, NULL));
    MUST(cudaDeviceSynchronize());
    if (!is_early) {
        capture(argv[1]);
    }
    (void)cudaGetLastError();
    printf("malloc %d\n", cudaMalloc(&block, MOST));
    return 0;
}
