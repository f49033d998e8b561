/* SPDX-License-Identifier: MIT */
/* New parameters for executable graphs of the same shape. */
#include "graph.h"
#include "sim_api.h"

#include <string.h>

/* Do both wait for the same nodes? Marks are positions. */
static bool has_same_edges(const struct CUgraphNode_st *one, const struct CUgraphNode_st *other)
{
    if (one->before_count != other->before_count) {
        return false;
    }
    for (size_t i = 0; i < one->before_count; i++) {
        if (one->before[i]->mark != other->before[i]->mark) {
            return false;
        }
    }
    return true;
}

static void number_nodes(struct CUgraph_st *graph)
{
    unsigned count = 0;

    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        node->mark = count++;
    }
}

/* Nodes pair up in the order of their creation. */
static CUgraphExecUpdateResult compare(struct CUgraph_st *own, struct CUgraph_st *graph,
                                       CUgraphNode *error_node_out)
{
    struct CUgraphNode_st *node = own->first;

    number_nodes(own);
    number_nodes(graph);
    for (struct CUgraphNode_st *other = graph->first; other != NULL && node != NULL;
         other = other->next, node = node->next) {
        *error_node_out = other;
        if (node->work.type != other->work.type) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        }
        if (!has_same_edges(node, other)) {
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        }
    }
    *error_node_out = NULL;
    return own->node_count != graph->node_count ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
                                                : CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Nodes of equal shape: the own ones do from now on what the others do. */
static void take_work(struct CUgraph_st *own, const struct CUgraph_st *graph)
{
    struct CUgraphNode_st *node = own->first;

    for (struct CUgraphNode_st *other = graph->first; other != NULL; other = other->next) {
        struct sim_work old = node->work;
        sim_work_copy(&node->work, &other->work);
        sim_work_fini(&old);
        node = node->next;
    }
}

CUresult sim_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                  CUgraphExecUpdateResultInfo *resultInfo)
{
    struct CUgraph_st *own = sim_exec_graph(hGraphExec);

    if (own == NULL || sim_graph_of(hGraph) == NULL || resultInfo == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(resultInfo, 0, sizeof(*resultInfo));
    resultInfo->result = compare(own, hGraph, &resultInfo->errorNode);
    if (resultInfo->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    take_work(own, hGraph);
    struct sim_user_reference *old = own->references;
    own->references = sim_user_references_copy(hGraph->references);
    sim_user_references_drop(old);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                               CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResultInfo info;
    CUresult result = sim_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);

    if (result != CUDA_ERROR_INVALID_VALUE && hErrorNode_out != NULL && updateResult_out != NULL) {
        *hErrorNode_out = info.errorNode;
        *updateResult_out = info.result;
    }
    return result;
}

CUresult sim_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                CUgraph childGraph)
{
    struct CUgraphNode_st *node = sim_exec_graph(hGraphExec) != NULL
                                      ? sim_node_find(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_GRAPH)
                                      : NULL;
    CUgraphNode wrong;

    if (node == NULL || sim_graph_of(childGraph) == NULL ||
        compare(node->work.child, childGraph, &wrong) != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    take_work(node->work.child, childGraph);
    return CUDA_SUCCESS;
}
