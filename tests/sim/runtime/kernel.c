/* SPDX-License-Identifier: MIT */
#include "driver.h"
#include "rt_api.h"
#include "symbol.h"

#include <string.h>

/* Launch shapes between __cudaPushCallConfiguration and __cudaPopCallConfiguration. */
struct configuration {
    dim3 grid;
    dim3 block;
    size_t shared_bytes;
    cudaStream_t stream;
};

#define MAX_NESTED 8

static _Thread_local struct configuration configurations[MAX_NESTED];
static _Thread_local unsigned nested;

unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem,
                                       void *stream);

RT_EXPORT unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                               struct CUstream_st *stream)
{
    if (nested == MAX_NESTED) {
        return 1;
    }
    configurations[nested++] = (struct configuration){gridDim, blockDim, sharedMem, stream};
    return 0;
}

RT_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem,
                                                 void *stream)
{
    if (nested == 0) {
        return cudaErrorMissingConfiguration;
    }
    const struct configuration *top = &configurations[--nested];
    *gridDim = top->grid;
    *blockDim = top->block;
    *sharedMem = top->shared_bytes;
    *(cudaStream_t *)stream = top->stream;
    return cudaSuccess;
}

/* The driver calls a bad launch shape an invalid value. */
static bool is_shape_bad(dim3 grid, dim3 block)
{
    return grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 ||
           block.z == 0 || grid.y > 65535 || grid.z > 65535 || block.z > 64 ||
           (unsigned long long)block.x * block.y * block.z > 1024;
}

cudaError_t rt___cudaGetKernel(cudaKernel_t *kernel, const void *entryFuncAddr)
{
    return rt_symbol_kernel(entryFuncAddr, kernel);
}

cudaError_t rt_cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    return rt_symbol_kernel(entryFuncAddr, kernelPtr);
}

cudaError_t rt_cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
    return rt_symbol_kernel(symbolPtr, (CUkernel *)functionPtr);
}

cudaError_t rt___cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
                                  size_t sharedMem, cudaStream_t stream)
{
    if (is_shape_bad(gridDim, blockDim)) {
        return cudaErrorInvalidConfiguration;
    }
    if (kernel == NULL) {
        return cudaErrorInvalidDeviceFunction;
    }
    RT_CALL(cuLaunchKernel, (CUfunction)kernel, gridDim.x, gridDim.y, gridDim.z, blockDim.x,
            blockDim.y, blockDim.z, (unsigned)sharedMem, stream, args, NULL);
}

cudaError_t rt_cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                                size_t sharedMem, cudaStream_t stream)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    return result == cudaSuccess
               ? rt___cudaLaunchKernel(kernel, gridDim, blockDim, args, sharedMem, stream)
               : result;
}

cudaError_t rt_cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
                                           void **args, size_t sharedMem, cudaStream_t stream)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    if (result != cudaSuccess || is_shape_bad(gridDim, blockDim)) {
        return result != cudaSuccess ? result : cudaErrorInvalidConfiguration;
    }
    RT_CALL(cuLaunchCooperativeKernel, (CUfunction)kernel, gridDim.x, gridDim.y, gridDim.z,
            blockDim.x, blockDim.y, blockDim.z, (unsigned)sharedMem, stream, args);
}

cudaError_t rt_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    if (result != cudaSuccess || config == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    if (is_shape_bad(config->gridDim, config->blockDim)) {
        return cudaErrorInvalidConfiguration;
    }
    CUlaunchConfig launch = {.gridDimX = config->gridDim.x,
                             .gridDimY = config->gridDim.y,
                             .gridDimZ = config->gridDim.z,
                             .blockDimX = config->blockDim.x,
                             .blockDimY = config->blockDim.y,
                             .blockDimZ = config->blockDim.z,
                             .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
                             .hStream = config->stream,
                             .attrs = (CUlaunchAttribute *)config->attrs,
                             .numAttrs = config->numAttrs};
    RT_CALL(cuLaunchKernelEx, &launch, (CUfunction)kernel, args, NULL);
}

static int attribute(CUkernel kernel, CUfunction_attribute which)
{
    int value = 0;

    rt_driver()->cuFuncGetAttribute(&value, which, (CUfunction)kernel);
    return value;
}

cudaError_t rt_cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    if (result != cudaSuccess || attr == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    memset(attr, 0, sizeof(*attr));
    attr->sharedSizeBytes = (size_t)attribute(kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attr->constSizeBytes = (size_t)attribute(kernel, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    attr->localSizeBytes = (size_t)attribute(kernel, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attr->maxThreadsPerBlock = attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attr->numRegs = attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS);
    attr->ptxVersion = attribute(kernel, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attr->binaryVersion = attribute(kernel, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attr->maxDynamicSharedSizeBytes = attribute(kernel,
                                                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attr->preferredShmemCarveout = attribute(kernel,
                                             CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return cudaSuccess;
}

cudaError_t rt_cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    return result != cudaSuccess ? result
                                 : (cudaError_t)rt_driver()->cuFuncSetAttribute(
                                       (CUfunction)kernel, (CUfunction_attribute)attr, value);
}

cudaError_t rt_cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
    CUkernel kernel;

    (void)cacheConfig;
    return rt_symbol_kernel(func, &kernel);
}

cudaError_t rt_cudaFuncGetName(const char **name, const void *func)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    if (result != cudaSuccess || rt_driver()->cuKernelGetName == NULL) {
        return result != cudaSuccess ? result : cudaErrorCallRequiresNewerDriver;
    }
    return (cudaError_t)rt_driver()->cuKernelGetName(name, kernel);
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    return result != cudaSuccess
               ? result
               : (cudaError_t)rt_driver()->cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                     numBlocks, (CUfunction)kernel, blockSize, dynamicSMemSize, flags);
}

cudaError_t rt_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func,
                                                             int blockSize, size_t dynamicSMemSize)
{
    return rt_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                     dynamicSMemSize, 0);
}

cudaError_t rt_cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, const void *func,
                                                         int numBlocks, int blockSize)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    return result != cudaSuccess
               ? result
               : (cudaError_t)rt_driver()->cuOccupancyAvailableDynamicSMemPerBlock(
                     dynamicSmemSize, (CUfunction)kernel, numBlocks, blockSize);
}

cudaError_t rt_cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset,
                                    size_t *paramSize)
{
    CUkernel kernel;
    cudaError_t result = rt_symbol_kernel(func, &kernel);

    if (result != cudaSuccess) {
        return result;
    }
    RT_CALL(cuKernelGetParamInfo, kernel, paramIndex, paramOffset, paramSize);
}

cudaError_t rt_cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
    CUkernel kernel;

    (void)config;
    return rt_symbol_kernel(func, &kernel);
}
