/* SPDX-License-Identifier: MIT */
/* Arrays and the objects that textures and surfaces are read through. */
#include "driver.h"
#include "rt_api.h"

#include <string.h>

/* Formats of one channel: unsigned, signed, float, by bytes. */
static CUarray_format format_of(const struct cudaChannelFormatDesc *desc)
{
    static const CUarray_format formats[3][5] = {
        {0, CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, 0, CU_AD_FORMAT_SIGNED_INT32},
        {0, CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, 0,
         CU_AD_FORMAT_UNSIGNED_INT32},
        {0, 0, CU_AD_FORMAT_HALF, 0, CU_AD_FORMAT_FLOAT}};

    return desc->f <= cudaChannelFormatKindFloat && desc->x % 8 == 0 && desc->x >= 8 &&
                   desc->x <= 32
               ? formats[desc->f][desc->x / 8]
               : (CUarray_format)0;
}

static unsigned channels_of(const struct cudaChannelFormatDesc *desc)
{
    return 1u + (desc->y != 0) + (desc->z != 0) + (desc->w != 0);
}

static struct cudaChannelFormatDesc describe(const CUDA_ARRAY3D_DESCRIPTOR *description)
{
    enum cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
    int bits = 32;

    switch (description->Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: bits = 8; break;
    case CU_AD_FORMAT_UNSIGNED_INT16: bits = 16; break;
    case CU_AD_FORMAT_SIGNED_INT8:
        bits = 8;
        kind = cudaChannelFormatKindSigned;
        break;
    case CU_AD_FORMAT_SIGNED_INT16:
        bits = 16;
        kind = cudaChannelFormatKindSigned;
        break;
    case CU_AD_FORMAT_SIGNED_INT32: kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_HALF:
        bits = 16;
        kind = cudaChannelFormatKindFloat;
        break;
    case CU_AD_FORMAT_FLOAT: kind = cudaChannelFormatKindFloat; break;
    default: break;
    }
    return (struct cudaChannelFormatDesc){.x = bits,
                                          .y = description->NumChannels > 1 ? bits : 0,
                                          .z = description->NumChannels > 2 ? bits : 0,
                                          .w = description->NumChannels > 3 ? bits : 0,
                                          .f = kind};
}

static cudaError_t get_description(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *description)
{
    RT_CALL(cuArray3DGetDescriptor, description, (CUarray)array);
}

size_t rt_array_element_bytes(cudaArray_const_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR description = {0};

    if (array == NULL || get_description(array, &description) != cudaSuccess) {
        return 1;
    }
    return (size_t)describe(&description).x / 8 * description.NumChannels;
}

cudaError_t rt_cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                 struct cudaExtent extent, unsigned int flags)
{
    if (array == NULL || desc == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_ARRAY3D_DESCRIPTOR description = {.Width = extent.width,
                                           .Height = extent.height,
                                           .Depth = extent.depth,
                                           .Format = format_of(desc),
                                           .NumChannels = channels_of(desc),
                                           .Flags = flags};
    RT_CALL(cuArray3DCreate, (CUarray *)array, &description);
}

cudaError_t rt_cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                               size_t width, size_t height, unsigned int flags)
{
    struct cudaExtent extent = {width, height, 0};

    return rt_cudaMalloc3DArray(array, desc, extent, flags);
}

cudaError_t rt_cudaFreeArray(cudaArray_t array)
{
    if (array == NULL) {
        return rt_enter();
    }
    RT_CALL(cuArrayDestroy, (CUarray)array);
}

cudaError_t rt_cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
                                unsigned int *flags, cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    cudaError_t result = get_description(array, &description);

    if (result != cudaSuccess) {
        return result;
    }
    if (desc != NULL) {
        *desc = describe(&description);
    }
    if (extent != NULL) {
        *extent = (struct cudaExtent){description.Width, description.Height, description.Depth};
    }
    if (flags != NULL) {
        *flags = description.Flags;
    }
    return cudaSuccess;
}

cudaError_t rt_cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
    return desc == NULL ? cudaErrorInvalidValue
                        : rt_cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)array);
}

/* The array's side of a plane; the other side is filled in by the caller. */
static CUDA_MEMCPY2D to_array(cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch,
                              size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = (CUdeviceptr)src,
                           .srcPitch = pitch,
                           .dstXInBytes = x,
                           .dstY = y,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = (CUarray)dst,
                           .WidthInBytes = width,
                           .Height = height};
}

static CUDA_MEMCPY2D from_array(void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y,
                                size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcXInBytes = x,
                           .srcY = y,
                           .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = (CUarray)src,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = (CUdeviceptr)dst,
                           .dstPitch = pitch,
                           .WidthInBytes = width,
                           .Height = height};
}

