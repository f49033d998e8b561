/* SPDX-License-Identifier: MIT */
/* Page-locked host memory, and host functions in streams. */
#include "access.h"
#include "capture.h"
#include "context.h"
#include "place.h"
#include "sim_api.h"
#include "work.h"

#include <stdlib.h>
#include <sys/mman.h>

CUresult sim_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_unsafe();
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (pp == NULL || bytesize == 0 || Flags > 7) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    void *memory = mmap(NULL, bytesize, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_block *block = sim_block_add((uint64_t)memory, bytesize, SIM_BLOCK_HOST);
    block->device = context->device;
    block->context = context;
    block->payload = memory;
    block->flags = Flags;
    *pp = memory;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return sim_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult sim_cuMemFreeHost(void *p)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_unsafe();
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_block *block = sim_block_find((uint64_t)p);
    if (block == NULL || block->kind != SIM_BLOCK_HOST || block->node.key != (uint64_t)p ||
        block->is_freeing) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    block->is_freeing = true;
    sim_wait_context(block->context);
    munmap(block->payload, block->size_bytes);
    sim_block_remove(block);
    return context->sticky;
}

CUresult sim_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_unsafe();
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (p == NULL || bytesize == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_place_is_taken((uint64_t)p, (uint64_t)p + bytesize)) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    struct sim_block *block = sim_block_add((uint64_t)p, bytesize, SIM_BLOCK_REGISTERED);
    block->device = context->device;
    block->context = context;
    block->payload = p;
    block->flags = Flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemHostUnregister(void *p)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_unsafe();
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_block *block = sim_block_find((uint64_t)p);
    if (block == NULL || block->kind != SIM_BLOCK_REGISTERED || block->node.key != (uint64_t)p) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    sim_wait_context(block->context);
    sim_block_remove(block);
    return context->sticky;
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_block *block = sim_block_find((uint64_t)p);
    if (pdptr == NULL || Flags != 0 || block == NULL || sim_block_is_on_device(block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pdptr = (CUdeviceptr)p;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_block *block = sim_block_find((uint64_t)p);
    if (pFlags == NULL || block == NULL || sim_block_is_on_device(block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pFlags = block->flags;
    return CUDA_SUCCESS;
}

static void run_host_function(struct sim_op *op)
{
    struct sim_host_work *host = op->data;

    if (host->callback != NULL) {
        host->callback(host->stream, CUDA_SUCCESS, host->data);
    } else {
        host->function(host->data);
    }
}

static void drop_host_function(struct sim_op *op)
{
    free(op->data);
}

CUresult sim_host_run(const struct sim_host_work *work, struct sim_queue *queue)
{
    struct sim_op *op = sim_op_create(queue, work->callback != NULL ? "cuStreamAddCallback"
                                                                    : "cuLaunchHostFunc");

    op->is_host_function = true;
    op->run = run_host_function;
    op->drop = drop_host_function;
    op->data = malloc(sizeof(*work));
    *(struct sim_host_work *)op->data = *work;
    return sim_submit(op);
}

static CUresult submit_host_function(CUstream stream, struct sim_host_work host)
{
    struct sim_queue *queue;
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = host};
    CUresult result = sim_enter_stream(stream, &queue);

    if (result != CUDA_SUCCESS || (host.function == NULL && host.callback == NULL)) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    return sim_work_submit(&work, queue);
}

CUresult sim_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    struct sim_host_work host = {.function = fn, .data = userData};

    return submit_host_function(hStream, host);
}

CUresult sim_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData,
                                 unsigned int flags)
{
    struct sim_host_work host = {.callback = callback, .stream = hStream, .data = userData};

    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return submit_host_function(hStream, host);
}
