/* SPDX-License-Identifier: MIT */
/* Batches of copies. CUDA leaves the order inside a batch open; here it is that of the list. */
#include "array.h"
#include "context.h"
#include "defect.h"
#include "sim_api.h"
#include "work.h"

static bool is_order(CUmemcpySrcAccessOrder order)
{
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
           order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

static bool is_early(CUmemcpySrcAccessOrder order)
{
    return order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
           !SIM_DEFECT(batches_read_their_sources_late);
}

static CUresult enter(CUstream stream, struct sim_queue **queue_out)
{
    CUresult result = sim_enter_stream(stream, queue_out);

    return result == CUDA_SUCCESS && (*queue_out)->is_legacy ? CUDA_ERROR_INVALID_VALUE : result;
}

/* The first copy that attribute k is for must come after that of attribute k - 1. */
static bool are_attributes_valid(const CUmemcpyAttributes *attributes, const size_t *starts,
                                 size_t attribute_count, size_t count)
{
    if (attributes == NULL || starts == NULL || attribute_count == 0 || attribute_count > count) {
        return false;
    }
    for (size_t i = 0; i < attribute_count; i++) {
        if ((i == 0 ? starts[i] != 0 : starts[i] <= starts[i - 1]) || starts[i] >= count ||
            !is_order(attributes[i].srcAccessOrder) ||
            attributes[i].flags > CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) {
            return false;
        }
    }
    return true;
}

CUresult sim_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
                                   size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs,
                                   size_t numAttrs, CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = enter(hStream, &queue);
    size_t attribute = 0;

    if (result == CUDA_SUCCESS && (dsts == NULL || srcs == NULL || sizes == NULL || count == 0 ||
                                   !are_attributes_valid(attrs, attrsIdxs, numAttrs, count))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (attribute + 1 < numAttrs && attrsIdxs[attribute + 1] == i) {
            attribute++;
        }
        CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                              .srcDevice = srcs[i],
                              .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                              .dstDevice = dsts[i],
                              .WidthInBytes = sizes[i],
                              .Height = 1,
                              .Depth = 1};
        result = sim_copy_in_batch(&copy, queue, is_early(attrs[attribute].srcAccessOrder));
    }
    return result;
}

/* The form of 12.8 tells which copy was wrong; SIZE_MAX: it was none of them. */
CUresult sim_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
                                size_t *failIdx, CUstream hStream)
{
    if (failIdx != NULL) {
        *failIdx = SIZE_MAX;
    }
    return sim_cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream);
}

/* The size of an element: of the array that takes part, and equal if two do; 0: not valid. */
static size_t element_bytes(const CUDA_MEMCPY3D_BATCH_OP *op)
{
    const CUmemcpy3DOperand *sides[] = {&op->src, &op->dst};
    size_t bytes = 0;

    for (int i = 0; i < 2; i++) {
        if (sides[i]->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
            continue;
        }
        const struct CUarray_st *array = sides[i]->type == CU_MEMCPY_OPERAND_TYPE_ARRAY
                                             ? sim_array_of(sides[i]->op.array.array)
                                             : NULL;
        if (array == NULL || (bytes != 0 && bytes != array->element_bytes)) {
            return 0;
        }
        bytes = array->element_bytes;
    }
    return bytes != 0 ? bytes : 1;
}

static bool is_operand_valid(const CUmemcpy3DOperand *side, const CUextent3D *extent)
{
    return side->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ||
           (side->op.ptr.ptr != 0 &&
            (side->op.ptr.rowLength == 0 || side->op.ptr.rowLength >= extent->width) &&
            (side->op.ptr.layerHeight == 0 || side->op.ptr.layerHeight >= extent->height));
}

static bool read_op(CUDA_MEMCPY3D *copy, const CUDA_MEMCPY3D_BATCH_OP *op)
{
    size_t bytes = element_bytes(op);
    bool is_src_array = op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    bool is_dst_array = op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;

    if (bytes == 0 || op->extent.width == 0 || op->extent.height == 0 || op->extent.depth == 0 ||
        !is_order(op->srcAccessOrder) || !is_operand_valid(&op->src, &op->extent) ||
        !is_operand_valid(&op->dst, &op->extent)) {
        return false;
    }
    *copy = (CUDA_MEMCPY3D){
        .srcMemoryType = is_src_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .dstMemoryType = is_dst_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .WidthInBytes = op->extent.width * bytes,
        .Height = op->extent.height,
        .Depth = op->extent.depth};
    if (is_src_array) {
        copy->srcArray = op->src.op.array.array;
        copy->srcXInBytes = op->src.op.array.offset.x * bytes;
        copy->srcY = op->src.op.array.offset.y;
        copy->srcZ = op->src.op.array.offset.z;
    } else {
        copy->srcDevice = op->src.op.ptr.ptr;
        copy->srcPitch = op->src.op.ptr.rowLength * bytes;
        copy->srcHeight = op->src.op.ptr.layerHeight;
    }
    if (is_dst_array) {
        copy->dstArray = op->dst.op.array.array;
        copy->dstXInBytes = op->dst.op.array.offset.x * bytes;
        copy->dstY = op->dst.op.array.offset.y;
        copy->dstZ = op->dst.op.array.offset.z;
    } else {
        copy->dstDevice = op->dst.op.ptr.ptr;
        copy->dstPitch = op->dst.op.ptr.rowLength * bytes;
        copy->dstHeight = op->dst.op.ptr.layerHeight;
    }
    return true;
}

CUresult sim_cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
                                     unsigned long long flags, CUstream hStream)
{
    struct sim_queue *queue;
    CUDA_MEMCPY3D copy;
    CUresult result = enter(hStream, &queue);

    if (result == CUDA_SUCCESS && (opList == NULL || numOps == 0 || flags != 0)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < numOps && result == CUDA_SUCCESS; i++) {
        result = read_op(&copy, &opList[i])
                     ? sim_copy_in_batch(&copy, queue, is_early(opList[i].srcAccessOrder))
                     : CUDA_ERROR_INVALID_VALUE;
    }
    return result;
}

CUresult sim_cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                  unsigned long long flags, CUstream hStream)
{
    if (failIdx != NULL) {
        *failIdx = SIZE_MAX;
    }
    return sim_cuMemcpy3DBatchAsync_v2(numOps, opList, flags, hStream);
}
