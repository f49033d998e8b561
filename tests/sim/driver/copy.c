/* SPDX-License-Identifier: MIT */
/* Copies. Memory the driver does not know is pageable: it is read when the call is made and written
 * before the call returns. Copies that a program calls synchronous wait when the host takes part;
 * from device to device they do not. */
#include "access.h"
#include "array.h"
#include "call.h"
#include "capture.h"
#include "config.h"
#include "context.h"
#include "defect.h"
#include "sim_api.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

/* rows of width_bytes; a plain copy is one row. */
struct shape {
    size_t width_bytes;
    size_t rows;
    size_t dst_pitch;
    size_t src_pitch;
};

/* ranges[0] is the source, ranges[1] the destination; data a staged copy of the source, if any. */
static void run_copy(struct sim_op *op)
{
    const struct sim_range *src = &op->ranges[0];
    const struct sim_range *dst = &op->ranges[1];

    if (src->size_bytes * src->rows > sim_config.payload_max_bytes) {
        return;
    }
    for (size_t row = 0; row < src->rows; row++) {
        const char *from = op->data != NULL ? (char *)op->data + row * src->size_bytes
                                            : src->payload + row * src->pitch_bytes;
        memmove(dst->payload + row * dst->pitch_bytes, from, src->size_bytes);
    }
}

static void drop_copy(struct sim_op *op)
{
    free(op->data);
}

static void stage(struct sim_op *op)
{
    const struct sim_range *src = &op->ranges[0];

    if (src->size_bytes * src->rows > sim_config.payload_max_bytes) {
        return;
    }
    op->data = malloc(src->size_bytes * src->rows);
    for (size_t row = 0; row < src->rows; row++) {
        memcpy((char *)op->data + row * src->size_bytes, src->payload + row * src->pitch_bytes,
               src->size_bytes);
    }
}

/* How far the caller waits. A node of a graph reads and writes pageable memory when it runs. An
 * early copy has read its source, of whatever kind, when the call returns. */
enum waiting { COPY_ASYNC, COPY_SYNC, COPY_NODE, COPY_EARLY };

static CUresult copy(uint64_t dst, uint64_t src, struct shape shape, struct sim_queue *queue,
                     enum waiting waiting)
{
    bool is_sync = waiting == COPY_SYNC;

    if (shape.width_bytes == 0 || shape.rows == 0) {
        return CUDA_SUCCESS;
    }
    if (dst == 0 || src == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = is_sync ? sim_capture_refuse_queue(queue) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct CUctx_st *context = queue->context;
    struct sim_op *op = sim_op_create(queue, sim_call_name());
    op->run = run_copy;
    op->drop = drop_copy;
    op->delay_ns = sim_config.copy_ns;
    sim_op_reach_rows(op, src, shape.width_bytes, shape.src_pitch, shape.rows, false);
    sim_op_reach_rows(op, dst, shape.width_bytes, shape.dst_pitch, shape.rows, true);
    if (op->is_broken) {
        sim_op_drop(op);
        return context->sticky;
    }
    bool is_src_pageable = op->ranges[0].block == NULL;
    bool is_dst_pageable = op->ranges[1].block == NULL;
    bool is_on_host = is_src_pageable || is_dst_pageable ||
                      op->ranges[0].block->kind >= SIM_BLOCK_HOST ||
                      op->ranges[1].block->kind >= SIM_BLOCK_HOST;
    bool is_immediate = !sim_config.is_virtual && op->delay_ns == 0 && sim_queue_is_idle(queue);
    bool is_node = waiting == COPY_NODE;
    bool is_waiting = !is_node && ((is_dst_pageable && !SIM_DEFECT(pageable_targets_come_late)) ||
                                   (is_sync && (is_on_host || SIM_DEFECT(device_copies_wait)) &&
                                    !SIM_DEFECT(plain_copies_do_not_wait)));
    if (!is_immediate && !is_waiting && !SIM_DEFECT(nothing_is_staged) &&
        (waiting == COPY_EARLY || (is_src_pageable && !is_node))) {
        stage(op);
    }
    sim_op_hold(op);
    result = sim_submit(op);
    if (is_waiting) {
        sim_wait_queue(queue);
        result = context->sticky;
    }
    sim_op_drop(op);
    return result;
}

static CUresult copy_bytes(uint64_t dst, uint64_t src, size_t bytes, CUstream stream, bool is_sync)
{
    struct sim_queue *queue;
    struct shape shape = {bytes, 1, bytes, bytes};
    CUresult result = sim_enter_stream(stream, &queue);

    if (result == CUDA_SUCCESS && queue->capture != NULL && !is_sync && bytes != 0) {
        struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                                .copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                         .srcDevice = src,
                                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                         .dstDevice = dst,
                                         .WidthInBytes = bytes,
                                         .Height = 1,
                                         .Depth = 1}};
        return sim_capture_work(queue, &work);
    }
    return result == CUDA_SUCCESS ? copy(dst, src, shape, queue, is_sync ? COPY_SYNC : COPY_ASYNC)
                                  : result;
}

