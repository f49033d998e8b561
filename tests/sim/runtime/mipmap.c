/* SPDX-License-Identifier: MIT */
/* Arrays in levels, and what arrays need of memory. */
#include "driver.h"
#include "rt_api.h"

#include <string.h>

cudaError_t rt_cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
                                        const struct cudaChannelFormatDesc *desc,
                                        struct cudaExtent extent, unsigned int numLevels,
                                        unsigned int flags)
{
    if (mipmappedArray == NULL || desc == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_ARRAY3D_DESCRIPTOR description = rt_array_description(desc, extent, flags);
    RT_CALL(cuMipmappedArrayCreate, (CUmipmappedArray *)mipmappedArray, &description, numLevels);
}

cudaError_t rt_cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
    if (mipmappedArray == NULL) {
        return rt_enter();
    }
    RT_CALL(cuMipmappedArrayDestroy, (CUmipmappedArray)mipmappedArray);
}

cudaError_t rt_cudaGetMipmappedArrayLevel(cudaArray_t *levelArray,
                                          cudaMipmappedArray_const_t mipmappedArray,
                                          unsigned int level)
{
    RT_CALL(cuMipmappedArrayGetLevel, (CUarray *)levelArray, (CUmipmappedArray)mipmappedArray,
            level);
}

cudaError_t
rt_cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
                                  cudaArray_t array, int device)
{
    RT_CALL(cuArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements,
            (CUarray)array, device);
}

cudaError_t
rt_cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
                                           cudaMipmappedArray_t mipmap, int device)
{
    _Static_assert(sizeof(*memoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS),
                   "one size");
    RT_CALL(cuMipmappedArrayGetMemoryRequirements,
            (CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements, (CUmipmappedArray)mipmap, device);
}
