/* SPDX-License-Identifier: MIT */
#include "driver.h"
#include "rt_api.h"

cudaError_t rt_cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
    RT_CALL(cuDeviceGetDefaultMemPool, memPool, device);
}

cudaError_t rt_cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
    RT_CALL(cuDeviceGetMemPool, memPool, device);
}

cudaError_t rt_cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
    RT_CALL(cuDeviceSetMemPool, device, memPool);
}

cudaError_t rt_cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
    CUmemPoolProps props = {0};

    if (poolProps == NULL) {
        return cudaErrorInvalidValue;
    }
    props.allocType = (CUmemAllocationType)poolProps->allocType;
    props.handleTypes = (CUmemAllocationHandleType)poolProps->handleTypes;
    props.location.type = (CUmemLocationType)poolProps->location.type;
    props.location.id = poolProps->location.id;
    props.maxSize = poolProps->maxSize;
    RT_CALL(cuMemPoolCreate, memPool, &props);
}

cudaError_t rt_cudaMemPoolDestroy(cudaMemPool_t memPool)
{
    RT_CALL(cuMemPoolDestroy, memPool);
}

cudaError_t rt_cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr,
                                       void *value)
{
    RT_CALL(cuMemPoolSetAttribute, memPool, (CUmemPool_attribute)attr, value);
}

cudaError_t rt_cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr,
                                       void *value)
{
    RT_CALL(cuMemPoolGetAttribute, memPool, (CUmemPool_attribute)attr, value);
}

cudaError_t rt_cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList,
                                    size_t count)
{
    RT_CALL(cuMemPoolSetAccess, memPool, (const CUmemAccessDesc *)descList, count);
}

cudaError_t rt_cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t memPool,
                                    struct cudaMemLocation *location)
{
    RT_CALL(cuMemPoolGetAccess, (CUmemAccess_flags *)flags, memPool, (CUmemLocation *)location);
}

cudaError_t rt_cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
    RT_CALL(cuMemPoolTrimTo, memPool, minBytesToKeep);
}

cudaError_t rt_cudaMemPoolExportToShareableHandle(void *shareableHandle, cudaMemPool_t memPool,
                                                  enum cudaMemAllocationHandleType handleType,
                                                  unsigned int flags)
{
    RT_CALL(cuMemPoolExportToShareableHandle, shareableHandle, memPool,
            (CUmemAllocationHandleType)handleType, flags);
}

cudaError_t rt_cudaMemPoolImportFromShareableHandle(cudaMemPool_t *memPool, void *shareableHandle,
                                                    enum cudaMemAllocationHandleType handleType,
                                                    unsigned int flags)
{
    RT_CALL(cuMemPoolImportFromShareableHandle, memPool, shareableHandle,
            (CUmemAllocationHandleType)handleType, flags);
}

cudaError_t rt_cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *exportData, void *ptr)
{
    RT_CALL(cuMemPoolExportPointer, (CUmemPoolPtrExportData *)exportData, (CUdeviceptr)ptr);
}

cudaError_t rt_cudaMemPoolImportPointer(void **ptr, cudaMemPool_t memPool,
                                        struct cudaMemPoolPtrExportData *exportData)
{
    RT_CALL(cuMemPoolImportPointer, (CUdeviceptr *)ptr, memPool,
            (CUmemPoolPtrExportData *)exportData);
}

/* The shapes of a location are the same. */
cudaError_t rt_cudaMemGetDefaultMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                                        enum cudaMemAllocationType type)
{
    RT_CALL(cuMemGetDefaultMemPool, memPool, (CUmemLocation *)location, (CUmemAllocationType)type);
}

cudaError_t rt_cudaMemGetMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                                 enum cudaMemAllocationType type)
{
    RT_CALL(cuMemGetMemPool, memPool, (CUmemLocation *)location, (CUmemAllocationType)type);
}

cudaError_t rt_cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
                                 cudaMemPool_t memPool)
{
    RT_CALL(cuMemSetMemPool, (CUmemLocation *)location, (CUmemAllocationType)type, memPool);
}
