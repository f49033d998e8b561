/* SPDX-License-Identifier: MIT */
/* Device memory: plain, pitched, managed and stream-ordered blocks, and questions about them. */
#include "access.h"
#include "call.h"
#include "capture.h"
#include "config.h"
#include "context.h"
#include "defect.h"
#include "graph.h"
#include "ipc.h"
#include "pool.h"
#include "managed.h"
#include "sim_api.h"
#include "space.h"
#include "timeline.h"

#include <string.h>
#include <sys/mman.h>

static void poison(struct sim_block *block)
{
    if (sim_config.is_poisoning) {
        memset(block->payload, 0xa5, block->size_bytes);
    }
}

/* What every allocating call checks before it looks at sizes. */
static CUresult enter_allocation(struct CUctx_st **context_out)
{
    CUresult result = sim_enter(context_out);

    return result == CUDA_SUCCESS ? sim_capture_refuse_unsafe() : result;
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct CUctx_st *context;
    uint64_t address;
    size_t rounded;
    CUresult result = enter_allocation(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (dptr == NULL || (bytesize == 0 && !SIM_DEFECT(empty_blocks_exist))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_space_take(context->device, bytesize, &address, &rounded)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_block *block = sim_block_add(address, bytesize, SIM_BLOCK_DEVICE);
    block->device = context->device;
    block->context = context;
    block->rounded_bytes = rounded;
    block->payload = sim_space_payload(address);
    poison(block);
    sim_timeline_add(SIM_HAPPENS_BIRTH, sim_call_name(), 0, address, address + bytesize);
    *dptr = address;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
                                size_t Height, unsigned int ElementSizeBytes)
{
    size_t pitch = (WidthInBytes + 511) & ~(size_t)511;

    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (pPitch == NULL || WidthInBytes == 0 || Height == 0 || pitch > SIZE_MAX / Height) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_cuMemAlloc_v2(dptr, pitch * Height);
    if (result == CUDA_SUCCESS) {
        *pPitch = pitch;
    }
    return result;
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct CUctx_st *context;
    CUresult result = enter_allocation(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (dptr == NULL || bytesize == 0 ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    void *memory = mmap(NULL, bytesize, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_block *block = sim_block_add((uint64_t)memory, bytesize, SIM_BLOCK_MANAGED);
    block->device = context->device;
    block->context = context;
    block->payload = memory;
    block->flags = flags;
    *dptr = (CUdeviceptr)memory;
    return CUDA_SUCCESS;
}

/* Of imported memory only what comes from a pool; the free looks. */
static bool is_freeable(const struct sim_block *block)
{
    return block->kind <= SIM_BLOCK_GRAPH || block->kind == SIM_BLOCK_IMPORTED;
}

/* Memory that belongs to no context and whose free waits for nothing. */
static bool is_stream_ordered(const struct sim_block *block)
{
    return block->kind == SIM_BLOCK_POOL || block->kind == SIM_BLOCK_GRAPH;
}

/* Gives the memory back and ends the block. */
static void release(struct sim_block *block)
{
    if (block->kind == SIM_BLOCK_MANAGED) {
        sim_managed_forget(block);
    }
    if (block->kind == SIM_BLOCK_MANAGED || block->kind == SIM_BLOCK_HOST) {
        munmap(block->payload, block->size_bytes);
    } else if (block->kind == SIM_BLOCK_POOL) {
        sim_pool_give(block);
    } else if (block->kind == SIM_BLOCK_GRAPH) {
        sim_graph_memory_end(block->graph_memory);
    } else if (block->kind == SIM_BLOCK_DEVICE || block->kind == SIM_BLOCK_ARRAY) {
        sim_space_give(block->device, block->node.key, block->rounded_bytes);
    }
    sim_block_remove(block);
}

/* The memory is the other process's; its use here must be over. */
static CUresult free_imported(struct sim_block *block)
{
    sim_access_forget(block, true);
    return sim_ipc_free(block) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A free waits for the context of the block and for the current one, but for memory in stream order
 * the program must have seen to it. */
CUresult sim_cuMemFree_v2(CUdeviceptr dptr)
{
    struct CUctx_st *context;
    CUresult result = enter_allocation(&context);

    if (result != CUDA_SUCCESS || dptr == 0) {
        return result;
    }
    struct sim_block *block = sim_block_find(dptr);
    if (block == NULL || (block->node.key != dptr && !SIM_DEFECT(inner_addresses_are_freed)) ||
        block->is_freeing || (!is_freeable(block) && block->kind != SIM_BLOCK_MANAGED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (block->kind == SIM_BLOCK_IMPORTED) {
        return free_imported(block);
    }
    sim_timeline_bury_now(block->node.key, block->node.end);
    sim_capture_refuse_end(block);
    block->is_freeing = true;
    if (!is_stream_ordered(block) && !SIM_DEFECT(free_does_not_wait)) {
        sim_wait_context(context);
        if (block->context != context && block->context->is_active) {
            sim_wait_context(block->context);
        }
    }
    if (!SIM_DEFECT(frees_leave_uses_behind)) {
        sim_access_forget(block, true);
    }
    release(block);
    return context->sticky;
}

void sim_memory_forget_context(struct CUctx_st *context)
{
    sim_ipc_forget_context(context);
    struct sim_block *block = sim_block_first();
    struct sim_party party = sim_party_of_call(0, 0);

    while (block != NULL) {
        struct sim_block *next = block->next;
        if (block->context == context && !is_stream_ordered(block) &&
            block->kind != SIM_BLOCK_IMPORTED) {
            party.start = block->node.key;
            party.end = block->node.end;
            sim_timeline_bury(party.start, party.end, &party);
            sim_access_forget(block, false);
            release(block);
        }
        block = next;
    }
}

static CUresult allocate_async(CUdeviceptr *dptr, size_t bytesize, struct CUmemPoolHandle_st *pool,
                               struct sim_queue *queue)
{
    struct sim_block *block = sim_pool_take(pool, bytesize, queue);

    if (block == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    poison(block);
    struct sim_op *op = sim_op_create(queue, "cuMemAllocAsync");
    sim_op_own(op, block, true);
    *dptr = block->node.key;
    return sim_submit(op);
}

static CUresult enter_async(CUstream hStream, struct sim_queue **queue_out)
{
    CUresult result = sim_enter_stream(hStream, queue_out);

    return result == CUDA_SUCCESS ? sim_capture_refuse_implicit(*queue_out) : result;
}

/* In a capture the graph will own the memory. */
static CUresult allocate_node(CUdeviceptr *dptr, size_t bytesize, int device,
                              struct sim_queue *queue)
{
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                            .memory = sim_graph_memory_create(device, bytesize)};

    if (work.memory == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = sim_capture_work(queue, &work);
    if (result == CUDA_SUCCESS) {
        *dptr = work.memory->address;
    }
    sim_graph_memory_drop(work.memory);
    return result;
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = enter_async(hStream, &queue);

    if (result != CUDA_SUCCESS || dptr == NULL || bytesize == 0) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (queue->capture != NULL) {
        return allocate_node(dptr, bytesize, queue->context->device, queue);
    }
    return allocate_async(dptr, bytesize, sim_pool_of_device(queue->context->device), queue);
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                                     CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = enter_async(hStream, &queue);

    if (result != CUDA_SUCCESS || dptr == NULL || bytesize == 0 || pool == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (queue->capture != NULL) {
        return allocate_node(dptr, bytesize, pool->device, queue);
    }
    return allocate_async(dptr, bytesize, pool, queue);
}

static void run_free(struct sim_op *op)
{
    struct sim_block *block = op->ranges[0].block;

    if (block->is_mapped) {
        sim_access_forget(block, false);
    }
    release(block);
}

CUresult sim_block_free_in_order(struct sim_block *block, struct sim_queue *queue, const char *name)
{
    struct sim_op *op = sim_op_create(queue, name);

    sim_op_own(op, block, false);
    op->run = run_free;
    struct sim_party party = {.name = name,
                              .site = op->site,
                              .stream_id = queue->id,
                              .start = block->node.key,
                              .end = block->node.end,
                              .is_write = true};
    sim_timeline_bury(party.start, party.end, &party);
    block->is_freeing = true;
    sim_op_hold(op);
    CUresult result = sim_submit(op);
    if (op->state != SIM_OP_DONE && block->pool != NULL) {
        sim_pool_expect(block, op);
    }
    sim_op_drop(op);
    return result;
}

/* In a capture only memory of a graph can be freed, and once. */
static CUresult free_node(CUdeviceptr dptr, struct sim_queue *queue)
{
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
                            .memory = sim_graph_memory_of(dptr)};

    if (work.memory == NULL || work.memory->is_freed_by_graph) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_capture_work(queue, &work);
    work.memory->is_freed_by_graph |= result == CUDA_SUCCESS;
    return result;
}

CUresult sim_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = enter_async(hStream, &queue);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (queue->capture != NULL) {
        return free_node(dptr, queue);
    }
    struct sim_block *block = sim_block_find(dptr);
    if (block == NULL || block->node.key != dptr ||
        (block->is_freeing && !SIM_DEFECT(blocks_are_freed_twice)) || !is_freeable(block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (block->kind == SIM_BLOCK_IMPORTED) {
        return free_imported(block);
    }
    sim_capture_refuse_end(block);
    return sim_block_free_in_order(block, queue, "cuMemFreeAsync");
}

CUresult sim_cuMemGetInfo_v2(size_t *free_out, size_t *total)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (free_out != NULL) {
        *free_out = sim_space_free_bytes(context->device);
    }
    if (total != NULL) {
        *total = sim_space_total_bytes(context->device);
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_block *block = sim_block_find(dptr);
    if (block == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (pbase != NULL) {
        *pbase = block->node.key;
    }
    if (psize != NULL) {
        *psize = block->size_bytes;
    }
    return CUDA_SUCCESS;
}
