/* SPDX-License-Identifier: MIT */
#include "array.h"

#include "access.h"
#include "capture.h"
#include "context.h"
#include "sim_api.h"
#include "space.h"
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#define ARRAY_MAGIC 0x41525259u

/* Arrays, and texture and surface objects, are never freed: a stale handle can be told. The block
 * of an array whose context ended is dead. */
static struct CUarray_st *newest;

struct object {
    unsigned long long id;
    bool is_surface;
    bool is_live;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    struct object *older;
};

static struct object *newest_object;

struct CUarray_st *sim_array_of(CUarray handle)
{
    return handle != NULL && handle->magic == ARRAY_MAGIC && !handle->block->is_dead ? handle
                                                                                     : NULL;
}

static size_t channel_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
    }
}

static size_t at_least_one(size_t value)
{
    return value != 0 ? value : 1;
}

CUresult sim_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    struct CUctx_st *context;
    uint64_t address;
    size_t rounded;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_unsafe();
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    size_t bytes = pAllocateArray != NULL ? channel_bytes(pAllocateArray->Format) : 0;
    if (pHandle == NULL || bytes == 0 || pAllocateArray->Width == 0 ||
        (pAllocateArray->NumChannels != 1 && pAllocateArray->NumChannels != 2 &&
         pAllocateArray->NumChannels != 4) ||
        (pAllocateArray->Depth != 0 && pAllocateArray->Height == 0 &&
         (pAllocateArray->Flags & CUDA_ARRAY3D_LAYERED) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUarray_st array = {.magic = ARRAY_MAGIC, .description = *pAllocateArray};
    array.element_bytes = bytes * pAllocateArray->NumChannels;
    array.row_bytes = array.element_bytes * pAllocateArray->Width;
    array.height = at_least_one(pAllocateArray->Height);
    array.depth = at_least_one(pAllocateArray->Depth);
    size_t size = array.row_bytes * array.height * array.depth;
    if (!sim_space_take(context->device, size, &address, &rounded)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    array.block = sim_block_add(address, size, SIM_BLOCK_ARRAY);
    array.block->device = context->device;
    array.block->context = context;
    array.block->rounded_bytes = rounded;
    array.block->payload = sim_space_payload(address);
    sim_block_hold(array.block);
    *pHandle = malloc(sizeof(array));
    array.older = newest;
    newest = *pHandle;
    **pHandle = array;
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    if (pAllocateArray == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_ARRAY3D_DESCRIPTOR description = {.Width = pAllocateArray->Width,
                                           .Height = pAllocateArray->Height,
                                           .Format = pAllocateArray->Format,
                                           .NumChannels = pAllocateArray->NumChannels};
    return sim_cuArray3DCreate_v2(pHandle, &description);
}

void sim_array_end(struct CUarray_st *array)
{
    struct sim_block *block = array->block;

    sim_timeline_bury_now(block->node.key, block->node.end);
    sim_capture_refuse_end(block);
    block->is_freeing = true;
    sim_wait_context(block->context);
    sim_access_forget(block, true);
    sim_space_give(block->device, block->node.key, block->rounded_bytes);
    sim_block_remove(block);
}

CUresult sim_cuArrayDestroy(CUarray hArray)
{
    struct CUctx_st *context;
    struct CUarray_st *array = sim_array_of(hArray);
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_unsafe();
    }
    if (result != CUDA_SUCCESS || array == NULL || array->is_level) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
    }
    sim_array_end(array);
    return context->sticky;
}

CUresult sim_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                          CUarray array, CUdevice device)
{
    if (memoryRequirements == NULL || sim_array_of(array) == NULL ||
        sim_check_device(device) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *memoryRequirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = array->block->rounded_bytes,
                                                           .alignment = SIM_UNIT_BYTES};
    return CUDA_SUCCESS;
}

CUresult sim_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    if (pArrayDescriptor == NULL || sim_array_of(hArray) == NULL) {
        return pArrayDescriptor == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    *pArrayDescriptor = hArray->description;
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR description;
    CUresult result = sim_cuArray3DGetDescriptor_v2(&description, hArray);

    if (result == CUDA_SUCCESS && pArrayDescriptor == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = description.Width,
                                                    .Height = description.Height,
                                                    .Format = description.Format,
                                                    .NumChannels = description.NumChannels};
    }
    return result;
}

