/* SPDX-License-Identifier: MIT */
/* Memory sets; like the real ones they do not wait, in either form. */
#include "access.h"
#include "call.h"
#include "config.h"
#include "context.h"
#include "sim_api.h"
#include "work.h"

#include <string.h>

static void run_fill(struct sim_op *op)
{
    const struct sim_range *range = &op->ranges[0];

    if (range->size_bytes * range->rows > sim_config.payload_max_bytes) {
        return;
    }
    for (size_t row = 0; row < range->rows; row++) {
        char *at = range->payload + row * range->pitch_bytes;
        if (op->value_bytes == 1) {
            memset(at, (int)op->value, range->size_bytes);
            continue;
        }
        for (size_t i = 0; i < range->size_bytes; i += op->value_bytes) {
            memcpy(at + i, &op->value, op->value_bytes);
        }
    }
}

void sim_set_reach(const CUDA_MEMSET_NODE_PARAMS *work, struct sim_op *op)
{
    op->is_by_processors = true;
    sim_op_reach_rows(op, work->dst, work->width * work->elementSize, work->pitch, work->height,
                      true);
}

CUresult sim_set_run(const CUDA_MEMSET_NODE_PARAMS *work, struct sim_queue *queue)
{
    struct CUctx_st *context = queue->context;
    struct sim_op *op = sim_op_create(queue, sim_call_name());

    op->run = run_fill;
    op->value = work->value;
    op->value_bytes = work->elementSize;
    op->delay_ns = sim_config.copy_ns;
    sim_set_reach(work, op);
    if (op->is_broken) {
        sim_op_drop(op);
        return context->sticky;
    }
    if (op->ranges[0].block == NULL) {
        sim_op_drop(op);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_submit(op);
}

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned value_bytes,
                     size_t width, size_t rows, CUstream stream)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(stream, &queue);

    if (result != CUDA_SUCCESS || width == 0 || rows == 0) {
        return result;
    }
    if (dst == 0 || dst % value_bytes != 0 || pitch % value_bytes != 0 ||
        (rows > 1 && pitch < width * value_bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
                            .set = {.dst = dst,
                                    .pitch = pitch,
                                    .value = value,
                                    .elementSize = value_bytes,
                                    .width = width,
                                    .height = rows}};
    return sim_work_submit(&work, queue);
}

CUresult sim_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return fill(dstDevice, 0, uc, 1, N, 1, NULL);
}

CUresult sim_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return fill(dstDevice, 0, us, 2, N, 1, NULL);
}

CUresult sim_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return fill(dstDevice, 0, ui, 4, N, 1, NULL);
}

CUresult sim_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, uc, 1, N, 1, hStream);
}

CUresult sim_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, us, 2, N, 1, hStream);
}

CUresult sim_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, ui, 4, N, 1, hStream);
}

CUresult sim_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                             size_t Height)
{
    return fill(dstDevice, dstPitch, uc, 1, Width, Height, NULL);
}

CUresult sim_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                              size_t Width, size_t Height)
{
    return fill(dstDevice, dstPitch, us, 2, Width, Height, NULL);
}

CUresult sim_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                              size_t Height)
{
    return fill(dstDevice, dstPitch, ui, 4, Width, Height, NULL);
}

CUresult sim_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                               size_t Width, size_t Height, CUstream hStream)
{
    return fill(dstDevice, dstPitch, uc, 1, Width, Height, hStream);
}

CUresult sim_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                size_t Width, size_t Height, CUstream hStream)
{
    return fill(dstDevice, dstPitch, us, 2, Width, Height, hStream);
}

CUresult sim_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                size_t Width, size_t Height, CUstream hStream)
{
    return fill(dstDevice, dstPitch, ui, 4, Width, Height, hStream);
}
