/* SPDX-License-Identifier: MIT */
/* Managed memory: advice, prefetches, discards. */
#include "driver.h"
#include "rt_api.h"

cudaError_t rt_cudaMemPrefetchBatchAsync(void **dptrs, size_t *sizes, size_t count,
                                         struct cudaMemLocation *prefetchLocs,
                                         size_t *prefetchLocIdxs, size_t numPrefetchLocs,
                                         unsigned long long flags, cudaStream_t stream)
{
    RT_CALL(cuMemPrefetchBatchAsync, (CUdeviceptr *)dptrs, sizes, count,
            (CUmemLocation *)prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, stream);
}

cudaError_t rt_cudaMemDiscardBatchAsync(void **dptrs, size_t *sizes, size_t count,
                                        unsigned long long flags, cudaStream_t stream)
{
    RT_CALL(cuMemDiscardBatchAsync, (CUdeviceptr *)dptrs, sizes, count, flags, stream);
}

cudaError_t rt_cudaMemDiscardAndPrefetchBatchAsync(void **dptrs, size_t *sizes, size_t count,
                                                   struct cudaMemLocation *prefetchLocs,
                                                   size_t *prefetchLocIdxs, size_t numPrefetchLocs,
                                                   unsigned long long flags, cudaStream_t stream)
{
    RT_CALL(cuMemDiscardAndPrefetchBatchAsync, (CUdeviceptr *)dptrs, sizes, count,
            (CUmemLocation *)prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, stream);
}

cudaError_t rt_cudaMemRangeGetAttribute(void *data, size_t dataSize,
                                        enum cudaMemRangeAttribute attribute, const void *devPtr,
                                        size_t count)
{
    RT_CALL(cuMemRangeGetAttribute, data, dataSize, (CUmem_range_attribute)attribute,
            (CUdeviceptr)devPtr, count);
}

cudaError_t rt_cudaMemRangeGetAttributes(void **data, size_t *dataSizes,
                                         enum cudaMemRangeAttribute *attributes,
                                         size_t numAttributes, const void *devPtr, size_t count)
{
    RT_CALL(cuMemRangeGetAttributes, data, dataSizes, (CUmem_range_attribute *)attributes,
            numAttributes, (CUdeviceptr)devPtr, count);
}
