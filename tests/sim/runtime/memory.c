/* SPDX-License-Identifier: MIT */
#include "driver.h"
#include "rt_api.h"

#include <string.h>

cudaError_t rt_cudaMalloc(void **devPtr, size_t size)
{
    cudaError_t result;

    if (devPtr == NULL) {
        return cudaErrorInvalidValue;
    }
    if (size == 0) {
        result = rt_enter();
        *devPtr = NULL;
        return result;
    }
    RT_CALL(cuMemAlloc, (CUdeviceptr *)devPtr, size);
}

/* A free of NULL only makes sure that there is a context. */
cudaError_t rt_cudaFree(void *devPtr)
{
    if (devPtr == NULL) {
        return rt_enter();
    }
    RT_CALL(cuMemFree, (CUdeviceptr)devPtr);
}

cudaError_t rt_cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    if (devPtr == NULL || pitch == NULL) {
        return cudaErrorInvalidValue;
    }
    if (width == 0 || height == 0) {
        *devPtr = NULL;
        *pitch = 0;
        return rt_enter();
    }
    RT_CALL(cuMemAllocPitch, (CUdeviceptr *)devPtr, pitch, width, height, 4);
}

cudaError_t rt_cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
    if (pitchedDevPtr == NULL) {
        return cudaErrorInvalidValue;
    }
    pitchedDevPtr->xsize = extent.width;
    pitchedDevPtr->ysize = extent.height;
    return rt_cudaMallocPitch(&pitchedDevPtr->ptr, &pitchedDevPtr->pitch, extent.width,
                              extent.height * extent.depth);
}

cudaError_t rt_cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    RT_CALL(cuMemAllocManaged, (CUdeviceptr *)devPtr, size, flags);
}

cudaError_t rt_cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    if (devPtr != NULL && size == 0) {
        *devPtr = NULL;
        return rt_enter();
    }
    RT_CALL(cuMemAllocAsync, (CUdeviceptr *)devPtr, size, hStream);
}

cudaError_t rt_cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool,
                                       cudaStream_t stream)
{
    RT_CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *)ptr, size, memPool, stream);
}

cudaError_t rt_cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    if (devPtr == NULL) {
        return rt_enter();
    }
    RT_CALL(cuMemFreeAsync, (CUdeviceptr)devPtr, hStream);
}

cudaError_t rt_cudaMemGetInfo(size_t *free_out, size_t *total)
{
    RT_CALL(cuMemGetInfo, free_out, total);
}

cudaError_t rt_cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    if (pHost != NULL && size == 0) {
        *pHost = NULL;
        return rt_enter();
    }
    RT_CALL(cuMemHostAlloc, pHost, size, flags);
}

cudaError_t rt_cudaMallocHost(void **ptr, size_t size)
{
    return rt_cudaHostAlloc(ptr, size, 0);
}

cudaError_t rt_cudaFreeHost(void *ptr)
{
    if (ptr == NULL) {
        return rt_enter();
    }
    RT_CALL(cuMemFreeHost, ptr);
}

cudaError_t rt_cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    RT_CALL(cuMemHostRegister, ptr, size, flags);
}

cudaError_t rt_cudaHostUnregister(void *ptr)
{
    RT_CALL(cuMemHostUnregister, ptr);
}

cudaError_t rt_cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
    RT_CALL(cuMemHostGetDevicePointer, (CUdeviceptr *)pDevice, pHost, flags);
}

cudaError_t rt_cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
    RT_CALL(cuMemHostGetFlags, pFlags, pHost);
}

cudaError_t rt_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    unsigned type = 0;
    int is_managed = 0;
    int device = -2;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[] = {&type, &is_managed, &device, &device_pointer, &host_pointer};
    cudaError_t result = rt_enter();

    if (result == cudaSuccess && attributes == NULL) {
        result = cudaErrorInvalidValue;
    }
    if (result == cudaSuccess) {
        result = (cudaError_t)rt_driver()->cuPointerGetAttributes(5, wanted, values,
                                                                  (CUdeviceptr)ptr);
    }
    if (result != cudaSuccess) {
        return result;
    }
    memset(attributes, 0, sizeof(*attributes));
    attributes->device = device;
    attributes->devicePointer = (void *)device_pointer;
    attributes->hostPointer = host_pointer;
    attributes->type = device == -2                 ? cudaMemoryTypeUnregistered
                       : is_managed                 ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeDevice;
    if (device == -2) {
        attributes->hostPointer = (void *)ptr;
    }
    return cudaSuccess;
}

cudaError_t rt_cudaMemPrefetchAsync(const void *devPtr, size_t count,
                                    struct cudaMemLocation location, unsigned int flags,
                                    cudaStream_t stream)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};

    RT_CALL(cuMemPrefetchAsync, (CUdeviceptr)devPtr, count, where, flags, stream);
}

cudaError_t rt_cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                             struct cudaMemLocation location)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};

    RT_CALL(cuMemAdvise, (CUdeviceptr)devPtr, count, (CUmem_advise)advice, where);
}

cudaError_t rt_cudaStreamAttachMemAsync(cudaStream_t stream, void *devPtr, size_t length,
                                        unsigned int flags)
{
    RT_CALL(cuStreamAttachMemAsync, stream, (CUdeviceptr)devPtr, length, flags);
}

cudaError_t rt_cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
    RT_CALL(cuIpcGetMemHandle, (CUipcMemHandle *)handle, (CUdeviceptr)devPtr);
}

cudaError_t rt_cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle driver_handle;

    memcpy(&driver_handle, &handle, sizeof(driver_handle));
    RT_CALL(cuIpcOpenMemHandle, (CUdeviceptr *)devPtr, driver_handle, flags);
}

cudaError_t rt_cudaIpcCloseMemHandle(void *devPtr)
{
    RT_CALL(cuIpcCloseMemHandle, (CUdeviceptr)devPtr);
}

cudaError_t rt_cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    RT_CALL(cuIpcGetEventHandle, (CUipcEventHandle *)handle, event);
}

cudaError_t rt_cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle driver_handle;

    memcpy(&driver_handle, &handle, sizeof(driver_handle));
    RT_CALL(cuIpcOpenEventHandle, event, driver_handle);
}