CUresult sim_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_bytes(dst, src, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_bytes(dst, src, ByteCount, hStream, false);
}

CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy_bytes(dstDevice, (uint64_t)srcHost, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_bytes((uint64_t)dstHost, srcDevice, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_bytes(dstDevice, srcDevice, ByteCount, NULL, true);
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
                                  CUstream hStream)
{
    return copy_bytes(dstDevice, (uint64_t)srcHost, ByteCount, hStream, false);
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                  CUstream hStream)
{
    return copy_bytes((uint64_t)dstHost, srcDevice, ByteCount, hStream, false);
}

CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                  CUstream hStream)
{
    return copy_bytes(dstDevice, srcDevice, ByteCount, hStream, false);
}

/* A copy between peers comes after all work of both contexts. */
static CUresult wait_for_contexts(CUcontext dst, CUcontext src)
{
    CUcontext contexts[] = {dst, src};
    struct CUctx_st *current;
    CUresult result = sim_enter(&current);

    for (int i = 0; i < 2 && result == CUDA_SUCCESS; i++) {
        struct CUctx_st *context = sim_context_of(contexts[i]);
        if (context == NULL) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        result = sim_capture_refuse_context(context);
        if (result == CUDA_SUCCESS && context != current) {
            sim_wait_context(context);
        }
    }
    return result;
}

CUresult sim_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                          CUcontext srcContext, size_t ByteCount)
{
    CUresult result = wait_for_contexts(dstContext, srcContext);

    return result == CUDA_SUCCESS ? copy_bytes(dstDevice, srcDevice, ByteCount, NULL, true)
                                  : result;
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                               CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    (void)dstContext;
    (void)srcContext;
    return copy_bytes(dstDevice, srcDevice, ByteCount, hStream, false);
}

/* One side of a copy: where its first byte lies, and how far rows and slices are apart. An array
 * has its own numbers for that. */
struct side {
    uint64_t base;
    size_t pitch;
    size_t height;
};

static size_t or_else(size_t value, size_t fallback)
{
    return value != 0 ? value : fallback;
}

static bool find_side(struct side *side, CUmemorytype type, uint64_t device, const void *host,
                      CUarray array)
{
    if (type == CU_MEMORYTYPE_ARRAY) {
        if (sim_array_of(array) == NULL) {
            return false;
        }
        *side = (struct side){array->block->node.key, array->row_bytes, array->height};
    } else {
        side->base = type == CU_MEMORYTYPE_HOST ? (uint64_t)host : device;
    }
    return side->base != 0;
}

/* Rows and slices of an array end with it. */
static bool is_inside(const CUarray array, CUmemorytype type, const CUDA_MEMCPY3D *p, size_t x,
                      size_t y, size_t z)
{
    return type != CU_MEMORYTYPE_ARRAY ||
           (x + p->WidthInBytes <= array->row_bytes && y + p->Height <= array->height &&
            z + p->Depth <= array->depth);
}

