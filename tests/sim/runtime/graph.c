/* SPDX-License-Identifier: MIT */
/* Graphs: the parameters of nodes in the driver's words. */
#include "driver.h"
#include "rt_api.h"
#include "symbol.h"

#include <string.h>

cudaError_t rt_cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
    RT_CALL(cuGraphCreate, pGraph, flags);
}

cudaError_t rt_cudaGraphDestroy(cudaGraph_t graph)
{
    RT_CALL(cuGraphDestroy, graph);
}

cudaError_t rt_cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
    RT_CALL(cuGraphClone, pGraphClone, originalGraph);
}

cudaError_t rt_cudaGraphNodeFindInClone(cudaGraphNode_t *pNode, cudaGraphNode_t originalNode,
                                        cudaGraph_t clonedGraph)
{
    RT_CALL(cuGraphNodeFindInClone, pNode, originalNode, clonedGraph);
}

cudaError_t rt_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
    RT_CALL(cuGraphGetNodes, graph, nodes, numNodes);
}

cudaError_t rt_cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *pRootNodes,
                                     size_t *pNumRootNodes)
{
    RT_CALL(cuGraphGetRootNodes, graph, pRootNodes, pNumRootNodes);
}

cudaError_t rt_cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                 cudaGraphEdgeData *edgeData, size_t *numEdges)
{
    RT_CALL(cuGraphGetEdges, graph, from, to, (CUgraphEdgeData *)edgeData, numEdges);
}

cudaError_t rt_cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
    RT_CALL(cuGraphNodeGetType, node, (CUgraphNodeType *)pType);
}

cudaError_t rt_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *pDependencies,
                                            cudaGraphEdgeData *edgeData, size_t *pNumDependencies)
{
    RT_CALL(cuGraphNodeGetDependencies, node, pDependencies, (CUgraphEdgeData *)edgeData,
            pNumDependencies);
}

cudaError_t rt_cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edgeData, size_t numDependencies)
{
    RT_CALL(cuGraphAddDependencies, graph, from, to, (const CUgraphEdgeData *)edgeData,
            numDependencies);
}

cudaError_t rt_cudaGraphDestroyNode(cudaGraphNode_t node)
{
    RT_CALL(cuGraphDestroyNode, node);
}

static cudaError_t kernel_params(const struct cudaKernelNodeParams *from,
                                 CUDA_KERNEL_NODE_PARAMS *to)
{
    CUkernel kernel;

    if (from == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t result = rt_symbol_kernel(from->func, &kernel);
    *to = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = from->gridDim.x,
                                    .gridDimY = from->gridDim.y,
                                    .gridDimZ = from->gridDim.z,
                                    .blockDimX = from->blockDim.x,
                                    .blockDimY = from->blockDim.y,
                                    .blockDimZ = from->blockDim.z,
                                    .sharedMemBytes = from->sharedMemBytes,
                                    .kernelParams = from->kernelParams,
                                    .extra = from->extra};
    if (result == cudaSuccess) {
        to->kern = kernel;
    }
    return result;
}

cudaError_t rt_cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                      const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS params;
    cudaError_t result = kernel_params(pNodeParams, &params);

    if (result != cudaSuccess) {
        return result;
    }
    RT_CALL(cuGraphAddKernelNode, pGraphNode, graph, pDependencies, numDependencies, &params);
}

cudaError_t rt_cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                            const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS params;
    cudaError_t result = kernel_params(pNodeParams, &params);

    if (result != cudaSuccess) {
        return result;
    }
    RT_CALL(cuGraphKernelNodeSetParams, node, &params);
}

cudaError_t rt_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                const struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS params;
    cudaError_t result = kernel_params(pNodeParams, &params);

    if (result != cudaSuccess) {
        return result;
    }
    RT_CALL(cuGraphExecKernelNodeSetParams, hGraphExec, node, &params);
}

cudaError_t rt_cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                      const struct cudaMemcpy3DParms *pCopyParams)
{
    CUDA_MEMCPY3D copy;

    if (pCopyParams == NULL) {
        return cudaErrorInvalidValue;
    }
    rt_volume(pCopyParams, &copy);
    RT_CALL(cuGraphAddMemcpyNode, pGraphNode, graph, pDependencies, numDependencies, &copy,
            rt_current_context());
}

cudaError_t rt_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t *pDependencies,
                                        size_t numDependencies, void *dst, const void *src,
                                        size_t count, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy = rt_line(dst, src, count);

    (void)kind;
    RT_CALL(cuGraphAddMemcpyNode, pGraphNode, graph, pDependencies, numDependencies, &copy,
            rt_current_context());
}

cudaError_t rt_cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                  void *dst, const void *src, size_t count,
                                                  enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy = rt_line(dst, src, count);

    (void)kind;
    RT_CALL(cuGraphExecMemcpyNodeSetParams, hGraphExec, node, &copy, rt_current_context());
}

static CUDA_MEMSET_NODE_PARAMS set_params(const struct cudaMemsetParams *from)
{
    return (CUDA_MEMSET_NODE_PARAMS){.dst = (CUdeviceptr)from->dst,
                                     .pitch = from->pitch,
                                     .value = from->value,
                                     .elementSize = from->elementSize,
                                     .width = from->width,
                                     .height = from->height};
}

