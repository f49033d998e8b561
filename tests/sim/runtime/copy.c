/* SPDX-License-Identifier: MIT */
/* Copies and sets. The kind of a copy is not looked at: addresses tell where memory lies. */
#include "driver.h"
#include "rt_api.h"
#include "symbol.h"

#include <string.h>

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

void rt_volume_parms(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *p_out)
{
    size_t src_bytes = rt_array_element_bytes((cudaArray_const_t)copy->srcArray);
    size_t dst_bytes = rt_array_element_bytes((cudaArray_const_t)copy->dstArray);
    size_t width_bytes = copy->srcArray != NULL ? src_bytes : dst_bytes;

    memset(p_out, 0, sizeof(*p_out));
    p_out->kind = cudaMemcpyDefault;
    p_out->srcArray = (cudaArray_t)copy->srcArray;
    p_out->srcPos = (struct cudaPos){copy->srcXInBytes / src_bytes, copy->srcY, copy->srcZ};
    p_out->srcPtr = (struct cudaPitchedPtr){(void *)copy->srcDevice, copy->srcPitch,
                                            copy->WidthInBytes, copy->srcHeight};
    p_out->dstArray = (cudaArray_t)copy->dstArray;
    p_out->dstPos = (struct cudaPos){copy->dstXInBytes / dst_bytes, copy->dstY, copy->dstZ};
    p_out->dstPtr = (struct cudaPitchedPtr){(void *)copy->dstDevice, copy->dstPitch,
                                            copy->WidthInBytes, copy->dstHeight};
    p_out->extent = (struct cudaExtent){copy->WidthInBytes / width_bytes, copy->Height,
                                        copy->Depth};
}

CUDA_MEMCPY3D rt_line(void *dst, const void *src, size_t count)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = (CUdeviceptr)src,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = (CUdeviceptr)dst,
                           .WidthInBytes = count,
                           .Height = 1,
                           .Depth = 1};
}

/* The devices are not looked at: addresses tell where memory lies. */
static struct cudaMemcpy3DParms without_devices(const struct cudaMemcpy3DPeerParms *p)
{
    return (struct cudaMemcpy3DParms){.srcArray = p->srcArray,
                                      .srcPos = p->srcPos,
                                      .srcPtr = p->srcPtr,
                                      .dstArray = p->dstArray,
                                      .dstPos = p->dstPos,
                                      .dstPtr = p->dstPtr,
                                      .extent = p->extent,
                                      .kind = cudaMemcpyDefault};
}

cudaError_t rt_cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    struct cudaMemcpy3DParms parms = without_devices(p);
    return rt_cudaMemcpy3D(&parms);
}

cudaError_t rt_cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
    if (p == NULL) {
        return cudaErrorInvalidValue;
    }
    struct cudaMemcpy3DParms parms = without_devices(p);
    return rt_cudaMemcpy3DAsync(&parms, stream);
}

cudaError_t rt_cudaMemcpy3DBatchAsync(size_t numOps, struct cudaMemcpy3DBatchOp *opList,
                                      unsigned long long flags, cudaStream_t stream)
{
    _Static_assert(sizeof(*opList) == sizeof(CUDA_MEMCPY3D_BATCH_OP), "one size");
    RT_CALL(cuMemcpy3DBatchAsync, numOps, (CUDA_MEMCPY3D_BATCH_OP *)opList, flags, stream);
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

/* Rows that no slice ends between are set at once. */
static cudaError_t set_volume(struct cudaPitchedPtr p, int value, struct cudaExtent extent,
                              bool is_async, cudaStream_t stream)
{
    bool is_whole = p.ysize == extent.height;
    size_t rows = is_whole ? extent.height * extent.depth : extent.height;
    cudaError_t result = cudaSuccess;

    for (size_t z = 0; z < (is_whole ? 1 : extent.depth) && result == cudaSuccess; z++) {
        char *slice = (char *)p.ptr + z * p.pitch * p.ysize;
        result = is_async ? rt_cudaMemset2DAsync(slice, p.pitch, value, extent.width, rows, stream)
                          : rt_cudaMemset2D(slice, p.pitch, value, extent.width, rows);
    }
    return result;
}

cudaError_t rt_cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
                            struct cudaExtent extent)
{
    return set_volume(pitchedDevPtr, value, extent, false, NULL);
}

cudaError_t rt_cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value,
                                 struct cudaExtent extent, cudaStream_t stream)
{
    return set_volume(pitchedDevPtr, value, extent, true, stream);
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
