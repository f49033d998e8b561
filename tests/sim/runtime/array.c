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

cudaError_t rt_array_get_description(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *description)
{
    RT_CALL(cuArray3DGetDescriptor, description, (CUarray)array);
}

size_t rt_array_element_bytes(cudaArray_const_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR description = {0};

    if (array == NULL || rt_array_get_description(array, &description) != cudaSuccess) {
        return 1;
    }
    return (size_t)describe(&description).x / 8 * description.NumChannels;
}

CUDA_ARRAY3D_DESCRIPTOR rt_array_description(const struct cudaChannelFormatDesc *desc,
                                             struct cudaExtent extent, unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width,
                                     .Height = extent.height,
                                     .Depth = extent.depth,
                                     .Format = format_of(desc),
                                     .NumChannels = channels_of(desc),
                                     .Flags = flags};
}

cudaError_t rt_cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                 struct cudaExtent extent, unsigned int flags)
{
    if (array == NULL || desc == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_ARRAY3D_DESCRIPTOR description = rt_array_description(desc, extent, flags);
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
    cudaError_t result = rt_array_get_description(array, &description);

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
