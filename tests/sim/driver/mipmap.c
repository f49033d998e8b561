/* SPDX-License-Identifier: MIT */
/* Mipmapped arrays: an array for each level, each side half as long as in the level before. */
#include "array.h"
#include "capture.h"
#include "context.h"
#include "defect.h"
#include "sim_api.h"

#include <stdlib.h>

#define MIPMAP_MAGIC 0x4d49504du
#define MAX_LEVELS   32

/* Never freed, so a stale handle can be told. */
struct CUmipmappedArray_st {
    unsigned magic;
    unsigned level_count;
    CUarray levels[MAX_LEVELS];
    struct CUmipmappedArray_st *older;
};

static struct CUmipmappedArray_st *newest;

static size_t half(size_t size)
{
    return size > 1 ? size / 2 : size;
}

/* The number of times the longest side can be halved, and one. */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    bool is_layered = (shape->Flags & CUDA_ARRAY3D_LAYERED) != 0;
    size_t longest = shape->Width > shape->Height ? shape->Width : shape->Height;
    unsigned count = 1;

    if (!is_layered && shape->Depth > longest) {
        longest = shape->Depth;
    }
    while (longest > 1) {
        longest /= 2;
        count++;
    }
    return count;
}

static void end_levels(struct CUmipmappedArray_st *mipmap)
{
    for (unsigned i = 0; i < mipmap->level_count; i++) {
        if (sim_array_of(mipmap->levels[i]) != NULL) {
            sim_array_end(mipmap->levels[i]);
        }
    }
}

CUresult sim_cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
                                    const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                    unsigned int numMipmapLevels)
{
    CUresult result = CUDA_SUCCESS;

    if (pHandle == NULL || pMipmappedArrayDesc == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_ARRAY3D_DESCRIPTOR shape = *pMipmappedArrayDesc;
    unsigned most = most_levels(&shape);
    unsigned wanted = numMipmapLevels == 0 ? 1 : numMipmapLevels > most ? most : numMipmapLevels;
    struct CUmipmappedArray_st *mipmap = calloc(1, sizeof(*mipmap));
    while (mipmap->level_count < wanted && result == CUDA_SUCCESS) {
        CUarray *level = &mipmap->levels[mipmap->level_count];
        result = sim_cuArray3DCreate_v2(level, &shape);
        if (result == CUDA_SUCCESS) {
            (*level)->is_level = true;
            mipmap->level_count++;
        }
        if (!SIM_DEFECT(levels_do_not_shrink)) {
            shape.Width = half(shape.Width);
            shape.Height = half(shape.Height);
            shape.Depth = (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0 ? shape.Depth
                                                                    : half(shape.Depth);
        }
    }
    if (result != CUDA_SUCCESS) {
        end_levels(mipmap);
        free(mipmap);
        return result;
    }
    mipmap->magic = MIPMAP_MAGIC;
    mipmap->older = newest;
    newest = mipmap;
    *pHandle = mipmap;
    return CUDA_SUCCESS;
}

static struct CUmipmappedArray_st *mipmap_of(CUmipmappedArray handle)
{
    return handle != NULL && handle->magic == MIPMAP_MAGIC ? handle : NULL;
}

CUresult sim_cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
                                      unsigned int level)
{
    struct CUmipmappedArray_st *mipmap = mipmap_of(hMipmappedArray);

    if (mipmap == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (pLevelArray == NULL || level >= mipmap->level_count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pLevelArray = mipmap->levels[level];
    return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    struct CUctx_st *context;
    struct CUmipmappedArray_st *mipmap = mipmap_of(hMipmappedArray);
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_unsafe();
    }
    if (result != CUDA_SUCCESS || mipmap == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
    }
    end_levels(mipmap);
    mipmap->magic = 0;
    return context->sticky;
}

CUresult
sim_cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                          CUmipmappedArray mipmap, CUdevice device)
{
    struct CUmipmappedArray_st *found = mipmap_of(mipmap);
    CUDA_ARRAY_MEMORY_REQUIREMENTS level;
    CUDA_ARRAY_MEMORY_REQUIREMENTS sum = {0};
    CUresult result = found == NULL || memoryRequirements == NULL ? CUDA_ERROR_INVALID_VALUE
                                                                  : CUDA_SUCCESS;

    for (unsigned i = 0; result == CUDA_SUCCESS && i < found->level_count; i++) {
        result = sim_cuArrayGetMemoryRequirements(&level, found->levels[i], device);
        sum.size += level.size;
        sum.alignment = level.alignment;
    }
    if (result == CUDA_SUCCESS) {
        *memoryRequirements = sum;
    }
    return result;
}
