/* SPDX-License-Identifier: MIT */
/* Copies and sets. The kind of a copy is not looked at: addresses tell where memory lies. */
#include "driver.h"
#include "rt_api.h"
#include "symbol.h"

cudaError_t rt_cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    (void)kind;
    RT_CALL(cuMemcpy, (CUdeviceptr)dst, (CUdeviceptr)src, count);
}

cudaError_t rt_cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                               cudaStream_t stream)
{
    (void)kind;
    RT_CALL(cuMemcpyAsync, (CUdeviceptr)dst, (CUdeviceptr)src, count, stream);
}

cudaError_t rt_cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice,
                              size_t count)
{
    (void)dstDevice;
    (void)srcDevice;
    RT_CALL(cuMemcpy, (CUdeviceptr)dst, (CUdeviceptr)src, count);
}

cudaError_t rt_cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
                                   size_t count, cudaStream_t stream)
{
    (void)dstDevice;
    (void)srcDevice;
    RT_CALL(cuMemcpyAsync, (CUdeviceptr)dst, (CUdeviceptr)src, count, stream);
}

static CUDA_MEMCPY2D plane(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                           size_t height)
{
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = (CUdeviceptr)src,
                          .srcPitch = spitch,
                          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .dstDevice = (CUdeviceptr)dst,
                          .dstPitch = dpitch,
                          .WidthInBytes = width,
                          .Height = height};

    return copy;
}

cudaError_t rt_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                            size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy = plane(dst, dpitch, src, spitch, width, height);

    (void)kind;
    if (dpitch < width || spitch < width) {
        return cudaErrorInvalidPitchValue;
    }
    RT_CALL(cuMemcpy2DUnaligned, &copy);
}

cudaError_t rt_cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
                                 size_t width, size_t height, enum cudaMemcpyKind kind,
                                 cudaStream_t stream)
{
    CUDA_MEMCPY2D copy = plane(dst, dpitch, src, spitch, width, height);

    (void)kind;
    if (dpitch < width || spitch < width) {
        return cudaErrorInvalidPitchValue;
    }
    RT_CALL(cuMemcpy2DAsync, &copy, stream);
}

/* Positions are in elements of the array on their side, the extent in those of either array. */
void rt_volume(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy_out)
{
    size_t src_bytes = rt_array_element_bytes(p->srcArray);
    size_t dst_bytes = rt_array_element_bytes(p->dstArray);
    CUDA_MEMCPY3D copy = {
        .srcXInBytes = p->srcPos.x * src_bytes,
        .srcY = p->srcPos.y,
        .srcZ = p->srcPos.z,
        .srcMemoryType = p->srcArray != NULL ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .srcDevice = (CUdeviceptr)p->srcPtr.ptr,
        .srcArray = (CUarray)p->srcArray,
        .srcPitch = p->srcPtr.pitch,
        .srcHeight = p->srcPtr.ysize,
        .dstXInBytes = p->dstPos.x * dst_bytes,
        .dstY = p->dstPos.y,
        .dstZ = p->dstPos.z,
        .dstMemoryType = p->dstArray != NULL ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .dstDevice = (CUdeviceptr)p->dstPtr.ptr,
        .dstArray = (CUarray)p->dstArray,
        .dstPitch = p->dstPtr.pitch,
        .dstHeight = p->dstPtr.ysize,
        .WidthInBytes = p->extent.width * (p->srcArray != NULL ? src_bytes : dst_bytes),
        .Height = p->extent.height,
        .Depth = p->extent.depth};

    *copy_out = copy;
}

cudaError_t rt_cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
    CUDA_MEMCPY3D copy;

    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    rt_volume(p, &copy);
    RT_CALL(cuMemcpy3D, &copy);
}

cudaError_t rt_cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    CUDA_MEMCPY3D copy;

    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    rt_volume(p, &copy);
    RT_CALL(cuMemcpy3DAsync, &copy, stream);
}

cudaError_t rt_cudaMemset(void *devPtr, int value, size_t count)
{
    RT_CALL(cuMemsetD8, (CUdeviceptr)devPtr, (unsigned char)value, count);
}

cudaError_t rt_cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    RT_CALL(cuMemsetD8Async, (CUdeviceptr)devPtr, (unsigned char)value, count, stream);
}

cudaError_t rt_cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
    RT_CALL(cuMemsetD2D8, (CUdeviceptr)devPtr, pitch, (unsigned char)value, width, height);
}

cudaError_t rt_cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                                 cudaStream_t stream)
{
    RT_CALL(cuMemsetD2D8Async, (CUdeviceptr)devPtr, pitch, (unsigned char)value, width, height,
            stream);
}

cudaError_t rt_cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
                            struct cudaExtent extent)
{
    if (pitchedDevPtr.ysize != extent.height && extent.depth > 1) {
        return cudaErrorNotSupported;
    }
    return rt_cudaMemset2D(pitchedDevPtr.ptr, pitchedDevPtr.pitch, value, extent.width,
                           extent.height * extent.depth);
}

cudaError_t rt_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
                                  enum cudaMemcpyKind kind)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess ? rt_cudaMemcpy(address, src, count, kind) : result;
}

cudaError_t rt_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess ? rt_cudaMemcpy(dst, address, count, kind) : result;
}

cudaError_t rt_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
                                       size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess ? rt_cudaMemcpyAsync(address, src, count, kind, stream) : result;
}

cudaError_t rt_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
                                         enum cudaMemcpyKind kind, cudaStream_t stream)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess ? rt_cudaMemcpyAsync(dst, address, count, kind, stream) : result;
}
