/* SPDX-License-Identifier: MIT */
#include "capture.h"

#include "defect.h"
#include "sim_api.h"

#include <stdlib.h>

#define GRAPH_MAGIC 0x47525048u

static struct sim_capture *captures;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static CUresult invalidate(struct sim_capture *capture)
{
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* A thread in relaxed mode may do anything. In thread-local mode its own captures forbid, unless
 * they are relaxed; in global mode the global captures of other threads do too. */
CUresult sim_capture_refuse_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;

    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || SIM_DEFECT(captures_allow_frees)) {
        return CUDA_SUCCESS;
    }
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        bool is_own = pthread_equal(capture->thread, pthread_self()) != 0;
        if ((is_own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
            (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
             capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
             !SIM_DEFECT(other_threads_never_break))) {
            result = invalidate(capture);
        }
    }
    return result;
}

CUresult sim_capture_refuse_context(struct CUctx_st *context)
{
    CUresult result = CUDA_SUCCESS;

    for (struct sim_queue *queue = context->queues; queue != NULL; queue = queue->next) {
        if (queue->capture != NULL) {
            result = invalidate(queue->capture);
        }
    }
    return result != CUDA_SUCCESS ? result : sim_capture_refuse_unsafe();
}

CUresult sim_capture_refuse_implicit(struct sim_queue *queue)
{
    if (!queue->is_legacy) {
        return CUDA_SUCCESS;
    }
    for (struct sim_queue *other = queue->context->queues; other != NULL; other = other->next) {
        if (other->capture != NULL && (!other->is_nonblocking || SIM_DEFECT(legacy_breaks_all))) {
            invalidate(other->capture);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_capture_refuse_queue(struct sim_queue *queue)
{
    if (queue->capture != NULL) {
        return invalidate(queue->capture);
    }
    CUresult result = sim_capture_refuse_implicit(queue);
    return result != CUDA_SUCCESS ? result : sim_capture_refuse_unsafe();
}

CUresult sim_capture_add(struct sim_queue *queue)
{
    struct sim_capture *capture = queue->capture;

    if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    capture->graph->node_count++;
    return CUDA_SUCCESS;
}

void sim_capture_join(struct sim_queue *queue, struct sim_capture *capture)
{
    queue->capture = capture;
}

struct sim_capture *sim_capture_of_id(unsigned long long id)
{
    struct sim_capture *capture = captures;

    while (capture != NULL && capture->id != id) {
        capture = capture->next;
    }
    return capture;
}

CUresult sim_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    static unsigned long long next_id = 1;
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (queue->is_legacy) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (queue->capture != NULL || (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return queue->capture != NULL ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_capture *capture = calloc(1, sizeof(*capture));
    capture->graph = calloc(1, sizeof(*capture->graph));
    capture->graph->magic = GRAPH_MAGIC;
    capture->origin = queue;
    capture->mode = mode;
    capture->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    capture->thread = pthread_self();
    capture->id = next_id++;
    capture->next = captures;
    captures = capture;
    queue->capture = capture;
    return CUDA_SUCCESS;
}

/* The form of 10.0 has no mode and means global. */
CUresult sim_cuStreamBeginCapture(CUstream hStream)
{
    return sim_cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void end(struct sim_capture *capture, struct CUctx_st *context)
{
    struct sim_capture **link = &captures;

    for (struct sim_queue *queue = context->queues; queue != NULL; queue = queue->next) {
        if (queue->capture == capture) {
            queue->capture = NULL;
        }
    }
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    free(capture);
}

CUresult sim_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_capture *capture = queue->capture;
    if (capture == NULL || phGraph == NULL) {
        return capture == NULL ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE;
    }
    if (capture->origin != queue) {
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !SIM_DEFECT(any_thread_ends_captures) &&
        !pthread_equal(capture->thread, pthread_self())) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    *phGraph = capture->graph;
    if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        free(capture->graph);
        *phGraph = NULL;
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    end(capture, queue->context);
    return result;
}

CUresult sim_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && captureStatus == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        /* No capture is disturbed by the question, but the legacy stream cannot answer it. */
        for (struct sim_queue *other = queue->context->queues; other != NULL && queue->is_legacy;
             other = other->next) {
            if (other->capture != NULL && !other->is_nonblocking) {
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            }
        }
        *captureStatus = queue->capture != NULL ? queue->capture->status
                                                : CU_STREAM_CAPTURE_STATUS_NONE;
    }
    return result;
}

/* The parts of a capture that need nodes are not there yet: status, id and graph are. */
static CUresult capture_info(CUstream hStream, CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, size_t *dependency_count)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result != CUDA_SUCCESS || status == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    *status = queue->capture != NULL ? queue->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
    if (queue->capture != NULL && id != NULL) {
        *id = queue->capture->id;
    }
    if (queue->capture != NULL && graph != NULL) {
        *graph = queue->capture->graph;
    }
    if (dependency_count != NULL) {
        *dependency_count = 0;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                    cuuint64_t *id_out)
{
    return capture_info(hStream, captureStatus_out, id_out, NULL, NULL);
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                       cuuint64_t *id_out, CUgraph *graph_out,
                                       const CUgraphNode **dependencies_out,
                                       size_t *numDependencies_out)
{
    if (dependencies_out != NULL) {
        *dependencies_out = NULL;
    }
    return capture_info(hStream, captureStatus_out, id_out, graph_out, numDependencies_out);
}

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                       cuuint64_t *id_out, CUgraph *graph_out,
                                       const CUgraphNode **dependencies_out,
                                       const CUgraphEdgeData **edgeData_out,
                                       size_t *numDependencies_out)
{
    if (edgeData_out != NULL) {
        *edgeData_out = NULL;
    }
    return sim_cuStreamGetCaptureInfo_v2(hStream, captureStatus_out, id_out, graph_out,
                                         dependencies_out, numDependencies_out);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUstreamCaptureMode before = thread_mode;
    thread_mode = SIM_DEFECT(thread_modes_are_not_set) ? before : *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroy(CUgraph hGraph)
{
    if (hGraph == NULL || hGraph->magic != GRAPH_MAGIC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    hGraph->magic = 0;
    free(hGraph);
    return CUDA_SUCCESS;
}
