/* SPDX-License-Identifier: MIT */
/* Virtual time: work runs when somebody needs it, in an order that a seed decides. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <pthread.h>
#include <string.h>

static cudaStream_t new_stream(void)
{
    cudaStream_t stream;

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static void nothing_runs_by_itself(void)
{
    cudaStream_t stream = new_stream();
    cudaEvent_t event;
    char *p;

    OK(cudaEventCreate(&event));
    OK(cudaMalloc((void **)&p, 100));
    OK(sim_fill(p, 100, 1, stream));
    OK(cudaEventRecord(event, stream));
    CHECK_EQ(simcuda_pending(), 2);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(cudaEventQuery(event), cudaErrorNotReady);
        CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    }
    CHECK_EQ(((char *)simcuda_payload((uint64_t)p))[0], 0);
    simcuda_advance_all();
    CHECK_EQ(simcuda_pending(), 0);
    CHECK_EQ(((char *)simcuda_payload((uint64_t)p))[0], 1);
    OK(cudaEventQuery(event));
}

static void a_wait_runs_what_it_needs(void)
{
    cudaStream_t a = new_stream();
    cudaStream_t b = new_stream();
    cudaStream_t c = new_stream();
    cudaEvent_t event;

    OK(cudaEventCreate(&event));
    OK(sim_spin(1, a));
    OK(cudaEventRecord(event, a));
    OK(sim_spin(1, a));
    OK(cudaStreamWaitEvent(b, event, 0));
    OK(sim_spin(1, c));
    OK(cudaStreamSynchronize(b));
    CHECK_EQ(simcuda_pending(), 2);
    CHECK_EQ(cudaStreamQuery(a), cudaErrorNotReady);
    CHECK_EQ(cudaStreamQuery(c), cudaErrorNotReady);
    simcuda_advance_stream(a);
    OK(cudaStreamQuery(a));
    CHECK_EQ(simcuda_pending(), 1);
}

static void queries_may_make_progress(void)
{
    cudaStream_t stream = new_stream();
    int queries = 0;

    OK(sim_spin(1, stream));
    OK(sim_spin(1, stream));
    while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        CHECK(++queries < 10000);
    }
    CHECK(queries >= 1);
}

static void time_is_simulated(void)
{
    cudaStream_t stream = new_stream();
    cudaEvent_t start;
    cudaEvent_t end;
    float ms;

    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(start, stream));
    OK(sim_spin(3600000000u, stream));
    OK(cudaEventRecord(end, stream));
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms > 3599999.0f && ms < 3600001.0f);
}

static char order[9];
static int place;

static void CUDART_CB note(void *letter)
{
    order[place++] = *(const char *)letter;
}

/* Runs eight unordered functions and leaves their order. */
static void run_unordered(void)
{
    static const char letters[] = "abcdefgh";

    place = 0;
    for (int i = 0; i < 8; i++) {
        OK(cudaLaunchHostFunc(new_stream(), note, (void *)&letters[i]));
    }
    OK(cudaDeviceSynchronize());
    CHECK_EQ(place, 8);
}

static void a_seed_decides_the_order(void)
{
    char seen[8][9];
    int different = 0;

    for (int i = 0; i < 8; i++) {
        simcuda_set_seed((uint64_t)i + 1);
        run_unordered();
        memcpy(seen[i], order, sizeof(order));
        different += strcmp(seen[i], seen[0]) != 0;
    }
    CHECK(different > 0);
}

static void free_waits_here_too(void)
{
    cudaStream_t stream = new_stream();
    char *p;
    char *q;

    OK(cudaMalloc((void **)&p, 100));
    OK(cudaMalloc((void **)&q, 100));
    OK(sim_fill(p, 100, 1, stream));
    OK(cudaFree(q));
    CHECK_EQ(simcuda_pending(), 0);
}

static void pools_reuse_before_a_free_has_run(void)
{
    cudaStream_t stream = new_stream();
    cudaStream_t other = new_stream();
    char *p;
    char *q;

    OK(cudaMallocAsync((void **)&p, 1000, stream));
    OK(sim_fill(p, 1000, 1, stream));
    OK(cudaFreeAsync(p, stream));
    OK(cudaMallocAsync((void **)&q, 1000, other));
    CHECK(p != q);
    OK(cudaFreeAsync(q, other));
    OK(cudaMallocAsync((void **)&q, 1000, stream));
    CHECK(p == q);
    OK(sim_fill(q, 1000, 2, stream));
    CHECK(simcuda_pending() > 4);
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(((char *)simcuda_payload((uint64_t)q))[999], 2);
    OK(cudaFreeAsync(q, stream));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(simcuda_used_bytes(0), 0);
}

static void time_can_change(void)
{
    cudaStream_t stream = new_stream();

    OK(sim_spin(10, stream));
    OK(cudaStreamQuery(stream) == cudaErrorNotReady ? cudaSuccess : cudaErrorUnknown);
    OK(cudaStreamSynchronize(stream));
    simcuda_set_virtual(true);
    OK(sim_spin(10, stream));
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    simcuda_set_virtual(false);
    OK(cudaStreamQuery(stream));
}

enum { THREADS = 8, ROUNDS = 200 };

static void *synchronise(void *unused)
{
    cudaStream_t stream = new_stream();
    char *p;

    (void)unused;
    OK(cudaMalloc((void **)&p, 256));
    for (int i = 0; i < ROUNDS; i++) {
        OK(sim_fill(p, 256, i, stream));
        OK(sim_fill(p, 256, i, stream));
        if (i % 3 == 0) {
            OK(cudaDeviceSynchronize());
        } else {
            OK(cudaStreamSynchronize(stream));
        }
    }
    OK(cudaFree(p));
    return NULL;
}

static void threads_synchronise_at_once(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, synchronise, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(simcuda_pending(), 0);
}

#define VIRTUAL "SIMCUDA_TIME=virtual"

static const struct check_case cases[] = {
    {"nothing_runs_by_itself", nothing_runs_by_itself, VIRTUAL, 0},
    {"a_wait_runs_what_it_needs", a_wait_runs_what_it_needs, VIRTUAL, 0},
    {"queries_may_make_progress", queries_may_make_progress, VIRTUAL " SIMCUDA_VIRTUAL_PROGRESS=5",
     0},
    {"time_is_simulated", time_is_simulated, VIRTUAL, 0},
    {"a_seed_decides_the_order", a_seed_decides_the_order, VIRTUAL, 0},
    {"free_waits_here_too", free_waits_here_too, VIRTUAL, 0},
    {"pools_reuse_before_a_free_has_run", pools_reuse_before_a_free_has_run, VIRTUAL, 0},
    {"time_can_change", time_can_change, "SIMCUDA_KERNEL_US=400000", 0},
    {"threads_synchronise_at_once", threads_synchronise_at_once, VIRTUAL, 0},
};

CHECK_MAIN(cases)
