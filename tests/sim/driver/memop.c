/* SPDX-License-Identifier: MIT */
/* Stream memory operations: a stream waits until a word has a value, or writes one. */
#include "access.h"
#include "block.h"
#include "capture.h"
#include "context.h"
#include "defect.h"
#include "graph.h"
#include "sim_api.h"
#include "space.h"
#include "word.h"
#include "work.h"

#include <string.h>

#define MAX_BATCH 256

static bool is_wait(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_write(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static unsigned bytes_of(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8
                                                                                             : 4;
}

/* Other threads of the program may write the word while it is read. */
static bool has_value(const struct sim_op *op)
{
    const char *payload = op->ranges[0].payload;
    uint64_t word = op->value_bytes == 8
                        ? __atomic_load_n((const uint64_t *)payload, __ATOMIC_ACQUIRE)
                        : __atomic_load_n((const uint32_t *)payload, __ATOMIC_ACQUIRE);

    return SIM_DEFECT(words_are_not_waited_for) ||
           sim_word_satisfies(word, op->value, op->value_bytes, op->extra);
}

static void run_write(struct sim_op *op)
{
    char *payload = op->ranges[0].payload;

    if (op->value_bytes == 8) {
        __atomic_store_n((uint64_t *)payload, op->value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n((uint32_t *)payload, (uint32_t)op->value, __ATOMIC_RELEASE);
    }
    sim_word_is_written(op);
}

/* waitValue and writeValue have the same shape. A word in memory of a device that is not live is a
 * violation, not an error of the argument. */
static CUresult check(const CUstreamBatchMemOpParams *op)
{
    const struct sim_block *block;

    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        if ((op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        if (op->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        if (op->writeValue.flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        break;
    case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    block = sim_block_find(op->waitValue.address);
    if (op->waitValue.address == 0 || op->waitValue.address % bytes_of(op->operation) != 0 ||
        (block != NULL && block->kind == SIM_BLOCK_MANAGED) ||
        (block == NULL && sim_space_device_of(op->waitValue.address) < 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* The operation is held over its enqueueing: it may have run by then. */
static CUresult run_word(const CUstreamBatchMemOpParams *params, struct sim_queue *queue)
{
    struct CUctx_st *context = queue->context;
    bool is_waiting = is_wait(params->operation);
    bool has_barrier = (params->writeValue.flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) == 0;
    struct sim_op *op = sim_op_create(queue,
                                      is_waiting ? "cuStreamWaitValue" : "cuStreamWriteValue");

    op->value_bytes = bytes_of(params->operation);
    op->value = op->value_bytes == 8 ? params->waitValue.value64 : params->waitValue.value;
    op->extra = params->waitValue.flags;
    op->run = is_waiting ? sim_word_wait_is_over : run_write;
    op->drop = is_waiting ? sim_word_wait_drop : NULL;
    op->is_due = is_waiting ? has_value : NULL;
    sim_op_word(op, params->waitValue.address, op->value_bytes);
    if (op->is_broken) {
        sim_op_drop(op);
        return context->sticky;
    }
    sim_op_hold(op);
    CUresult result = sim_submit(op);
    if (op->number != 0 && is_waiting) {
        sim_word_wait(op);
    } else if (op->number != 0) {
        sim_word_write(op, has_barrier);
    }
    sim_op_drop(op);
    return result == CUDA_SUCCESS ? context->sticky : result;
}

static CUresult run_one(const CUstreamBatchMemOpParams *params, struct sim_queue *queue)
{
    return is_wait(params->operation) || is_write(params->operation)
               ? run_word(params, queue)
               : sim_submit(sim_op_create(queue, "memory barrier"));
}

CUresult sim_memops_run(const struct sim_memop_work *work, struct sim_queue *queue)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < work->count && result == CUDA_SUCCESS; i++) {
        result = run_one(&work->ops[i], queue);
    }
    return result;
}

static CUresult check_all(unsigned count, const CUstreamBatchMemOpParams *ops)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = check(&ops[i]);
    }
    return result;
}

/* All are looked at before one is enqueued. */
static CUresult submit_all(CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops,
                           unsigned flags)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(stream, &queue);

    if (result == CUDA_SUCCESS &&
        (count >= MAX_BATCH || flags != 0 || (ops == NULL && count != 0))) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        result = check_all(count, ops);
    }
    if (result != CUDA_SUCCESS || count == 0) {
        return result;
    }
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                            .memops = {.count = count, .ops = ops}};
    return sim_work_submit(&work, queue);
}

static CUresult submit(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address,
                       uint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams params;

    memset(&params, 0, sizeof(params));
    params.waitValue.operation = type;
    params.waitValue.address = address;
    params.waitValue.flags = flags;
    if (bytes_of(type) == 8) {
        params.waitValue.value64 = value;
    } else {
        params.waitValue.value = (cuuint32_t)value;
    }
    return submit_all(stream, 1, &params, 0);
}

static bool has_no_barrier(const CUstreamBatchMemOpParams *op)
{
    return is_write(op->operation) &&
           (op->writeValue.flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0;
}

/* Writes without a barrier are for the first forms alone. */
CUresult sim_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                   CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    for (unsigned i = 0; i < count && count < MAX_BATCH && paramArray != NULL; i++) {
        if (has_no_barrier(&paramArray[i])) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return submit_all(stream, count, paramArray, flags);
}

CUresult sim_cuStreamBatchMemOp(CUstream stream, unsigned int count,
                                CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
    return submit_all(stream, count, paramArray, flags);
}

CUresult sim_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                    unsigned int flags)
{
    return submit(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
}

CUresult sim_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                    unsigned int flags)
{
    return submit(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
}

CUresult sim_cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                  unsigned int flags)
{
    return submit(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags);
}

CUresult sim_cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                  unsigned int flags)
{
    return submit(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags);
}

CUresult sim_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                     unsigned int flags)
{
    return (flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0
               ? CUDA_ERROR_NOT_SUPPORTED
               : sim_cuStreamWriteValue32(stream, addr, value, flags);
}

CUresult sim_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                     unsigned int flags)
{
    return (flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0
               ? CUDA_ERROR_NOT_SUPPORTED
               : sim_cuStreamWriteValue64(stream, addr, value, flags);
}

static CUresult read_node(struct sim_work *work, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    if (params == NULL || params->count == 0 || params->count >= MAX_BATCH || params->flags != 0 ||
        params->paramArray == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *work = (struct sim_work){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                              .memops = {.count = params->count, .ops = params->paramArray}};
    return check_all(params->count, params->paramArray);
}

CUresult sim_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct sim_work work;
    CUresult result = read_node(&work, nodeParams);

    return result == CUDA_SUCCESS
               ? sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work)
               : result;
}

CUresult sim_cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                            CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);

    if (node == NULL || nodeParams_out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *nodeParams_out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.count = node->work.memops.count,
                                                      .paramArray = node->work.memops.ops};
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct sim_work work;
    CUresult result = read_node(&work, nodeParams);

    return result == CUDA_SUCCESS ? sim_node_replace(NULL, hNode, &work) : result;
}

CUresult sim_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
    struct sim_work work;
    CUresult result = read_node(&work, nodeParams);

    return result == CUDA_SUCCESS && hGraphExec != NULL ? sim_node_replace(hGraphExec, hNode, &work)
                                                        : CUDA_ERROR_INVALID_VALUE;
}