cudaError_t rt_cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                      const struct cudaMemsetParams *pMemsetParams)
{
    if (pMemsetParams == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_MEMSET_NODE_PARAMS params = set_params(pMemsetParams);
    RT_CALL(cuGraphAddMemsetNode, pGraphNode, graph, pDependencies, numDependencies, &params,
            rt_current_context());
}

cudaError_t rt_cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                const struct cudaMemsetParams *pNodeParams)
{
    if (pNodeParams == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_MEMSET_NODE_PARAMS params = set_params(pNodeParams);
    RT_CALL(cuGraphExecMemsetNodeSetParams, hGraphExec, node, &params, rt_current_context());
}

cudaError_t rt_cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                    const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                    const struct cudaHostNodeParams *pNodeParams)
{
    if (pNodeParams == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_HOST_NODE_PARAMS params = {.fn = pNodeParams->fn, .userData = pNodeParams->userData};
    RT_CALL(cuGraphAddHostNode, pGraphNode, graph, pDependencies, numDependencies, &params);
}

cudaError_t rt_cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                              const struct cudaHostNodeParams *pNodeParams)
{
    if (pNodeParams == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_HOST_NODE_PARAMS params = {.fn = pNodeParams->fn, .userData = pNodeParams->userData};
    RT_CALL(cuGraphExecHostNodeSetParams, hGraphExec, node, &params);
}

cudaError_t rt_cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies, size_t numDependencies)
{
    RT_CALL(cuGraphAddEmptyNode, pGraphNode, graph, pDependencies, numDependencies);
}

cudaError_t rt_cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                          const cudaGraphNode_t *pDependencies,
                                          size_t numDependencies, cudaGraph_t childGraph)
{
    RT_CALL(cuGraphAddChildGraphNode, pGraphNode, graph, pDependencies, numDependencies,
            childGraph);
}

cudaError_t rt_cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                           const cudaGraphNode_t *pDependencies,
                                           size_t numDependencies, cudaEvent_t event)
{
    RT_CALL(cuGraphAddEventRecordNode, pGraphNode, graph, pDependencies, numDependencies, event);
}

cudaError_t rt_cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                         const cudaGraphNode_t *pDependencies,
                                         size_t numDependencies, cudaEvent_t event)
{
    RT_CALL(cuGraphAddEventWaitNode, pGraphNode, graph, pDependencies, numDependencies, event);
}

cudaError_t rt_cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t *pDependencies,
                                        size_t numDependencies,
                                        struct cudaMemAllocNodeParams *nodeParams)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {0};
    cudaError_t result = rt_enter();

    if (result != cudaSuccess || nodeParams == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    if (rt_driver()->cuGraphAddMemAllocNode == NULL) {
        return cudaErrorCallRequiresNewerDriver;
    }
    params.poolProps.allocType = (CUmemAllocationType)nodeParams->poolProps.allocType;
    params.poolProps.handleTypes = (CUmemAllocationHandleType)nodeParams->poolProps.handleTypes;
    params.poolProps.location.type = (CUmemLocationType)nodeParams->poolProps.location.type;
    params.poolProps.location.id = nodeParams->poolProps.location.id;
    params.bytesize = nodeParams->bytesize;
    result = (cudaError_t)rt_driver()->cuGraphAddMemAllocNode(pGraphNode, graph, pDependencies,
                                                              numDependencies, &params);
    nodeParams->dptr = (void *)params.dptr;
    return result;
}

cudaError_t rt_cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t *pDependencies, size_t numDependencies,
                                       void *dptr)
{
    RT_CALL(cuGraphAddMemFreeNode, pGraphNode, graph, pDependencies, numDependencies,
            (CUdeviceptr)dptr);
}

cudaError_t rt_cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                              void *value)
{
    RT_CALL(cuDeviceGetGraphMemAttribute, device, (CUgraphMem_attribute)attr, value);
}

cudaError_t rt_cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                              void *value)
{
    RT_CALL(cuDeviceSetGraphMemAttribute, device, (CUgraphMem_attribute)attr, value);
}

cudaError_t rt_cudaDeviceGraphMemTrim(int device)
{
    RT_CALL(cuDeviceGraphMemTrim, device);
}

cudaError_t rt_cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                    unsigned long long flags)
{
    RT_CALL(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}

cudaError_t rt_cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                             unsigned long long flags)
{
    RT_CALL(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}

cudaError_t rt_cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                   cudaGraphExecUpdateResultInfo *resultInfo)
{
    RT_CALL(cuGraphExecUpdate, hGraphExec, hGraph, (CUgraphExecUpdateResultInfo *)resultInfo);
}

cudaError_t rt_cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                       unsigned int isEnabled)
{
    RT_CALL(cuGraphNodeSetEnabled, hGraphExec, hNode, isEnabled);
}

cudaError_t rt_cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    RT_CALL(cuGraphUpload, graphExec, stream);
}

cudaError_t rt_cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    RT_CALL(cuGraphLaunch, graphExec, stream);
}

cudaError_t rt_cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
    RT_CALL(cuGraphExecDestroy, graphExec);
}

cudaError_t rt_cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                             const cudaGraphNode_t *dependencies,
                                             const cudaGraphEdgeData *dependencyData,
                                             size_t numDependencies,
                                             enum cudaStreamCaptureMode mode)
{
    RT_CALL(cuStreamBeginCaptureToGraph, stream, graph, dependencies,
            (const CUgraphEdgeData *)dependencyData, numDependencies, (CUstreamCaptureMode)mode);
}

cudaError_t rt_cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                   cudaGraphNode_t *dependencies,
                                                   const cudaGraphEdgeData *dependencyData,
                                                   size_t numDependencies, unsigned int flags)
{
    RT_CALL(cuStreamUpdateCaptureDependencies, stream, dependencies,
            (const CUgraphEdgeData *)dependencyData, numDependencies, flags);
}
