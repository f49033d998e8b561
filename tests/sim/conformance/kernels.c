/* SPDX-License-Identifier: MIT */
/* The rules' kernels where no compiler for devices is at hand: the simulator knows them by name. */
#include "rule.h"
#include "sim_kernels.h"

cudaError_t launch_fill(void *p, size_t bytes, int value, cudaStream_t stream)
{
    return sim_fill(p, bytes, value, stream);
}

cudaError_t launch_copy(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
    return sim_copy(dst, src, bytes, stream);
}

cudaError_t launch_add(int *p, size_t n, int value, cudaStream_t stream)
{
    return sim_add(p, n, value, stream);
}

cudaError_t launch_shape(dim3 grid, dim3 block, cudaStream_t stream)
{
    unsigned us = 0;
    void *arguments[] = {&us};

    return cudaLaunchKernel(sim_kernel_spin, grid, block, arguments, 0, stream);
}

cudaError_t launch_set_condition(unsigned long long handle, unsigned value, cudaStream_t stream)
{
    void *arguments[] = {&handle, &value};

    return sim_launch(sim_kernel_set_condition, arguments, stream);
}

cudaError_t launch_loop(unsigned long long handle, unsigned *left, cudaStream_t stream)
{
    void *arguments[] = {&handle, &left};

    return sim_launch(sim_kernel_loop, arguments, stream);
}

const void *kernel_fill(void)
{
    return sim_kernel_fill;
}

const void *kernel_add(void)
{
    return sim_kernel_add;
}
