/* SPDX-License-Identifier: MIT */
/* What nodes of one kind are asked and told after they were added. */
#include "driver.h"
#include "rt_api.h"
#include "symbol.h"

#include <string.h>

cudaError_t rt_cudaGraphKernelNodeGetParams(cudaGraphNode_t node,
                                            struct cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS params;
    cudaError_t result = rt_enter();

    if (result != cudaSuccess || pNodeParams == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    if (rt_driver()->cuGraphKernelNodeGetParams == NULL) {
        return cudaErrorCallRequiresNewerDriver;
    }
    result = (cudaError_t)rt_driver()->cuGraphKernelNodeGetParams(node, &params);
    if (result == cudaSuccess) {
        const void *kernel = params.kern != NULL ? (const void *)params.kern
                                                 : (const void *)params.func;
        *pNodeParams = (struct cudaKernelNodeParams){
            .func = (void *)rt_symbol_of_kernel((CUkernel)kernel),
            .gridDim = {params.gridDimX, params.gridDimY, params.gridDimZ},
            .blockDim = {params.blockDimX, params.blockDimY, params.blockDimZ},
            .sharedMemBytes = params.sharedMemBytes,
            .kernelParams = params.kernelParams,
            .extra = params.extra};
    }
    return result;
}

cudaError_t rt_cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc)
{
    RT_CALL(cuGraphKernelNodeCopyAttributes, hDst, hSrc);
}

cudaError_t rt_cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode, cudaKernelNodeAttrID attr,
                                               cudaKernelNodeAttrValue *value_out)
{
    RT_CALL(cuGraphKernelNodeGetAttribute, hNode, (CUkernelNodeAttrID)attr,
            (CUkernelNodeAttrValue *)value_out);
}

cudaError_t rt_cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode, cudaKernelNodeAttrID attr,
                                               const cudaKernelNodeAttrValue *value)
{
    RT_CALL(cuGraphKernelNodeSetAttribute, hNode, (CUkernelNodeAttrID)attr,
            (const CUkernelNodeAttrValue *)value);
}

cudaError_t rt_cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                            struct cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D copy;
    cudaError_t result = rt_enter();

    if (result != cudaSuccess || pNodeParams == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    result = (cudaError_t)rt_driver()->cuGraphMemcpyNodeGetParams(node, &copy);
    if (result == cudaSuccess) {
        rt_volume_parms(&copy, pNodeParams);
    }
    return result;
}

cudaError_t rt_cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                            const struct cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D copy;

    if (pNodeParams == NULL) {
        return cudaErrorInvalidValue;
    }
    rt_volume(pNodeParams, &copy);
    RT_CALL(cuGraphMemcpyNodeSetParams, node, &copy);
}

cudaError_t rt_cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src,
                                              size_t count, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D copy = rt_line(dst, src, count);

    (void)kind;
    RT_CALL(cuGraphMemcpyNodeSetParams, node, &copy);
}

cudaError_t rt_cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                const struct cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D copy;

    if (pNodeParams == NULL) {
        return cudaErrorInvalidValue;
    }
    rt_volume(pNodeParams, &copy);
    RT_CALL(cuGraphExecMemcpyNodeSetParams, hGraphExec, node, &copy, rt_current_context());
}

cudaError_t rt_cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                              const cudaGraphNode_t *pDependencies,
                                              size_t numDependencies, const void *symbol,
                                              const void *src, size_t count, size_t offset,
                                              enum cudaMemcpyKind kind)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess
               ? rt_cudaGraphAddMemcpyNode1D(pGraphNode, graph, pDependencies, numDependencies,
                                             address, src, count, kind)
               : result;
}

cudaError_t rt_cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                                const cudaGraphNode_t *pDependencies,
                                                size_t numDependencies, void *dst,
                                                const void *symbol, size_t count, size_t offset,
                                                enum cudaMemcpyKind kind)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess
               ? rt_cudaGraphAddMemcpyNode1D(pGraphNode, graph, pDependencies, numDependencies, dst,
                                             address, count, kind)
               : result;
}

cudaError_t rt_cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
                                                    const void *src, size_t count, size_t offset,
                                                    enum cudaMemcpyKind kind)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess
               ? rt_cudaGraphMemcpyNodeSetParams1D(node, address, src, count, kind)
               : result;
}

cudaError_t rt_cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
                                                      const void *symbol, size_t count,
                                                      size_t offset, enum cudaMemcpyKind kind)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess
               ? rt_cudaGraphMemcpyNodeSetParams1D(node, dst, address, count, kind)
               : result;
}