static CUresult create_object(unsigned long long *id_out, const CUDA_RESOURCE_DESC *resource,
                              const CUDA_TEXTURE_DESC *texture, bool is_surface)
{
    static unsigned long long next_id = 1;
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS || id_out == NULL || resource == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (resource->resType == CU_RESOURCE_TYPE_ARRAY
            ? sim_array_of(resource->res.array.hArray) == NULL
            : is_surface) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct object *object = calloc(1, sizeof(*object));
    object->id = next_id++;
    object->is_surface = is_surface;
    object->is_live = true;
    object->resource = *resource;
    if (texture != NULL) {
        object->texture = *texture;
    }
    object->older = newest_object;
    newest_object = object;
    *id_out = object->id;
    return CUDA_SUCCESS;
}

static struct object *find_object(unsigned long long id, bool is_surface)
{
    struct object *object = newest_object;

    while (object != NULL && object->id != id) {
        object = object->older;
    }
    return object != NULL && object->is_live && object->is_surface == is_surface ? object : NULL;
}

static CUresult destroy_object(unsigned long long id, bool is_surface)
{
    struct object *object = find_object(id, is_surface);

    if (object == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    object->is_live = false;
    return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                               const CUDA_TEXTURE_DESC *pTexDesc,
                               const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    (void)pResViewDesc;
    return create_object(pTexObject, pResDesc, pTexDesc, false);
}

CUresult sim_cuTexObjectDestroy(CUtexObject texObject)
{
    return destroy_object(texObject, false);
}

CUresult sim_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    struct object *object = find_object(texObject, false);

    if (pResDesc == NULL || object == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pResDesc = object->resource;
    return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    struct object *object = find_object(texObject, false);

    if (pTexDesc == NULL || object == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pTexDesc = object->texture;
    return CUDA_SUCCESS;
}

CUresult sim_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    return create_object(pSurfObject, pResDesc, NULL, true);
}

CUresult sim_cuSurfObjectDestroy(CUsurfObject surfObject)
{
    return destroy_object(surfObject, true);
}

CUresult sim_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
    struct object *object = find_object(surfObject, true);

    if (pResDesc == NULL || object == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pResDesc = object->resource;
    return CUDA_SUCCESS;
}

/* A line between an array and other memory; the array's side is one row of what it holds. */
static CUDA_MEMCPY3D line(CUarray dst_array, uint64_t dst, CUarray src_array, uint64_t src,
                          size_t bytes)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = bytes, .Height = 1, .Depth = 1};

    copy.dstMemoryType = dst_array != NULL ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
    copy.dstArray = dst_array;
    copy.dstDevice = dst_array != NULL ? 0 : dst;
    copy.dstXInBytes = dst_array != NULL ? dst : 0;
    copy.srcMemoryType = src_array != NULL ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
    copy.srcArray = src_array;
    copy.srcDevice = src_array != NULL ? 0 : src;
    copy.srcXInBytes = src_array != NULL ? src : 0;
    return copy;
}

CUresult sim_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                             size_t ByteCount)
{
    CUDA_MEMCPY3D copy = line(dstArray, dstOffset, NULL, (uint64_t)srcHost, ByteCount);

    return sim_cuMemcpy3D_v2(&copy);
}

CUresult sim_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    CUDA_MEMCPY3D copy = line(NULL, (uint64_t)dstHost, srcArray, srcOffset, ByteCount);

    return sim_cuMemcpy3D_v2(&copy);
}

CUresult sim_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice,
                             size_t ByteCount)
{
    CUDA_MEMCPY3D copy = line(dstArray, dstOffset, NULL, srcDevice, ByteCount);

    return sim_cuMemcpy3D_v2(&copy);
}

CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset,
                             size_t ByteCount)
{
    CUDA_MEMCPY3D copy = line(NULL, dstDevice, srcArray, srcOffset, ByteCount);

    return sim_cuMemcpy3D_v2(&copy);
}

CUresult sim_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                             size_t ByteCount)
{
    CUDA_MEMCPY3D copy = line(dstArray, dstOffset, srcArray, srcOffset, ByteCount);

    return sim_cuMemcpy3D_v2(&copy);
}

CUresult sim_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost,
                                  size_t ByteCount, CUstream hStream)
{
    CUDA_MEMCPY3D copy = line(dstArray, dstOffset, NULL, (uint64_t)srcHost, ByteCount);

    return sim_cuMemcpy3DAsync_v2(&copy, hStream);
}

CUresult sim_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset,
                                  size_t ByteCount, CUstream hStream)
{
    CUDA_MEMCPY3D copy = line(NULL, (uint64_t)dstHost, srcArray, srcOffset, ByteCount);

    return sim_cuMemcpy3DAsync_v2(&copy, hStream);
}