cudaError_t rt_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                   size_t spitch, size_t width, size_t height,
                                   enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy = to_array(dst, wOffset, hOffset, src, spitch, width, height);

    (void)kind;
    RT_CALL(cuMemcpy2DUnaligned, &copy);
}

cudaError_t rt_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                        const void *src, size_t spitch, size_t width, size_t height,
                                        enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D copy = to_array(dst, wOffset, hOffset, src, spitch, width, height);

    (void)kind;
    RT_CALL(cuMemcpy2DAsync, &copy, stream);
}

cudaError_t rt_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
                                     size_t wOffset, size_t hOffset, size_t width, size_t height,
                                     enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy = from_array(dst, dpitch, src, wOffset, hOffset, width, height);

    (void)kind;
    RT_CALL(cuMemcpy2DUnaligned, &copy);
}

cudaError_t rt_cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
                                          size_t wOffset, size_t hOffset, size_t width,
                                          size_t height, enum cudaMemcpyKind kind,
                                          cudaStream_t stream)
{
    CUDA_MEMCPY2D copy = from_array(dst, dpitch, src, wOffset, hOffset, width, height);

    (void)kind;
    RT_CALL(cuMemcpy2DAsync, &copy, stream);
}

/* So many bytes are whole rows, or a part of one. */
static size_t row_bytes(cudaArray_const_t array, size_t count)
{
    CUDA_ARRAY3D_DESCRIPTOR description = {0};

    if (get_description(array, &description) != cudaSuccess) {
        return count;
    }
    size_t row = description.Width * rt_array_element_bytes(array);
    return row != 0 && count % row == 0 ? row : count;
}

cudaError_t rt_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                 size_t count, enum cudaMemcpyKind kind)
{
    size_t row = row_bytes(dst, count);

    if (count == 0) {
        return rt_enter();
    }
    return rt_cudaMemcpy2DToArray(dst, wOffset, hOffset, src, row, row, count / row, kind);
}

cudaError_t rt_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                   size_t count, enum cudaMemcpyKind kind)
{
    size_t row = row_bytes(src, count);

    if (count == 0) {
        return rt_enter();
    }
    return rt_cudaMemcpy2DFromArray(dst, row, src, wOffset, hOffset, row, count / row, kind);
}

static bool convert(const struct cudaResourceDesc *from, CUDA_RESOURCE_DESC *to)
{
    memset(to, 0, sizeof(*to));
    to->resType = (CUresourcetype)from->resType;
    switch (from->resType) {
    case cudaResourceTypeArray: to->res.array.hArray = (CUarray)from->res.array.array; return true;
    case cudaResourceTypeLinear:
        to->res.linear.devPtr = (CUdeviceptr)from->res.linear.devPtr;
        to->res.linear.format = format_of(&from->res.linear.desc);
        to->res.linear.numChannels = channels_of(&from->res.linear.desc);
        to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        return true;
    case cudaResourceTypePitch2D:
        to->res.pitch2D.devPtr = (CUdeviceptr)from->res.pitch2D.devPtr;
        to->res.pitch2D.format = format_of(&from->res.pitch2D.desc);
        to->res.pitch2D.numChannels = channels_of(&from->res.pitch2D.desc);
        to->res.pitch2D.width = from->res.pitch2D.width;
        to->res.pitch2D.height = from->res.pitch2D.height;
        to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
        return true;
    default: return false;
    }
}

cudaError_t rt_cudaCreateTextureObject(cudaTextureObject_t *pTexObject,
                                       const struct cudaResourceDesc *pResDesc,
                                       const struct cudaTextureDesc *pTexDesc,
                                       const struct cudaResourceViewDesc *pResViewDesc)
{
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture = {0};

    (void)pResViewDesc;
    if (pResDesc == NULL || pTexDesc == NULL || !convert(pResDesc, &resource)) {
        return cudaErrorInvalidValue;
    }
    texture.filterMode = (CUfilter_mode)pTexDesc->filterMode;
    for (int i = 0; i < 3; i++) {
        texture.addressMode[i] = (CUaddress_mode)pTexDesc->addressMode[i];
    }
    RT_CALL(cuTexObjectCreate, pTexObject, &resource, &texture, NULL);
}

cudaError_t rt_cudaDestroyTextureObject(cudaTextureObject_t texObject)
{
    RT_CALL(cuTexObjectDestroy, texObject);
}

cudaError_t rt_cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject,
                                       const struct cudaResourceDesc *pResDesc)
{
    CUDA_RESOURCE_DESC resource;

    if (pResDesc == NULL || !convert(pResDesc, &resource)) {
        return cudaErrorInvalidValue;
    }
    RT_CALL(cuSurfObjectCreate, pSurfObject, &resource);
}

cudaError_t rt_cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject)
{
    RT_CALL(cuSurfObjectDestroy, surfObject);
}