cudaError_t rt_cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec,
                                                        cudaGraphNode_t node, const void *symbol,
                                                        const void *src, size_t count,
                                                        size_t offset, enum cudaMemcpyKind kind)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess
               ? rt_cudaGraphExecMemcpyNodeSetParams1D(hGraphExec, node, address, src, count, kind)
               : result;
}

cudaError_t rt_cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec,
                                                          cudaGraphNode_t node, void *dst,
                                                          const void *symbol, size_t count,
                                                          size_t offset, enum cudaMemcpyKind kind)
{
    char *address;
    cudaError_t result = rt_symbol_address(symbol, offset, count, &address);

    return result == cudaSuccess
               ? rt_cudaGraphExecMemcpyNodeSetParams1D(hGraphExec, node, dst, address, count, kind)
               : result;
}

/* Both shapes of the parameters of sets and host functions are the same but for names. */
cudaError_t rt_cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                            struct cudaMemsetParams *pNodeParams)
{
    _Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "one size");
    RT_CALL(cuGraphMemsetNodeGetParams, node, (CUDA_MEMSET_NODE_PARAMS *)pNodeParams);
}

cudaError_t rt_cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                            const struct cudaMemsetParams *pNodeParams)
{
    RT_CALL(cuGraphMemsetNodeSetParams, node, (const CUDA_MEMSET_NODE_PARAMS *)pNodeParams);
}

cudaError_t rt_cudaGraphHostNodeGetParams(cudaGraphNode_t node,
                                          struct cudaHostNodeParams *pNodeParams)
{
    CUDA_HOST_NODE_PARAMS params;
    cudaError_t result = rt_enter();

    if (result != cudaSuccess || pNodeParams == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    result = (cudaError_t)rt_driver()->cuGraphHostNodeGetParams(node, &params);
    if (result == cudaSuccess) {
        *pNodeParams = (struct cudaHostNodeParams){.fn = params.fn, .userData = params.userData};
    }
    return result;
}

cudaError_t rt_cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                          const struct cudaHostNodeParams *pNodeParams)
{
    if (pNodeParams == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_HOST_NODE_PARAMS params = {.fn = pNodeParams->fn, .userData = pNodeParams->userData};
    RT_CALL(cuGraphHostNodeSetParams, node, &params);
}

cudaError_t rt_cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                              struct cudaMemAllocNodeParams *params_out)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    cudaError_t result = rt_enter();

    if (result != cudaSuccess || params_out == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    if (rt_driver()->cuGraphMemAllocNodeGetParams == NULL) {
        return cudaErrorCallRequiresNewerDriver;
    }
    result = (cudaError_t)rt_driver()->cuGraphMemAllocNodeGetParams(node, &params);
    if (result == cudaSuccess) {
        memset(params_out, 0, sizeof(*params_out));
        params_out->poolProps.allocType = (enum cudaMemAllocationType)params.poolProps.allocType;
        params_out->poolProps.handleTypes =
            (enum cudaMemAllocationHandleType)params.poolProps.handleTypes;
        params_out->poolProps.location.type =
            (enum cudaMemLocationType)params.poolProps.location.type;
        params_out->poolProps.location.id = params.poolProps.location.id;
        params_out->bytesize = params.bytesize;
        params_out->dptr = (void *)params.dptr;
    }
    return result;
}

cudaError_t rt_cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr_out)
{
    RT_CALL(cuGraphMemFreeNodeGetParams, node, dptr_out);
}

cudaError_t rt_cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out)
{
    RT_CALL(cuGraphEventRecordNodeGetEvent, node, event_out);
}

cudaError_t rt_cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    RT_CALL(cuGraphEventRecordNodeSetEvent, node, event);
}

cudaError_t rt_cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out)
{
    RT_CALL(cuGraphEventWaitNodeGetEvent, node, event_out);
}

cudaError_t rt_cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    RT_CALL(cuGraphEventWaitNodeSetEvent, node, event);
}

cudaError_t rt_cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec,
                                                    cudaGraphNode_t hNode, cudaEvent_t event)
{
    RT_CALL(cuGraphExecEventRecordNodeSetEvent, hGraphExec, hNode, event);
}

cudaError_t rt_cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode,
                                                  cudaEvent_t event)
{
    RT_CALL(cuGraphExecEventWaitNodeSetEvent, hGraphExec, hNode, event);
}

cudaError_t rt_cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                              cudaGraphInstantiateParams *instantiateParams)
{
    _Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS),
                   "one size");
    RT_CALL(cuGraphInstantiateWithParams, pGraphExec, graph,
            (CUDA_GRAPH_INSTANTIATE_PARAMS *)instantiateParams);
}

cudaError_t rt_cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    RT_CALL(cuGraphDebugDotPrint, graph, path, flags);
}
