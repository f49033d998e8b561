/* SPDX-License-Identifier: MIT */
/* What a pointer is. */
#include "block.h"
#include "context.h"
#include "pool.h"
#include "sim_api.h"

#include <string.h>

static CUresult memory_type(const struct sim_block *block, unsigned *type_out)
{
    if (block == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type_out = sim_block_is_on_device(block)      ? CU_MEMORYTYPE_DEVICE
                : block->kind == SIM_BLOCK_MANAGED ? CU_MEMORYTYPE_UNIFIED
                                                   : CU_MEMORYTYPE_HOST;
    if (*type_out == CU_MEMORYTYPE_UNIFIED) {
        *type_out = CU_MEMORYTYPE_DEVICE;
    }
    return CUDA_SUCCESS;
}

static CUresult mapped_pool(const struct sim_block *block, CUmemoryPool *pool_out)
{
    *pool_out = block->kind == SIM_BLOCK_POOL ? block->pool : NULL;
    return CUDA_SUCCESS;
}

static CUresult flag(void *data, bool value)
{
    *(int *)data = value;
    return CUDA_SUCCESS;
}

static CUresult host_pointer(const struct sim_block *block, CUdeviceptr ptr, void **pointer_out)
{
    if (sim_block_is_on_device(block)) {
        *pointer_out = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pointer_out = (void *)ptr;
    return CUDA_SUCCESS;
}

static CUresult get(void *data, CUpointer_attribute attribute, const struct sim_block *block,
                    CUdeviceptr ptr)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = block->context; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return memory_type(block, data);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = ptr; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return host_pointer(block, ptr, data);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return flag(data, block->is_sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = block->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return flag(data, block->kind == SIM_BLOCK_MANAGED);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = block->device; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return flag(data, block->kind == SIM_BLOCK_DEVICE);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = block->node.key;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = block->size_bytes; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED: return flag(data, true);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return flag(data, true);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(CUmemAccess_flags *)data = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return mapped_pool(block, data);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_block *block = sim_block_find(ptr);
    if (data == NULL || block == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return get(data, attribute, block, ptr);
}

static size_t attribute_bytes(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return 4;
    default: return 8;
    }
}

/* Unlike the single form, this one answers zeros for a pointer it does not know. */
CUresult sim_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
                                    void **data, CUdeviceptr ptr)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS || attributes == NULL || data == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_block *block = sim_block_find(ptr);
    for (unsigned i = 0; i < numAttributes; i++) {
        if (block != NULL) {
            result = get(data[i], attributes[i], block, ptr);
            if (result == CUDA_ERROR_NOT_SUPPORTED) {
                return result;
            }
        } else {
            memset(data[i], 0, attribute_bytes(attributes[i]));
            if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
                *(int *)data[i] = -2;
            }
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                   CUdeviceptr ptr)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_block *block = sim_block_find(ptr);
    if (value == NULL || block == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    block->is_sync_memops = *(const int *)value != 0;
    return CUDA_SUCCESS;
}
