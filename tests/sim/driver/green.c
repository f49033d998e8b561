/* SPDX-License-Identifier: MIT */
#include "green.h"

#include "call.h"
#include "defect.h"
#include "event.h"
#include "sim_api.h"
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define GREEN_MAGIC           0x47524e43u
#define DESCRIPTOR_MAGIC      0x44455343u
/* Of compute capability 8. */
#define LEAST_MULTIPROCESSORS 4u
#define MULTIPROCESSOR_STEP   2u

/* Never freed. */
struct CUdevResourceDesc_st {
    unsigned magic;
    unsigned multiprocessors;
    struct CUdevResourceDesc_st *older;
};

static struct CUgreenCtx_st *newest;
static struct CUdevResourceDesc_st *newest_descriptor;

bool sim_green_is_alive(const struct CUgreenCtx_st *green)
{
    return !green->is_destroyed && green->primary->is_active &&
           green->primary->id == green->primary_id;
}

struct CUgreenCtx_st *sim_green_of(CUgreenCtx handle)
{
    return handle != NULL && handle->magic == GREEN_MAGIC && sim_green_is_alive(handle) ? handle
                                                                                        : NULL;
}

struct CUgreenCtx_st *sim_green_of_view(CUcontext handle)
{
    return handle != NULL ? handle->green : NULL;
}

struct sim_queue *sim_green_queue(struct CUgreenCtx_st *green)
{
    struct sim_queue *queue = sim_queue_create(green->primary, true, false);

    queue->green = green;
    if (green->floor != NULL) {
        struct sim_op *wait = sim_op_create(queue, "cuGreenCtxWaitEvent");
        sim_op_wait_for(wait, green->floor);
        sim_clock_join(&queue->clock, &green->floor_clock);
        sim_enqueue(wait);
    }
    return queue;
}

static unsigned round_up(unsigned count, unsigned step)
{
    return (count + step - 1) / step * step;
}

static void describe(CUdevResource *resource, unsigned multiprocessors, unsigned least)
{
    memset(resource, 0, sizeof(*resource));
    resource->type = CU_DEV_RESOURCE_TYPE_SM;
    resource->sm.smCount = multiprocessors;
    resource->sm.minSmPartitionSize = least;
    resource->sm.smCoscheduledAlignment = MULTIPROCESSOR_STEP;
}

