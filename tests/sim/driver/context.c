/* SPDX-License-Identifier: MIT */
#include "context.h"

#include "capture.h"
#include "config.h"
#include "defect.h"
#include "green.h"
#include "pool.h"
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

#define CONTEXT_MAGIC 0x43545831u
#define STACK_ROOM    64

bool sim_is_initialized;

static struct CUctx_st *primaries[SIM_MAX_DEVICES];
static unsigned primary_flags[SIM_MAX_DEVICES];
static _Thread_local struct CUctx_st *stack[STACK_ROOM];
static _Thread_local unsigned depth;

struct CUctx_st *sim_context_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

CUresult sim_enter(struct CUctx_st **context_out)
{
    struct CUctx_st *context = sim_context_current();

    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (context == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (context->green != NULL) {
        if (!sim_green_is_alive(context->green)) {
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        }
        context = context->green->primary;
    }
    if (!context->is_active) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *context_out = context;
    return context->sticky;
}

CUresult sim_check_device(CUdevice device)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    return device < 0 || device >= sim_config.device_count ? CUDA_ERROR_INVALID_DEVICE
                                                           : CUDA_SUCCESS;
}

struct CUctx_st *sim_context_of(CUcontext handle)
{
    if (handle == NULL || handle->magic != CONTEXT_MAGIC) {
        return NULL;
    }
    if (handle->green != NULL) {
        return sim_green_is_alive(handle->green) ? handle->green->primary : NULL;
    }
    return handle->is_active ? handle : NULL;
}

static void activate(struct CUctx_st *context, unsigned flags)
{
    static unsigned long long next_id = 1;

    context->id = next_id++;
    context->flags = flags;
    context->sticky = CUDA_SUCCESS;
    context->is_active = true;
    context->peers = 0;
    context->limits[CU_LIMIT_STACK_SIZE] = 1024;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7u << 20;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
    context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128;
    context->legacy = sim_queue_create(context, false, true);
    context->marks = sim_queue_create(context, true, false);
}

static struct CUctx_st *create(int device, bool is_primary)
{
    struct CUctx_st *context = calloc(1, sizeof(*context));

    context->magic = CONTEXT_MAGIC;
    context->device = device;
    context->is_primary = is_primary;
    return context;
}

/* Ends a context's life: its work first, then its memory and streams. */
static void deactivate(struct CUctx_st *context)
{
    if (!context->is_active) {
        return;
    }
    for (struct sim_queue *queue = context->queues; queue != NULL; queue = queue->next) {
        sim_capture_drop(queue);
    }
    sim_wait_context(context);
    sim_stream_forget_context(context);
    if (!SIM_DEFECT(contexts_leave_memory)) {
        sim_memory_forget_context(context);
    }
    context->is_active = false;
    context->sticky = CUDA_SUCCESS;
    sim_op_drop(context->floor);
    context->floor = NULL;
    sim_clock_fini(&context->floor_clock);
    for (struct sim_queue *queue = context->queues; queue != NULL; queue = queue->next) {
        queue->is_orphan = true;
    }
    sim_queue_reap(context);
    context->legacy = NULL;
    context->marks = NULL;
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult result = sim_check_device(dev);

    if (result != CUDA_SUCCESS || pctx == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (primaries[dev] == NULL) {
        primaries[dev] = create(dev, true);
    }
    if (!primaries[dev]->is_active) {
        activate(primaries[dev], primary_flags[dev]);
        primaries[dev]->references = 0;
    }
    primaries[dev]->references++;
    *pctx = primaries[dev];
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    CUresult result = sim_check_device(dev);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (primaries[dev] == NULL || !primaries[dev]->is_active) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--primaries[dev]->references == 0 || SIM_DEFECT(one_release_ends_all)) {
        deactivate(primaries[dev]);
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    CUresult result = sim_check_device(dev);

    if (result == CUDA_SUCCESS && primaries[dev] != NULL) {
        deactivate(primaries[dev]);
    }
    return result;
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    CUresult result = sim_check_device(dev);

    if (result == CUDA_SUCCESS) {
        primary_flags[dev] = flags;
        if (primaries[dev] != NULL) {
            primaries[dev]->flags = flags;
        }
    }
    return result;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult result = sim_check_device(dev);

    if (result != CUDA_SUCCESS || flags == NULL || active == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *flags = primary_flags[dev];
    *active = primaries[dev] != NULL && primaries[dev]->is_active;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    CUresult result = sim_check_device(dev);

    if (result != CUDA_SUCCESS || pctx == NULL || depth == STACK_ROOM) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *pctx = create(dev, false);
    activate(*pctx, flags);
    stack[depth++] = *pctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                            unsigned int flags, CUdevice dev)
{
    (void)paramsArray;
    (void)numParams;
    return sim_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult sim_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
                            CUdevice dev)
{
    (void)ctxCreateParams;
    return sim_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult sim_cuCtxDestroy_v2(CUcontext ctx)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (sim_context_of(ctx) == NULL || ctx->is_primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    deactivate(ctx);
    if (depth > 0 && stack[depth - 1] == ctx) {
        depth--;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext ctx)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (ctx == NULL || depth == STACK_ROOM) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    stack[depth++] = ctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *pctx)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    depth--;
    if (pctx != NULL) {
        *pctx = stack[depth];
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext ctx)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (ctx == NULL) {
        depth -= depth > 0;
        return CUDA_SUCCESS;
    }
    if (ctx->magic != CONTEXT_MAGIC) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    depth = depth > 0 ? depth : 1;
    stack[depth - 1] = ctx;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCurrent(CUcontext *pctx)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (pctx == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pctx = sim_context_current();
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(CUdevice *device)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (sim_context_current() == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *device = sim_context_current()->device;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    if (ctx == NULL) {
        return sim_cuCtxGetDevice(device);
    }
    if (sim_context_of(ctx) == NULL || device == NULL) {
        return device == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    }
    *device = ctx->device;
    return CUDA_SUCCESS;
}

/* A given context, or the current one for NULL. */
static CUresult chosen(CUcontext ctx, struct CUctx_st **context_out)
{
    if (ctx == NULL) {
        return sim_enter(context_out);
    }
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    *context_out = sim_context_of(ctx);
    return *context_out == NULL ? CUDA_ERROR_INVALID_CONTEXT : (*context_out)->sticky;
}

CUresult sim_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct CUctx_st *context;
    CUresult result = chosen(ctx, &context);

    if (result == CUDA_SUCCESS && ctxId == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *ctxId = context->id;
    }
    return result;
}

CUresult sim_cuCtxSynchronize_v2(CUcontext ctx)
{
    struct CUctx_st *context;
    CUresult result = chosen(ctx, &context);
    struct CUgreenCtx_st *green = sim_green_of_view(ctx != NULL ? ctx : sim_context_current());

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_context(context);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_wait_green(context, green);
    sim_pool_settle(context->device);
    return context->sticky;
}

CUresult sim_cuCtxSynchronize(void)
{
    return sim_cuCtxSynchronize_v2(NULL);
}

CUresult sim_cuCtxGetFlags(unsigned int *flags)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        *flags = context->flags;
    }
    return result;
}

CUresult sim_cuCtxSetFlags(unsigned int flags)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        context->flags = flags;
    }
    return result;
}

CUresult sim_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct CUctx_st *context;
    CUresult result = chosen(ctx, &context);

    if (result == CUDA_SUCCESS) {
        *version = 3020;
    }
    return result;
}
