/* SPDX-License-Identifier: MIT */
/* Explicit nodes: their parameters in and out. */
#include "graph.h"
#include "module.h"
#include "sim_api.h"

#include <string.h>

CUresult sim_node_add(CUgraphNode *node_out, CUgraph graph, const CUgraphNode *before,
                      size_t before_count, const struct sim_work *work)
{
    if (node_out == NULL || sim_graph_of(graph) == NULL || (before == NULL && before_count != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *node_out = sim_graph_add(graph, before, before_count, work);
    return *node_out == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

struct CUgraphNode_st *sim_node_find(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type)
{
    struct CUgraphNode_st *found = exec != NULL ? sim_exec_node(exec, node) : sim_node_of(node);

    return found != NULL && found->work.type == type ? found : NULL;
}

CUresult sim_node_replace(CUgraphExec exec, CUgraphNode handle, const struct sim_work *work)
{
    struct CUgraphNode_st *node = sim_node_find(exec, handle, work->type);

    if (node == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work old = node->work;
    sim_work_copy(&node->work, work);
    sim_work_fini(&old);
    return CUDA_SUCCESS;
}

static bool read_kernel(struct sim_work *work, const CUDA_KERNEL_NODE_PARAMS *params)
{
    const void *handle = params == NULL         ? NULL
                         : params->func != NULL ? (const void *)params->func
                                                : (const void *)params->kern;
    const struct sim_kernel *kernel = sim_kernel_of(handle);

    if (kernel == NULL) {
        return false;
    }
    *work = (struct sim_work){
        .type = CU_GRAPH_NODE_TYPE_KERNEL,
        .kernel = {.kernel = kernel,
                   .grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
                   .block = {params->blockDimX, params->blockDimY, params->blockDimZ},
                   .shared_bytes = params->sharedMemBytes,
                   .arguments = params->kernelParams}};
    return params->gridDimX != 0 && params->blockDimX != 0;
}

/* The form of 10.0 lacks the kernel and the context at the end. */
static CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS wide = {0};

    if (params != NULL) {
        memcpy(&wide, params, sizeof(*params));
    }
    return wide;
}

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct sim_work work;

    if (!read_kernel(&work, nodeParams)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work);
}

CUresult sim_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS wide = widen(nodeParams);

    return sim_cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &wide);
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_KERNEL);

    if (node == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct sim_kernel_work *work = &node->work.kernel;
    *nodeParams = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)work->kernel,
                                            .gridDimX = work->grid[0],
                                            .gridDimY = work->grid[1],
                                            .gridDimZ = work->grid[2],
                                            .blockDimX = work->block[0],
                                            .blockDimY = work->block[1],
                                            .blockDimZ = work->block[2],
                                            .sharedMemBytes = work->shared_bytes,
                                            .kernelParams = work->arguments};
    return CUDA_SUCCESS;
}

static CUresult set_kernel(CUgraphExec exec, CUgraphNode node,
                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    struct sim_work work;

    return read_kernel(&work, params) ? sim_node_replace(exec, node, &work)
                                      : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return set_kernel(NULL, hNode, nodeParams);
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    return hGraphExec == NULL ? CUDA_ERROR_INVALID_VALUE
                              : set_kernel(hGraphExec, hNode, nodeParams);
}

CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS wide = widen(nodeParams);

    return sim_cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &wide);
}

static struct sim_work copy_work(const CUDA_MEMCPY3D *params)
{
    return (struct sim_work){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *params};
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    (void)ctx;
    if (copyParams == NULL || copyParams->WidthInBytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = copy_work(copyParams);
    return sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work);
}

CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_MEMCPY);

    if (node == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *nodeParams = node->work.copy;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    if (nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = copy_work(nodeParams);
    return sim_node_replace(NULL, hNode, &work);
}

CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    (void)ctx;
    if (copyParams == NULL || hGraphExec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = copy_work(copyParams);
    return sim_node_replace(hGraphExec, hNode, &work);
}

static bool is_set_valid(const CUDA_MEMSET_NODE_PARAMS *params)
{
    return params != NULL && params->dst != 0 && params->width != 0 && params->height != 0 &&
           (params->elementSize == 1 || params->elementSize == 2 || params->elementSize == 4);
}

static struct sim_work set_work(const CUDA_MEMSET_NODE_PARAMS *params)
{
    return (struct sim_work){.type = CU_GRAPH_NODE_TYPE_MEMSET, .set = *params};
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies, size_t numDependencies,
                                  const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    (void)ctx;
    if (!is_set_valid(memsetParams)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = set_work(memsetParams);
    return sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work);
}

CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_MEMSET);

    if (node == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *nodeParams = node->work.set;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemsetNodeSetParams(CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    if (!is_set_valid(nodeParams)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = set_work(nodeParams);
    return sim_node_replace(NULL, hNode, &work);
}

CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                            CUcontext ctx)
{
    (void)ctx;
    if (!is_set_valid(memsetParams) || hGraphExec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = set_work(memsetParams);
    return sim_node_replace(hGraphExec, hNode, &work);
}

static struct sim_work host_work(const CUDA_HOST_NODE_PARAMS *params)
{
    return (struct sim_work){.type = CU_GRAPH_NODE_TYPE_HOST,
                             .host = {.function = params->fn, .data = params->userData}};
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                const CUgraphNode *dependencies, size_t numDependencies,
                                const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    if (nodeParams == NULL || nodeParams->fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = host_work(nodeParams);
    return sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work);
}

CUresult sim_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_HOST);

    if (node == NULL || nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    nodeParams->fn = node->work.host.function;
    nodeParams->userData = node->work.host.data;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    if (nodeParams == NULL || nodeParams->fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = host_work(nodeParams);
    return sim_node_replace(NULL, hNode, &work);
}

CUresult sim_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                          const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    if (nodeParams == NULL || nodeParams->fn == NULL || hGraphExec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = host_work(nodeParams);
    return sim_node_replace(hGraphExec, hNode, &work);
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies, size_t numDependencies)
{
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

    return sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work);
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies, size_t numDependencies,
                                      CUgraph childGraph)
{
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = childGraph};

    if (sim_graph_of(childGraph) == NULL || childGraph == hGraph) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_graph_has_memory(childGraph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work);
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_GRAPH);

    if (node == NULL || phGraph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *phGraph = node->work.child;
    return CUDA_SUCCESS;
}

static CUresult add_event(CUgraphNode *node_out, CUgraph graph, const CUgraphNode *before,
                          size_t before_count, CUgraphNodeType type, CUevent event)
{
    struct sim_work work = {.type = type, .event = event};

    return event == NULL ? CUDA_ERROR_INVALID_VALUE
                         : sim_node_add(node_out, graph, before, before_count, &work);
}

CUresult sim_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies, size_t numDependencies,
                                       CUevent event)
{
    return add_event(phGraphNode, hGraph, dependencies, numDependencies,
                     CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult sim_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies, size_t numDependencies,
                                     CUevent event)
{
    return add_event(phGraphNode, hGraph, dependencies, numDependencies,
                     CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult sim_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies, size_t numDependencies,
                                    CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    if (nodeParams == NULL || nodeParams->bytesize == 0 ||
        nodeParams->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        nodeParams->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
        sim_check_device(nodeParams->poolProps.location.id) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_work work = {
        .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        .memory = sim_graph_memory_create(nodeParams->poolProps.location.id, nodeParams->bytesize)};
    if (work.memory == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work);
    nodeParams->dptr = work.memory->address;
    sim_graph_memory_drop(work.memory);
    return result;
}

CUresult sim_cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC);

    if (node == NULL || params_out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct sim_graph_memory *memory = node->work.memory;
    *params_out = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = memory->device}},
        .bytesize = memory->size_bytes,
        .dptr = memory->address};
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies, size_t numDependencies,
                                   CUdeviceptr dptr)
{
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
                            .memory = sim_graph_memory_of(dptr)};

    if (work.memory == NULL || work.memory->is_freed_by_graph) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_node_add(phGraphNode, hGraph, dependencies, numDependencies, &work);
    work.memory->is_freed_by_graph |= result == CUDA_SUCCESS;
    return result;
}

CUresult sim_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_MEM_FREE);

    if (node == NULL || dptr_out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *dptr_out = node->work.memory->address;
    return CUDA_SUCCESS;
}
