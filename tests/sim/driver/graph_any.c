/* SPDX-License-Identifier: MIT */
/* Nodes of any type by one call, and the rest of what nodes can be asked. */
#include "conditional.h"
#include "graph.h"
#include "sim_api.h"

#include <stdio.h>
#include <string.h>

/* The bodies exist from then on, empty, and belong to the node. */
static CUresult add_conditional(CUgraphNode *node_out, CUgraph graph, const CUgraphNode *before,
                                size_t before_count, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    unsigned most = params->type == CU_GRAPH_COND_TYPE_IF      ? 2
                    : params->type == CU_GRAPH_COND_TYPE_WHILE ? 1
                                                               : 1024;
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                            .conditional = {.condition = sim_condition_of(params->handle),
                                            .type = params->type,
                                            .body_count = params->size}};

    if (work.conditional.condition == NULL || params->type > CU_GRAPH_COND_TYPE_SWITCH ||
        params->size == 0 || params->size > most) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_node_add(node_out, graph, before, before_count, &work);
    if (result == CUDA_SUCCESS) {
        params->phGraph_out = (*node_out)->work.conditional.bodies;
    }
    return result;
}

static CUresult add_allocation(CUgraphNode *node_out, CUgraph graph, const CUgraphNode *before,
                               size_t before_count, CUDA_MEM_ALLOC_NODE_PARAMS_v2 *params)
{
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 own = {.poolProps = params->poolProps,
                                         .accessDescs = params->accessDescs,
                                         .accessDescCount = params->accessDescCount,
                                         .bytesize = params->bytesize};
    CUresult result = sim_cuGraphAddMemAllocNode(node_out, graph, before, before_count, &own);

    params->dptr = own.dptr;
    return result;
}

static CUDA_BATCH_MEM_OP_NODE_PARAMS batch_of(const CUgraphNodeParams *params)
{
    return (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = params->memOp.ctx,
                                           .count = params->memOp.count,
                                           .paramArray = params->memOp.paramArray,
                                           .flags = params->memOp.flags};
}

static CUDA_HOST_NODE_PARAMS host_of(const CUgraphNodeParams *params)
{
    return (CUDA_HOST_NODE_PARAMS){.fn = params->host.fn, .userData = params->host.userData};
}

static CUDA_MEMSET_NODE_PARAMS set_of(const CUgraphNodeParams *params)
{
    return (CUDA_MEMSET_NODE_PARAMS){.dst = params->memset.dst,
                                     .pitch = params->memset.pitch,
                                     .value = params->memset.value,
                                     .elementSize = params->memset.elementSize,
                                     .width = params->memset.width,
                                     .height = params->memset.height};
}

