/* SPDX-License-Identifier: MIT */
/* Eight threads allocate, launch, copy, synchronise and free at once, each in its own streams;
 * every byte must come back, and nothing may be called a violation. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <pthread.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 300, BLOCKS = 16, BYTES = 2048 };

struct worker {
    pthread_t thread;
    unsigned state;
};

static unsigned draw(struct worker *worker)
{
    worker->state = worker->state * 1664525u + 1013904223u;
    return worker->state >> 16;
}

static void one_round(struct worker *worker, cudaStream_t stream, char *blocks[BLOCKS])
{
    unsigned index = draw(worker) % BLOCKS;
    unsigned value = draw(worker) % 100;
    char host[BYTES];

    if (blocks[index] == NULL) {
        OK(draw(worker) % 2 != 0 ? cudaMalloc((void **)&blocks[index], BYTES)
                                 : cudaMallocAsync((void **)&blocks[index], BYTES, stream));
    }
    OK(sim_fill(blocks[index], BYTES, (int)value, stream));
    OK(cudaMemsetAsync(blocks[index], (int)value + 1, BYTES / 2, stream));
    OK(cudaMemcpyAsync(host, blocks[index], BYTES, cudaMemcpyDeviceToHost, stream));
    CHECK_EQ(host[0], value + 1);
    CHECK_EQ(host[BYTES - 1], value);
    switch (draw(worker) % 4) {
    case 0: OK(cudaStreamSynchronize(stream)); break;
    case 1: OK(cudaDeviceSynchronize()); break;
    case 2:
        OK(cudaFreeAsync(blocks[index], stream));
        blocks[index] = NULL;
        break;
    default:
        OK(cudaStreamSynchronize(stream));
        OK(cudaFree(blocks[index]));
        blocks[index] = NULL;
        break;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    cudaStream_t stream;
    char *blocks[BLOCKS] = {0};

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < ROUNDS; i++) {
        one_round(worker, stream, blocks);
    }
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < BLOCKS; i++) {
        OK(cudaFree(blocks[i]));
    }
    OK(cudaStreamDestroy(stream));
    return NULL;
}

static void all_together(void)
{
    struct worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i].state = (unsigned)i;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    OK(cudaDeviceSynchronize());
    CHECK_EQ(simcuda_live_blocks(0), 0);
    CHECK_EQ(simcuda_used_bytes(0), 0);
    CHECK_EQ(simcuda_violations(), 0);
}

static const struct check_case cases[] = {
    {"all_together", all_together, NULL, 0},
    {"all_together/virtual", all_together, "SIMCUDA_TIME=virtual", 0},
    {"all_together/slow", all_together, "SIMCUDA_KERNEL_US=50 SIMCUDA_COPY_US=20", 0},
};

CHECK_MAIN(cases)
