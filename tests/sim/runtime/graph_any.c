/* SPDX-License-Identifier: MIT */
/* Nodes by the calls for all types, and what programs ask of nodes. */
#include "driver.h"
#include "rt_api.h"
#include "symbol.h"

#include <string.h>

/* The driver's shape of the parameters. Those of most types are equal; the driver's say the
 * context, which for the runtime is the current one. */
static cudaError_t any_params(const struct cudaGraphNodeParams *from, CUgraphNodeParams *to)
{
    CUcontext context = NULL;
    CUkernel kernel;
    cudaError_t result = rt_enter();

    if (result != cudaSuccess || from == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    rt_driver()->cuCtxGetCurrent(&context);
    _Static_assert(sizeof(*from) == sizeof(*to), "one size");
    memcpy(to, from, sizeof(*to));
    switch (from->type) {
    case cudaGraphNodeTypeKernel:
        result = rt_symbol_kernel(from->kernel.func, &kernel);
        to->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.gridDimX = from->kernel.gridDim.x,
                                                  .gridDimY = from->kernel.gridDim.y,
                                                  .gridDimZ = from->kernel.gridDim.z,
                                                  .blockDimX = from->kernel.blockDim.x,
                                                  .blockDimY = from->kernel.blockDim.y,
                                                  .blockDimZ = from->kernel.blockDim.z,
                                                  .sharedMemBytes = from->kernel.sharedMemBytes,
                                                  .kernelParams = from->kernel.kernelParams,
                                                  .extra = from->kernel.extra,
                                                  .ctx = context};
        if (result == cudaSuccess) {
            to->kernel.kern = kernel;
        }
        break;
    case cudaGraphNodeTypeMemcpy:
        memset(&to->memcpy, 0, sizeof(to->memcpy));
        to->memcpy.flags = from->memcpy.flags;
        to->memcpy.copyCtx = context;
        rt_volume(&from->memcpy.copyParams, &to->memcpy.copyParams);
        break;
    case cudaGraphNodeTypeMemset: to->memset.ctx = context; break;
    case cudaGraphNodeTypeConditional: to->conditional.ctx = context; break;
    default: break;
    }
    return result;
}

/* What the driver writes back. */
static void take_results(struct cudaGraphNodeParams *to, const CUgraphNodeParams *from)
{
    if (to->type == cudaGraphNodeTypeMemAlloc) {
        to->alloc.dptr = (void *)from->alloc.dptr;
    } else if (to->type == cudaGraphNodeTypeConditional) {
        to->conditional.phGraph_out = from->conditional.phGraph_out;
    }
}

cudaError_t rt_cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                const cudaGraphNode_t *pDependencies,
                                const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                                struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams params;
    cudaError_t result = any_params(nodeParams, &params);

    if (result != cudaSuccess || rt_driver()->cuGraphAddNode == NULL) {
        return result != cudaSuccess ? result : cudaErrorCallRequiresNewerDriver;
    }
    result = (cudaError_t)rt_driver()->cuGraphAddNode(pGraphNode, graph, pDependencies,
                                                      (const CUgraphEdgeData *)dependencyData,
                                                      numDependencies, &params);
    if (result == cudaSuccess) {
        take_results(nodeParams, &params);
    }
    return result;
}

cudaError_t rt_cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams params;
    cudaError_t result = any_params(nodeParams, &params);

    if (result != cudaSuccess) {
        return result;
    }
    RT_CALL(cuGraphNodeSetParams, node, &params);
}

cudaError_t rt_cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                          struct cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams params;
    cudaError_t result = any_params(nodeParams, &params);

    if (result != cudaSuccess) {
        return result;
    }
    RT_CALL(cuGraphExecNodeSetParams, graphExec, node, &params);
}

cudaError_t rt_cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out,
                                                cudaGraph_t graph, unsigned int defaultLaunchValue,
                                                unsigned int flags)
{
    CUcontext context = NULL;
    cudaError_t result = rt_enter();

    if (result != cudaSuccess) {
        return result;
    }
    rt_driver()->cuCtxGetCurrent(&context);
    RT_CALL(cuGraphConditionalHandleCreate, (CUgraphConditionalHandle *)pHandle_out, graph, context,
            defaultLaunchValue, flags);
}

cudaError_t rt_cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *pGraph)
{
    RT_CALL(cuGraphChildGraphNodeGetGraph, node, pGraph);
}

cudaError_t rt_cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec,
                                                    cudaGraphNode_t node, cudaGraph_t childGraph)
{
    RT_CALL(cuGraphExecChildGraphNodeSetParams, hGraphExec, node, childGraph);
}

cudaError_t rt_cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
                                              cudaGraphNode_t *pDependentNodes,
                                              cudaGraphEdgeData *edgeData,
                                              size_t *pNumDependentNodes)
{
    RT_CALL(cuGraphNodeGetDependentNodes, node, pDependentNodes, (CUgraphEdgeData *)edgeData,
            pNumDependentNodes);
}

cudaError_t rt_cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                           const cudaGraphNode_t *to,
                                           const cudaGraphEdgeData *edgeData,
                                           size_t numDependencies)
{
    RT_CALL(cuGraphRemoveDependencies, graph, from, to, (const CUgraphEdgeData *)edgeData,
            numDependencies);
}

cudaError_t rt_cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                       unsigned int *isEnabled)
{
    RT_CALL(cuGraphNodeGetEnabled, hGraphExec, hNode, isEnabled);
}

cudaError_t rt_cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags)
{
    RT_CALL(cuGraphExecGetFlags, graphExec, (cuuint64_t *)flags);
}

cudaError_t rt_cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes,
                                    size_t count, struct cudaMemcpyAttributes *attrs,
                                    size_t *attrsIdxs, size_t numAttrs, cudaStream_t stream)
{
    RT_CALL(cuMemcpyBatchAsync, (CUdeviceptr *)dsts, (CUdeviceptr *)srcs, (size_t *)sizes, count,
            (CUmemcpyAttributes *)attrs, attrsIdxs, numAttrs, stream);
}