static CUDA_KERNEL_NODE_PARAMS kernel_of(const CUgraphNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS kernel;

    _Static_assert(sizeof(kernel) == sizeof(params->kernel), "one shape");
    memcpy(&kernel, &params->kernel, sizeof(kernel));
    return kernel;
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
                               const CUgraphNode *dependencies,
                               const CUgraphEdgeData *dependencyData, size_t numDependencies,
                               CUgraphNodeParams *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS set;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch;

    (void)dependencyData;
    if (nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (nodeParams->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        kernel = kernel_of(nodeParams);
        return sim_cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies,
                                           &kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sim_cuGraphAddMemcpyNode(phGraphNode, hGraph, dependencies, numDependencies,
                                        &nodeParams->memcpy.copyParams, nodeParams->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        set = set_of(nodeParams);
        return sim_cuGraphAddMemsetNode(phGraphNode, hGraph, dependencies, numDependencies, &set,
                                        nodeParams->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        host = host_of(nodeParams);
        return sim_cuGraphAddHostNode(phGraphNode, hGraph, dependencies, numDependencies, &host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return sim_cuGraphAddChildGraphNode(phGraphNode, hGraph, dependencies, numDependencies,
                                            nodeParams->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return sim_cuGraphAddEmptyNode(phGraphNode, hGraph, dependencies, numDependencies);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return sim_cuGraphAddEventWaitNode(phGraphNode, hGraph, dependencies, numDependencies,
                                           nodeParams->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return sim_cuGraphAddEventRecordNode(phGraphNode, hGraph, dependencies, numDependencies,
                                             nodeParams->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return add_allocation(phGraphNode, hGraph, dependencies, numDependencies,
                              &nodeParams->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return sim_cuGraphAddMemFreeNode(phGraphNode, hGraph, dependencies, numDependencies,
                                         nodeParams->free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        batch = batch_of(nodeParams);
        return sim_cuGraphAddBatchMemOpNode(phGraphNode, hGraph, dependencies, numDependencies,
                                            &batch);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return add_conditional(phGraphNode, hGraph, dependencies, numDependencies,
                               &nodeParams->conditional);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                            const CUgraphNode *dependencies, size_t numDependencies,
                            CUgraphNodeParams *nodeParams)
{
    return sim_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies,
                                 nodeParams);
}

static CUresult set_event(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event)
{
    struct sim_work work = {.type = type, .event = event};

    return event == NULL ? CUDA_ERROR_INVALID_VALUE : sim_node_replace(exec, node, &work);
}

CUresult sim_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS set;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch;

    if (nodeParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (nodeParams->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        kernel = kernel_of(nodeParams);
        return sim_cuGraphKernelNodeSetParams_v2(hNode, &kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sim_cuGraphMemcpyNodeSetParams(hNode, &nodeParams->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        set = set_of(nodeParams);
        return sim_cuGraphMemsetNodeSetParams(hNode, &set);
    case CU_GRAPH_NODE_TYPE_HOST:
        host = host_of(nodeParams);
        return sim_cuGraphHostNodeSetParams(hNode, &host);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return set_event(NULL, hNode, nodeParams->type, nodeParams->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return set_event(NULL, hNode, nodeParams->type, nodeParams->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        batch = batch_of(nodeParams);
        return sim_cuGraphBatchMemOpNodeSetParams(hNode, &batch);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      CUgraphNodeParams *nodeParams)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS set;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch;

    if (nodeParams == NULL || sim_exec_graph(hGraphExec) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (nodeParams->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        kernel = kernel_of(nodeParams);
        return sim_cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sim_cuGraphExecMemcpyNodeSetParams(hGraphExec, hNode, &nodeParams->memcpy.copyParams,
                                                  nodeParams->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        set = set_of(nodeParams);
        return sim_cuGraphExecMemsetNodeSetParams(hGraphExec, hNode, &set, nodeParams->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        host = host_of(nodeParams);
        return sim_cuGraphExecHostNodeSetParams(hGraphExec, hNode, &host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return sim_cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode, nodeParams->graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return set_event(hGraphExec, hNode, nodeParams->type, nodeParams->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return set_event(hGraphExec, hNode, nodeParams->type, nodeParams->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        batch = batch_of(nodeParams);
        return sim_cuGraphExecBatchMemOpNodeSetParams(hGraphExec, hNode, &batch);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult get_event(CUgraphNode handle, CUgraphNodeType type, CUevent *event_out)
{
    struct CUgraphNode_st *node = sim_node_find(NULL, handle, type);

    if (node == NULL || event_out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *event_out = node->work.event;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return get_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}

CUresult sim_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return get_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}

CUresult sim_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(NULL, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult sim_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    return set_event(NULL, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult sim_cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                CUevent event)
{
    return sim_exec_graph(hGraphExec) == NULL
               ? CUDA_ERROR_INVALID_VALUE
               : set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult sim_cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              CUevent event)
{
    return sim_exec_graph(hGraphExec) == NULL
               ? CUDA_ERROR_INVALID_VALUE
               : set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* Attributes are hints; nothing here looks at them. */
CUresult sim_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                           const CUkernelNodeAttrValue *value)
{
    (void)attr;
    return value == NULL || sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_KERNEL) == NULL
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                           CUkernelNodeAttrValue *value_out)
{
    (void)attr;
    if (value_out == NULL || sim_node_find(NULL, hNode, CU_GRAPH_NODE_TYPE_KERNEL) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(value_out, 0, sizeof(*value_out));
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    return sim_node_find(NULL, dst, CU_GRAPH_NODE_TYPE_KERNEL) == NULL ||
                   sim_node_find(NULL, src, CU_GRAPH_NODE_TYPE_KERNEL) == NULL
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

/* Nodes by number and type, and the edges. */
CUresult sim_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    unsigned count = 0;

    (void)flags;
    if (sim_graph_of(hGraph) == NULL || path == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    FILE *out = fopen(path, "we");
    if (out == NULL) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    for (struct CUgraphNode_st *node = hGraph->first; node != NULL; node = node->next) {
        node->mark = count++;
    }
    fprintf(out, "digraph graph_of_cuda {\n");
    for (struct CUgraphNode_st *node = hGraph->first; node != NULL; node = node->next) {
        fprintf(out, "  node%u [label=\"type %d\"];\n", node->mark, (int)node->work.type);
        for (size_t i = 0; i < node->before_count; i++) {
            fprintf(out, "  node%u -> node%u;\n", node->before[i]->mark, node->mark);
        }
    }
    fprintf(out, "}\n");
    return fclose(out) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
