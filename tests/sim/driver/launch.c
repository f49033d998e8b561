/* SPDX-License-Identifier: MIT */
/* Kernel launches and the questions programs ask before them. */
#include "access.h"
#include "builtin.h"
#include "call.h"
#include "capture.h"
#include "config.h"
#include "context.h"
#include "module.h"
#include "sim_api.h"
#include "stand_in.h"
#include "work.h"

#include <string.h>

/* Where each argument lies, from either way of passing them. */
static bool find_arguments(const struct sim_kernel *kernel, void **params, void **extra,
                           const void *arguments_out[SIM_MAX_PARAMETERS])
{
    const char *buffer = NULL;

    if (kernel->parameter_count < 0) {
        return false;
    }
    if (params != NULL) {
        for (int i = 0; i < kernel->parameter_count; i++) {
            arguments_out[i] = params[i];
        }
        return true;
    }
    for (void **item = extra; item != NULL && *item != CU_LAUNCH_PARAM_END; item += 2) {
        if (*item == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = item[1];
        }
    }
    for (int i = 0; buffer != NULL && i < kernel->parameter_count; i++) {
        arguments_out[i] = buffer + kernel->parameters[i].offset;
    }
    return buffer != NULL || kernel->parameter_count == 0;
}

void sim_kernel_reach(const struct sim_kernel_work *work, struct sim_op *op)
{
    const struct sim_kernel *kernel = work->kernel;
    const void *const *arguments = (const void *const *)work->arguments;

    op->is_by_processors = true;
    if (arguments == NULL || kernel->parameter_count < 0) {
        return;
    }
    if (kernel->builtin != NULL && kernel->builtin->is_stand_in) {
        sim_stand_in_reach(kernel->builtin, work, op);
        return;
    }
    if (kernel->builtin != NULL) {
        kernel->builtin->declare(op, arguments);
        op->run = kernel->builtin->run;
        return;
    }
    for (int i = 0; i < kernel->parameter_count; i++) {
        uint64_t value;
        if (kernel->parameters[i].size_bytes == sizeof(value)) {
            memcpy(&value, arguments[i], sizeof(value));
            sim_op_mention(op, value);
        }
    }
}

/* Something to run, so that the blocks of a kernel nobody knows are looked at when its time comes.
 */
static void run_nothing(struct sim_op *op)
{
    (void)op;
}

CUresult sim_kernel_run(const struct sim_kernel_work *work, struct sim_queue *queue)
{
    struct sim_op *op = sim_op_create(queue, work->kernel->name);

    op->delay_ns = sim_config.kernel_ns;
    op->run = run_nothing;
    sim_kernel_reach(work, op);
    return sim_submit(op);
}

static CUresult launch(const struct sim_kernel *kernel, const unsigned grid[3],
                       const unsigned block[3], unsigned shared_bytes, CUstream stream,
                       void **params, void **extra)
{
    const void *arguments[SIM_MAX_PARAMETERS];
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(stream, &queue);

    if (result != CUDA_SUCCESS || kernel == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
    }
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || threads == 0 || threads > 1024 ||
        block[2] > 64 || grid[1] > 65535 || grid[2] > 65535 || shared_bytes > 166912) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool has_arguments = find_arguments(kernel, params, extra, arguments);
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                            .kernel = {.kernel = kernel,
                                       .grid = {grid[0], grid[1], grid[2]},
                                       .block = {block[0], block[1], block[2]},
                                       .shared_bytes = shared_bytes,
                                       .arguments = has_arguments ? (void **)arguments : NULL}};
    return sim_work_submit(&work, queue);
}

CUresult sim_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                            unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                            unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                            void **kernelParams, void **extra)
{
    const unsigned grid[3] = {gridDimX, gridDimY, gridDimZ};
    const unsigned block[3] = {blockDimX, blockDimY, blockDimZ};

    return launch(sim_kernel_of(f), grid, block, sharedMemBytes, hStream, kernelParams, extra);
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
                              void **extra)
{
    if (config == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const unsigned grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    const unsigned block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};

    return launch(sim_kernel_of(f), grid, block, config->sharedMemBytes, config->hStream,
                  kernelParams, extra);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                       unsigned int gridDimZ, unsigned int blockDimX,
                                       unsigned int blockDimY, unsigned int blockDimZ,
                                       unsigned int sharedMemBytes, CUstream hStream,
                                       void **kernelParams)
{
    const unsigned grid[3] = {gridDimX, gridDimY, gridDimZ};
    const unsigned block[3] = {blockDimX, blockDimY, blockDimZ};

    return launch(sim_kernel_of(f), grid, block, sharedMemBytes, hStream, kernelParams, NULL);
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                         int blockSize, size_t dynamicSMemSize)
{
    if (numBlocks == NULL || sim_kernel_of(func) == NULL || blockSize <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int by_threads = blockSize > 1024 ? 0 : 2048 / ((blockSize + 31) / 32 * 32);
    int by_shared = dynamicSMemSize == 0 ? 32 : (int)(167936 / (dynamicSMemSize + 1024));
    int blocks = by_threads < by_shared ? by_threads : by_shared;
    *numBlocks = blocks < 32 ? blocks : 32;
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
                                                                  int blockSize,
                                                                  size_t dynamicSMemSize,
                                                                  unsigned int flags)
{
    (void)flags;
    return sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, func, blockSize,
                                                           dynamicSMemSize);
}

CUresult sim_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                              CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                              size_t dynamicSMemSize, int blockSizeLimit)
{
    (void)blockSizeToDynamicSMemSize;
    (void)dynamicSMemSize;
    if (minGridSize == NULL || blockSize == NULL || sim_kernel_of(func) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *blockSize = blockSizeLimit > 0 && blockSizeLimit < 1024 ? blockSizeLimit : 1024;
    *minGridSize = 108 * (2048 / *blockSize);
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
                                                     int numBlocks, int blockSize)
{
    if (dynamicSmemSize == NULL || sim_kernel_of(func) == NULL || numBlocks <= 0 ||
        blockSize <= 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *dynamicSmemSize = 167936 / (size_t)numBlocks - 1024;
    return CUDA_SUCCESS;
}

CUresult
sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                              CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                              size_t dynamicSMemSize, int blockSizeLimit,
                                              unsigned int flags)
{
    (void)flags;
    return sim_cuOccupancyMaxPotentialBlockSize(
        minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit);
}