static CUresult copy_slices(const CUDA_MEMCPY3D *p, struct sim_queue *queue, enum waiting waiting)
{
    CUresult result = CUDA_SUCCESS;
    struct side dst = {0, or_else(p->dstPitch, p->WidthInBytes), or_else(p->dstHeight, p->Height)};
    struct side src = {0, or_else(p->srcPitch, p->WidthInBytes), or_else(p->srcHeight, p->Height)};

    if (!find_side(&dst, p->dstMemoryType, p->dstDevice, p->dstHost, p->dstArray) ||
        !find_side(&src, p->srcMemoryType, p->srcDevice, p->srcHost, p->srcArray) ||
        !is_inside(p->dstArray, p->dstMemoryType, p, p->dstXInBytes, p->dstY, p->dstZ) ||
        !is_inside(p->srcArray, p->srcMemoryType, p, p->srcXInBytes, p->srcY, p->srcZ) ||
        dst.pitch < p->WidthInBytes || src.pitch < p->WidthInBytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct shape shape = {p->WidthInBytes, p->Height, dst.pitch, src.pitch};
    for (size_t z = 0; z < p->Depth && result == CUDA_SUCCESS; z++) {
        uint64_t dst_row = (p->dstZ + z) * dst.height + p->dstY;
        uint64_t src_row = (p->srcZ + z) * src.height + p->srcY;
        result = copy(dst.base + dst_row * dst.pitch + p->dstXInBytes,
                      src.base + src_row * src.pitch + p->srcXInBytes, shape, queue, waiting);
    }
    return result;
}

/* The start of either side. */
void sim_copy_reach(const CUDA_MEMCPY3D *work, struct sim_op *op)
{
    struct side dst = {0};
    struct side src = {0};

    if (find_side(&src, work->srcMemoryType, work->srcDevice, work->srcHost, work->srcArray)) {
        sim_op_reach(op, src.base, 1, false);
    }
    if (find_side(&dst, work->dstMemoryType, work->dstDevice, work->dstHost, work->dstArray)) {
        sim_op_reach(op, dst.base, 1, true);
    }
}

CUresult sim_copy_run(const CUDA_MEMCPY3D *work, struct sim_queue *queue)
{
    return copy_slices(work, queue, COPY_NODE);
}

CUresult sim_copy_in_batch(const CUDA_MEMCPY3D *work, struct sim_queue *queue, bool is_early)
{
    if (queue->capture != NULL) {
        struct sim_work node = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *work};
        return sim_capture_work(queue, &node);
    }
    return copy_slices(work, queue, is_early ? COPY_EARLY : COPY_ASYNC);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool is_sync)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(stream, &queue);

    if (result != CUDA_SUCCESS || p == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (queue->capture != NULL && !is_sync) {
        struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *p};
        return sim_capture_work(queue, &work);
    }
    return copy_slices(p, queue, is_sync ? COPY_SYNC : COPY_ASYNC);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool is_sync)
{
    if (p == NULL) {
        return copy_3d(NULL, stream, is_sync);
    }
    CUDA_MEMCPY3D volume = {.srcXInBytes = p->srcXInBytes,
                            .srcY = p->srcY,
                            .srcMemoryType = p->srcMemoryType,
                            .srcHost = p->srcHost,
                            .srcDevice = p->srcDevice,
                            .srcArray = p->srcArray,
                            .srcPitch = p->srcPitch,
                            .dstXInBytes = p->dstXInBytes,
                            .dstY = p->dstY,
                            .dstMemoryType = p->dstMemoryType,
                            .dstHost = p->dstHost,
                            .dstDevice = p->dstDevice,
                            .dstArray = p->dstArray,
                            .dstPitch = p->dstPitch,
                            .WidthInBytes = p->WidthInBytes,
                            .Height = p->Height,
                            .Depth = 1};
    return copy_3d(&volume, stream, is_sync);
}

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult sim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d(pCopy, hStream, false);
}

CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return copy_3d(pCopy, NULL, true);
}

CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_3d(pCopy, hStream, false);
}

static CUDA_MEMCPY3D peer_copy(const CUDA_MEMCPY3D_PEER *p)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = p->srcXInBytes,
                           .srcY = p->srcY,
                           .srcZ = p->srcZ,
                           .srcMemoryType = p->srcMemoryType,
                           .srcHost = p->srcHost,
                           .srcDevice = p->srcDevice,
                           .srcArray = p->srcArray,
                           .srcPitch = p->srcPitch,
                           .srcHeight = p->srcHeight,
                           .dstXInBytes = p->dstXInBytes,
                           .dstY = p->dstY,
                           .dstZ = p->dstZ,
                           .dstMemoryType = p->dstMemoryType,
                           .dstHost = p->dstHost,
                           .dstDevice = p->dstDevice,
                           .dstArray = p->dstArray,
                           .dstPitch = p->dstPitch,
                           .dstHeight = p->dstHeight,
                           .WidthInBytes = p->WidthInBytes,
                           .Height = p->Height,
                           .Depth = p->Depth};
}

CUresult sim_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    if (pCopy == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_MEMCPY3D copy = peer_copy(pCopy);
    return copy_3d(&copy, hStream, false);
}

CUresult sim_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    if (pCopy == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_MEMCPY3D copy = peer_copy(pCopy);
    CUresult result = wait_for_contexts(pCopy->dstContext, pCopy->srcContext);
    return result == CUDA_SUCCESS ? copy_3d(&copy, NULL, true) : result;
}
