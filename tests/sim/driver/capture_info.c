/* SPDX-License-Identifier: MIT */
/* What a stream tells of its capture. */
#include "capture.h"
#include "graph.h"
#include "sim_api.h"

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

/* The list of nodes is good until the next call for the stream. */
static CUresult capture_info(CUstream hStream, CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, const CUgraphNode **nodes, size_t *node_count)
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
    if (nodes != NULL) {
        *nodes = queue->capture_nodes;
    }
    if (node_count != NULL) {
        *node_count = queue->capture_node_count;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                    cuuint64_t *id_out)
{
    return capture_info(hStream, captureStatus_out, id_out, NULL, NULL, NULL);
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
                                       cuuint64_t *id_out, CUgraph *graph_out,
                                       const CUgraphNode **dependencies_out,
                                       size_t *numDependencies_out)
{
    return capture_info(hStream, captureStatus_out, id_out, graph_out, dependencies_out,
                        numDependencies_out);
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
