/* SPDX-License-Identifier: MIT */
/* Real time: delays, and the threads behind them. The rules of streams are in ../conformance. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <time.h>

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void delays_pass_in_the_background(void)
{
    cudaStream_t stream;
    char *p;
    double start;

    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc((void **)&p, 100));
    start = now_ms();
    OK(sim_fill_slow(p, 100, 1, 300000, stream));
    CHECK(now_ms() - start < 300);
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    CHECK_EQ(cudaGetLastError(), cudaErrorNotReady);
    OK(cudaStreamSynchronize(stream));
    CHECK(now_ms() - start >= 300);
    OK(cudaStreamQuery(stream));
}

static int thread_count(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    int count = 0;

    while (fgets(line, sizeof(line), status) != NULL) {
        if (sscanf(line, "Threads: %d", &count) == 1) {
            break;
        }
    }
    fclose(status);
    return count;
}

static void there_is_no_thread_without_delays(void)
{
    char *p;
    int before = thread_count();

    OK(cudaMalloc((void **)&p, 100));
    OK(sim_fill(p, 100, 1, NULL));
    OK(cudaFree(p));
    CHECK_EQ(thread_count(), before);
    OK(sim_spin(1000, NULL));
    CHECK(thread_count() > before);
}

static const struct check_case cases[] = {
    {"delays_pass_in_the_background", delays_pass_in_the_background, NULL, 0},
    {"there_is_no_thread_without_delays", there_is_no_thread_without_delays, NULL, 0},
};

CHECK_MAIN(cases)