CUresult sim_cuDeviceGetDevResource(CUdevice device, CUdevResource *resource,
                                    CUdevResourceType type)
{
    int count;
    CUresult result = sim_cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                               device);

    if (result != CUDA_SUCCESS || resource == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    describe(resource, (unsigned)count, LEAST_MULTIPROCESSORS);
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxGetDevResource(CUgreenCtx hCtx, CUdevResource *resource,
                                      CUdevResourceType type)
{
    if (sim_green_of(hCtx) == NULL || resource == NULL) {
        return resource == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    }
    if (type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    describe(resource, hCtx->multiprocessors, LEAST_MULTIPROCESSORS);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
    struct CUctx_st *context = sim_context_of(hCtx);

    if (context == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return sim_green_of_view(hCtx) != NULL
               ? sim_cuGreenCtxGetDevResource(sim_green_of_view(hCtx), resource, type)
               : sim_cuDeviceGetDevResource(context->device, resource, type);
}

CUresult sim_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
                                         const CUdevResource *input, CUdevResource *remaining,
                                         unsigned int useFlags, unsigned int minCount)
{
    bool is_fine = (useFlags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
    unsigned least = is_fine ? MULTIPROCESSOR_STEP : LEAST_MULTIPROCESSORS;

    if (nbGroups == NULL || input == NULL || useFlags > 3) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (input->type != CU_DEV_RESOURCE_TYPE_SM) {
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
    if (minCount > input->sm.smCount) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned size = round_up(minCount < least ? least : minCount, MULTIPROCESSOR_STEP);
    unsigned count = input->sm.smCount / size;
    if (result != NULL && count > *nbGroups) {
        count = *nbGroups;
    }
    for (unsigned i = 0; result != NULL && i < count; i++) {
        describe(&result[i], size, least);
    }
    if (remaining != NULL) {
        describe(remaining, input->sm.smCount - count * size, least);
        if (remaining->sm.smCount == 0) {
            remaining->type = CU_DEV_RESOURCE_TYPE_INVALID;
        }
    }
    *nbGroups = count;
    return CUDA_SUCCESS;
}

CUresult sim_cuDevResourceGenerateDesc(CUdevResourceDesc *phDesc, CUdevResource *resources,
                                       unsigned int nbResources)
{
    unsigned multiprocessors = 0;

    if (phDesc == NULL || resources == NULL || nbResources == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < nbResources; i++) {
        if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM) {
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        }
        multiprocessors += resources[i].sm.smCount;
    }
    struct CUdevResourceDesc_st *descriptor = calloc(1, sizeof(*descriptor));
    descriptor->magic = DESCRIPTOR_MAGIC;
    descriptor->multiprocessors = multiprocessors;
    descriptor->older = newest_descriptor;
    newest_descriptor = descriptor;
    *phDesc = descriptor;
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                              unsigned int flags)
{
    static unsigned long long next_id = 1;
    struct CUctx_st *primary;

    if (phCtx == NULL || desc == NULL || desc->magic != DESCRIPTOR_MAGIC ||
        flags != CU_GREEN_CTX_DEFAULT_STREAM) {
        return sim_is_initialized ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    }
    CUresult result = sim_cuDevicePrimaryCtxRetain(&primary, dev);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct CUgreenCtx_st *green = calloc(1, sizeof(*green));
    green->magic = GREEN_MAGIC;
    green->primary = primary;
    green->primary_id = primary->id;
    green->id = next_id++;
    green->multiprocessors = desc->multiprocessors;
    green->view = (struct CUctx_st){
        .magic = primary->magic, .device = dev, .is_primary = true, .green = green};
    green->older = newest;
    newest = green;
    green->legacy = sim_green_queue(green);
    green->marks = sim_green_queue(green);
    *phCtx = green;
    return CUDA_SUCCESS;
}

/* What is in its streams still runs; the queues go when it has. */
CUresult sim_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
    if (sim_green_of(hCtx) == NULL) {
        return hCtx != NULL && hCtx->magic == GREEN_MAGIC ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                          : CUDA_ERROR_INVALID_CONTEXT;
    }
    hCtx->is_destroyed = true;
    hCtx->legacy->is_orphan = true;
    hCtx->marks->is_orphan = true;
    sim_op_drop(hCtx->floor);
    hCtx->floor = NULL;
    sim_clock_fini(&hCtx->floor_clock);
    return sim_cuDevicePrimaryCtxRelease_v2(hCtx->primary->device);
}

CUresult sim_cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
    if (pContext == NULL || sim_green_of(hCtx) == NULL) {
        return pContext == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    }
    *pContext = &hCtx->view;
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
    if (greenCtxId == NULL || sim_green_of(greenCtx) == NULL) {
        return greenCtxId == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
    }
    *greenCtxId = greenCtx->id;
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                    int priority)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (sim_green_of(greenCtx) == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (phStream == NULL || flags != CU_STREAM_NON_BLOCKING) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *phStream = sim_stream_create(greenCtx->primary, sim_green_queue(greenCtx), flags, priority);
    return greenCtx->primary->sticky;
}

static CUresult green_of_stream(CUstream stream, struct sim_queue **queue_out)
{
    struct CUctx_st *current = sim_context_current();

    if (stream == CU_STREAM_PER_THREAD && current != NULL && current->green != NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    return sim_enter_stream(stream, queue_out);
}

CUresult sim_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    struct sim_queue *queue;
    CUresult result = green_of_stream(hStream, &queue);

    if (result != CUDA_SUCCESS || pCtx == NULL || pGreenCtx == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *pCtx = queue->context;
    *pGreenCtx = queue->green;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
    struct sim_queue *queue;
    CUresult result = green_of_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && phCtx == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *phCtx = queue->green;
    }
    return result;
}

CUresult sim_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    return sim_green_of(hCtx) != NULL ? sim_cuCtxRecordEvent(&hCtx->view, hEvent)
                                      : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
    return sim_green_of(hCtx) != NULL ? sim_cuCtxWaitEvent(&hCtx->view, hEvent)
                                      : CUDA_ERROR_INVALID_CONTEXT;
}
