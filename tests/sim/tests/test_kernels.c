/* SPDX-License-Identifier: MIT */
/* Host functions that stand in for kernels. */
#include "check.h"
#include "sim.h"

#include <cuda.h>
#include <string.h>

static CUmodule module;
static CUstream streams[2];

/* scale(float *p, unsigned n, float by) */
static const unsigned char scale_sizes[] = {8, 4, 4};

static uint64_t address_of(void *const *arguments)
{
    uint64_t address;

    memcpy(&address, arguments[0], sizeof(address));
    return address;
}

static unsigned scale_ranges(void *const *arguments, struct simcuda_range *ranges_out,
                             unsigned room)
{
    unsigned count;

    CHECK(room >= 1);
    memcpy(&count, arguments[1], sizeof(count));
    ranges_out[0] = (struct simcuda_range){address_of(arguments), count * sizeof(float), true};
    return 1;
}

static unsigned last_grid;
static CUresult result_inside;

static void scale_run(void *const *arguments, const unsigned grid[3], const unsigned block[3])
{
    float *values = simcuda_payload(address_of(arguments));
    unsigned count;
    float by;

    memcpy(&count, arguments[1], sizeof(count));
    memcpy(&by, arguments[2], sizeof(by));
    for (unsigned i = 0; i < count; i++) {
        values[i] *= by;
    }
    last_grid = grid[0] * block[0];
    result_inside = cuCtxSynchronize();
}

static const struct simcuda_kernel scale = {"scale", 3, scale_sizes, scale_ranges, scale_run};

static CUfunction start(void)
{
    CUcontext context;
    CUfunction function;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    simcuda_set_kernel(&scale);
    OK(cuModuleLoadData(&module, "text, so that any kernel is in it"));
    OK(cuModuleGetFunction(&function, module, "_Z5scalePfjf"));
    for (int i = 0; i < 2; i++) {
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    }
    return function;
}

static CUresult launch(CUfunction function, CUdeviceptr p, unsigned count, float by,
                       CUstream stream)
{
    void *arguments[] = {&p, &count, &by};

    return cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
}

static void it_computes(void)
{
    CUfunction function = start();
    float values[4] = {1, 2, 3, 4};
    CUdeviceptr p;

    OK(cuMemAlloc(&p, sizeof(values)));
    OK(cuMemcpyHtoD(p, values, sizeof(values)));
    OK(launch(function, p, 4, 2.5f, streams[0]));
    OK(cuStreamSynchronize(streams[0]));
    OK(cuMemcpyDtoH(values, p, sizeof(values)));
    CHECK(values[0] == 2.5f && values[3] == 10.0f);
    CHECK_EQ(last_grid, 64);
    CHECK_EQ(result_inside, CUDA_ERROR_NOT_PERMITTED);
}

static void its_ranges_are_checked(void)
{
    CUfunction function = start();
    CUdeviceptr p;

    OK(cuMemAlloc(&p, 64));
    OK(launch(function, p, 8, 2, streams[0]));
    OK(launch(function, p + 32, 8, 2, streams[1]));
    CHECK_EQ(launch(function, p + 28, 1, 2, streams[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void graphs_repeat_it(void)
{
    CUfunction function = start();
    float value = 1;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr p;

    OK(cuMemAlloc(&p, sizeof(value)));
    OK(cuMemcpyHtoD(p, &value, sizeof(value)));
    OK(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch(function, p, 1, 3, streams[0]));
    OK(cuStreamEndCapture(streams[0], &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, streams[0]));
    OK(cuGraphLaunch(exec, streams[0]));
    OK(cuStreamSynchronize(streams[0]));
    OK(cuMemcpyDtoH(&value, p, sizeof(value)));
    CHECK(value == 9);
}

static const struct check_case cases[] = {
    {"it_computes", it_computes, NULL, 0},
    {"it_computes/slow", it_computes, "SIMCUDA_KERNEL_US=1000", 0},
    {"it_computes/virtual", it_computes, "SIMCUDA_TIME=virtual", 0},
    {"its_ranges_are_checked", its_ranges_are_checked, NULL, 97},
    {"graphs_repeat_it", graphs_repeat_it, NULL, 0},
};

CHECK_MAIN(cases)
