/* SPDX-License-Identifier: MIT */
/* What a violation does to the process. The rules of order are in ../conformance. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#define BYTES 4096

static cudaStream_t first;
static cudaStream_t second;
static char *p;

/* Two streams that are not ordered by anything, and a block. */
static void start(void)
{
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, BYTES));
}

static void reports_do_not_change_the_status(void)
{
    start();
    OK(sim_fill(p, BYTES, 1, first));
    CHECK_EQ(sim_fill(p, BYTES, 1, second), cudaErrorIllegalAddress);
    simcuda_violations_reset();
    OK(cudaDeviceSynchronize());
    OK(sim_fill(p, BYTES, 1, first));
    CHECK_EQ(sim_fill(p, BYTES, 1, second), cudaErrorIllegalAddress);
}

static void ignored_ones_are_counted(void)
{
    start();
    OK(sim_fill(p, BYTES, 1, first));
    OK(sim_fill(p, BYTES, 1, second));
    CHECK_EQ(simcuda_violations(), 1);
}

static const struct check_case cases[] = {
    {"reports_do_not_change_the_status", reports_do_not_change_the_status,
     "SIMCUDA_VIOLATIONS=report", 0},
    {"ignored_ones_are_counted", ignored_ones_are_counted, "SIMCUDA_VIOLATIONS=ignore", 0},
};

CHECK_MAIN(cases)
