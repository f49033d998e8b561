/* SPDX-License-Identifier: MIT */
/* Calls that fail or take long as ordered, by variables and by sim.h; the log; and the determinism
 * of all that a seed decides. */
#include "check.h"
#include "sim.h"

#include <cuda.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define MIB ((size_t)1 << 20)

static void start(void)
{
    CUcontext context;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}

/* Which of the next calls fail, the first of them in the lowest bit. */
static unsigned failures(int calls)
{
    unsigned bits = 0;
    CUdeviceptr p;

    for (int i = 0; i < calls; i++) {
        bits |= (unsigned)(cuMemAlloc(&p, 64) != CUDA_SUCCESS) << i;
    }
    return bits;
}

static void by_variables(void)
{
    CUdeviceptr p;
    CUstream stream;

    start();
    CHECK_EQ(failures(6), 0x24);
    OK(cuMemAllocHost((void **)&p, 64));
    CHECK_EQ(cuMemAllocHost((void **)&p, 64), CUDA_ERROR_NOT_PERMITTED);
    OK(cuMemAllocHost((void **)&p, 64));
    CHECK_EQ(cuStreamCreate(&stream, 0), CUDA_ERROR_LAUNCH_TIMEOUT);
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

static void by_calls(void)
{
    start();
    simcuda_set_fail("cuMemAlloc_v2:n=2");
    CHECK_EQ(failures(4), 0x2);
    simcuda_set_fail("cuMemAlloc_v2:every=2:code=46");
    unsigned bits = failures(8);
    CHECK(bits == 0xaa || bits == 0x55);
    simcuda_set_fail("");
    CHECK_EQ(failures(8), 0);
}

static void above_a_limit(void)
{
    CUdeviceptr p[8];
    CUdeviceptr more;

    start();
    simcuda_set_fail("cuMemAlloc_v2:above=8M");
    for (int i = 0; i < 4; i++) {
        OK(cuMemAlloc(&p[i], 2 * MIB));
    }
    CHECK_EQ(cuMemAlloc(&more, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree(p[0]));
    OK(cuMemAlloc(&more, 2 * MIB));
    CHECK_EQ(cuMemAlloc(&more, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
}

static void a_seed_decides_which_fail(void)
{
    static const char *const rule = "cuMemAlloc_v2:random=3";
    unsigned first[3];

    start();
    for (unsigned i = 0; i < 3; i++) {
        simcuda_set_seed(i < 2 ? 5 : 6);
        simcuda_set_fail(rule);
        first[i] = failures(30);
    }
    CHECK(first[0] != 0);
    CHECK_EQ(first[0], first[1]);
    CHECK(first[0] != first[2]);
}

/* SIMCUDA_SEED=5 gives what simcuda_set_seed(5) gives. */
static void the_seed_may_come_from_outside(void)
{
    start();
    simcuda_set_fail("cuMemAlloc_v2:random=3");
    unsigned from_outside = failures(30);
    simcuda_set_seed(5);
    CHECK_EQ(failures(30), from_outside);
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void slow_ones_take_their_time(void)
{
    CUdeviceptr p;

    start();
    simcuda_set_slow("cuMemAlloc_v2:us=20000");
    double before = now_ms();
    OK(cuMemAlloc(&p, 64));
    CHECK(now_ms() - before >= 20);
    simcuda_set_slow("");
    OK(cuMemAlloc(&p, 64));
}

enum { CALLS = 200000 };

static void *allocate(void *unused)
{
    CUdeviceptr p;

    start();
    for (int i = 0; i < CALLS; i++) {
        OK(cuMemAlloc(&p, 64));
        OK(cuMemFree(p));
    }
    return unused;
}

/* Another thread sees the counts grow while the calls are made. */
static void the_log_is_read_while_the_program_runs(void)
{
    pthread_t thread;
    uint64_t before = 0;
    unsigned steps = 0;

    start();
    pthread_create(&thread, NULL, allocate, NULL);
    while (before < CALLS) {
        uint64_t now = simcuda_call_count("cuMemAlloc_v2");
        CHECK(now >= before);
        steps += now > before && now < CALLS;
        before = now;
    }
    pthread_join(thread, NULL);
    CHECK(steps > 1);
    CHECK_EQ(simcuda_call_count("cuMemFree_v2"), CALLS);
    CHECK_EQ(simcuda_call_count("cuNoSuchFunction"), 0);
}

static char order[64];
static unsigned place;

static void note(void *letter)
{
    order[place++] = *(const char *)letter;
}

/* A program with streams, events and host functions; what it leaves is the order they ran in. */
static void run_program(char *order_out)
{
    static const char letters[] = "abcdefghijklmnop";
    CUstream streams[4];
    CUevent event;

    place = 0;
    memset(order, 0, sizeof(order));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 4; i++) {
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    for (int i = 0; i < 16; i++) {
        OK(cuLaunchHostFunc(streams[i % 4], note, (void *)&letters[i]));
        if (i % 5 == 0) {
            OK(cuEventRecord(event, streams[i % 4]));
            OK(cuStreamWaitEvent(streams[(i + 1) % 4], event, 0));
        }
    }
    OK(cuCtxSynchronize());
    for (int i = 0; i < 4; i++) {
        OK(cuStreamDestroy(streams[i]));
    }
    OK(cuEventDestroy(event));
    memcpy(order_out, order, sizeof(order));
}

static void virtual_time_repeats_itself(void)
{
    char seen[8][64];
    int different = 0;

    start();
    for (unsigned i = 0; i < 8; i++) {
        simcuda_set_seed(i / 2 + 1);
        run_program(seen[i]);
        CHECK_EQ(strlen(seen[i]), 16);
        if (i % 2 == 1) {
            CHECK(strcmp(seen[i], seen[i - 1]) == 0);
        } else {
            different += strcmp(seen[i], seen[0]) != 0;
        }
    }
    CHECK(different > 0);
}

/* With delays the clock decides, not luck: what ends earlier runs earlier, whatever was enqueued
 * first. */
static void real_time_goes_by_the_delays(void)
{
    CUstream streams[2];
    CUmodule module;
    CUfunction spin;
    unsigned us[] = {60000, 5000};

    start();
    OK(cuModuleLoadData(&module, "any"));
    OK(cuModuleGetFunction(&spin, module, "sim_spin"));
    place = 0;
    for (int i = 0; i < 2; i++) {
        void *arguments[] = {&us[i]};
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, streams[i], arguments, NULL));
        OK(cuLaunchHostFunc(streams[i], note, (void *)(i == 0 ? "a" : "b")));
    }
    OK(cuCtxSynchronize());
    CHECK(memcmp(order, "ba", 2) == 0);
}

/* Kernels and copies have delays of their own. */
static void kinds_of_work_have_their_delays(void)
{
    CUdeviceptr p;
    CUstream stream;

    start();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 64));
    simcuda_set_delays(0, 30000);
    double before = now_ms();
    OK(cuMemsetD8Async(p, 1, 64, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(now_ms() - before >= 30);
    simcuda_set_delays(0, 0);
    OK(cuMemsetD8Async(p, 1, 64, stream));
    OK(cuStreamQuery(stream));
}

static const struct check_case cases[] = {
    {"by_variables", by_variables,
     "SIMCUDA_FAIL=cuMemAlloc_v2:every=3,cuMemHostAlloc:n=9,cuMemAllocHost_v2:n=2:code=800,"
     "cuStreamCreate:n=1:code=702:sticky=1",
     0},
    {"by_calls", by_calls, NULL, 0},
    {"above_a_limit", above_a_limit, NULL, 0},
    {"a_seed_decides_which_fail", a_seed_decides_which_fail, NULL, 0},
    {"the_seed_may_come_from_outside", the_seed_may_come_from_outside, "SIMCUDA_SEED=5", 0},
    {"slow_ones_take_their_time", slow_ones_take_their_time, NULL, 0},
    {"the_log_is_read_while_the_program_runs", the_log_is_read_while_the_program_runs,
     "SIMCUDA_RECORD=off", 0},
    {"virtual_time_repeats_itself", virtual_time_repeats_itself, "SIMCUDA_TIME=virtual", 0},
    {"real_time_goes_by_the_delays", real_time_goes_by_the_delays, NULL, 0},
    {"kinds_of_work_have_their_delays", kinds_of_work_have_their_delays, NULL, 0},
};

CHECK_MAIN(cases)
