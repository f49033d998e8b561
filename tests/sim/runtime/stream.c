/* SPDX-License-Identifier: MIT */
/* Streams, events, capture. */
#include "driver.h"
#include "rt_api.h"

cudaError_t rt_cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority)
{
    RT_CALL(cuStreamCreateWithPriority, pStream, flags, priority);
}

cudaError_t rt_cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    RT_CALL(cuStreamCreateWithPriority, pStream, flags, 0);
}

cudaError_t rt_cudaStreamCreate(cudaStream_t *pStream)
{
    RT_CALL(cuStreamCreateWithPriority, pStream, 0, 0);
}

cudaError_t rt_cudaStreamDestroy(cudaStream_t stream)
{
    RT_CALL(cuStreamDestroy, stream);
}

cudaError_t rt_cudaStreamSynchronize(cudaStream_t stream)
{
    RT_CALL(cuStreamSynchronize, stream);
}

cudaError_t rt_cudaStreamQuery(cudaStream_t stream)
{
    RT_CALL(cuStreamQuery, stream);
}

cudaError_t rt_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    RT_CALL(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t rt_cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
    RT_CALL(cuStreamGetFlags, hStream, flags);
}

cudaError_t rt_cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
    RT_CALL(cuStreamGetPriority, hStream, priority);
}

cudaError_t rt_cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId)
{
    RT_CALL(cuStreamGetId, hStream, streamId);
}

cudaError_t rt_cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
    RT_CALL(cuStreamGetDevice, hStream, device);
}

cudaError_t rt_cudaStreamSetAttribute(cudaStream_t hStream, cudaStreamAttrID attr,
                                      const cudaStreamAttrValue *value)
{
    RT_CALL(cuStreamSetAttribute, hStream, (CUstreamAttrID)attr, (const CUstreamAttrValue *)value);
}

cudaError_t rt_cudaStreamGetAttribute(cudaStream_t hStream, cudaStreamAttrID attr,
                                      cudaStreamAttrValue *value_out)
{
    RT_CALL(cuStreamGetAttribute, hStream, (CUstreamAttrID)attr, (CUstreamAttrValue *)value_out);
}

cudaError_t rt_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    RT_CALL(cuLaunchHostFunc, stream, fn, userData);
}

/* The two callback types differ in the enum of their status only. */
cudaError_t rt_cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                     void *userData, unsigned int flags)
{
    union {
        cudaStreamCallback_t runtime;
        CUstreamCallback driver;
    } either = {.runtime = callback};

    RT_CALL(cuStreamAddCallback, stream, either.driver, userData, flags);
}

cudaError_t rt_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    RT_CALL(cuEventCreate, event, flags);
}

cudaError_t rt_cudaEventCreate(cudaEvent_t *event)
{
    RT_CALL(cuEventCreate, event, 0);
}

cudaError_t rt_cudaEventDestroy(cudaEvent_t event)
{
    RT_CALL(cuEventDestroy, event);
}

cudaError_t rt_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    RT_CALL(cuEventRecord, event, stream);
}

cudaError_t rt_cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    RT_CALL(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t rt_cudaEventQuery(cudaEvent_t event)
{
    RT_CALL(cuEventQuery, event);
}

cudaError_t rt_cudaEventSynchronize(cudaEvent_t event)
{
    RT_CALL(cuEventSynchronize, event);
}

cudaError_t rt_cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    RT_CALL(cuEventElapsedTime, ms, start, end);
}

cudaError_t rt_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    RT_CALL(cuStreamBeginCapture, stream, (CUstreamCaptureMode)mode);
}

cudaError_t rt_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
    RT_CALL(cuStreamEndCapture, stream, pGraph);
}

cudaError_t rt_cudaStreamIsCapturing(cudaStream_t stream,
                                     enum cudaStreamCaptureStatus *pCaptureStatus)
{
    RT_CALL(cuStreamIsCapturing, stream, (CUstreamCaptureStatus *)pCaptureStatus);
}

cudaError_t rt_cudaStreamGetCaptureInfo(cudaStream_t stream,
                                        enum cudaStreamCaptureStatus *captureStatus_out,
                                        unsigned long long *id_out, cudaGraph_t *graph_out,
                                        const cudaGraphNode_t **dependencies_out,
                                        const cudaGraphEdgeData **edgeData_out,
                                        size_t *numDependencies_out)
{
    cuuint64_t id = 0;
    cudaError_t result = rt_enter();

    if (result != cudaSuccess) {
        return result;
    }
    result = (cudaError_t)rt_driver()->cuStreamGetCaptureInfo(
        stream, (CUstreamCaptureStatus *)captureStatus_out, &id, graph_out, dependencies_out,
        (const CUgraphEdgeData **)edgeData_out, numDependencies_out);
    if (result == cudaSuccess && id_out != NULL) {
        *id_out = id;
    }
    return result;
}

cudaError_t rt_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    RT_CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}

cudaError_t rt_cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
    RT_CALL(cuStreamCopyAttributes, dst, src);
}
