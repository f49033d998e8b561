/* SPDX-License-Identifier: MIT */
#include "graph.h"

#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

#define GRAPH_MAGIC 0x47525048u
#define NODE_MAGIC  0x4e4f4445u

static struct CUgraph_st *newest;

struct CUgraph_st *sim_graph_of(CUgraph handle)
{
    return handle != NULL && handle->magic == GRAPH_MAGIC ? handle : NULL;
}

struct CUgraphNode_st *sim_node_of(CUgraphNode handle)
{
    return handle != NULL && handle->magic == NODE_MAGIC ? handle : NULL;
}

struct CUgraph_st *sim_graph_create(void)
{
    struct CUgraph_st *graph = calloc(1, sizeof(*graph));

    graph->magic = GRAPH_MAGIC;
    graph->older = newest;
    newest = graph;
    return graph;
}

bool sim_node_add_before(struct CUgraphNode_st *node, struct CUgraphNode_st *before)
{
    for (size_t i = 0; i < node->before_count; i++) {
        if (node->before[i] == before) {
            return false;
        }
    }
    node->before = realloc(node->before, (node->before_count + 1) * sizeof(CUgraphNode));
    node->before[node->before_count++] = before;
    return true;
}

struct CUgraphNode_st *sim_graph_add(struct CUgraph_st *graph, CUgraphNode const *before,
                                     size_t before_count, const struct sim_work *work)
{
    for (size_t i = 0; i < before_count; i++) {
        struct CUgraphNode_st *other = sim_node_of(before[i]);
        if (other == NULL || other->graph != graph) {
            return NULL;
        }
    }
    struct CUgraphNode_st *node = calloc(1, sizeof(*node));
    node->magic = NODE_MAGIC;
    node->graph = graph;
    sim_work_copy(&node->work, work);
    for (size_t i = 0; i < before_count; i++) {
        sim_node_add_before(node, before[i]);
    }
    if (graph->first == NULL) {
        graph->first = node;
    } else {
        graph->last->next = node;
    }
    graph->last = node;
    graph->node_count++;
    return node;
}

static void destroy_node(struct CUgraphNode_st *node)
{
    node->magic = 0;
    sim_work_fini(&node->work);
    free(node->before);
    free(node);
}

void sim_graph_destroy(struct CUgraph_st *graph)
{
    while (graph->first != NULL) {
        struct CUgraphNode_st *node = graph->first;
        graph->first = node->next;
        destroy_node(node);
    }
    graph->last = NULL;
    graph->node_count = 0;
    graph->magic = 0;
    sim_user_references_drop(graph->references);
    graph->references = NULL;
}

/* While it copies, the mark of an original counts its nodes. */
struct CUgraph_st *sim_graph_clone(const struct CUgraph_st *graph)
{
    struct CUgraph_st *clone = sim_graph_create();
    struct CUgraphNode_st **copies = calloc(graph->node_count + 1, sizeof(CUgraphNode));
    unsigned count = 0;

    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        node->mark = count;
        copies[count] = sim_graph_add(clone, NULL, 0, &node->work);
        copies[count]->original = node;
        copies[count]->is_disabled = node->is_disabled;
        count++;
    }
    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        for (size_t i = 0; i < node->before_count; i++) {
            sim_node_add_before(copies[node->mark], copies[node->before[i]->mark]);
        }
    }
    free(copies);
    clone->references = sim_user_references_copy(graph->references);
    return clone;
}

bool sim_graph_has_memory(const struct CUgraph_st *graph)
{
    for (const struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        if (node->work.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
            node->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
            return true;
        }
    }
    return false;
}

/* Takes nodes whose predecessors are all taken, round after round; mark is 1 for those taken. */
struct CUgraphNode_st **sim_graph_sort(const struct CUgraph_st *graph)
{
    struct CUgraphNode_st **order = calloc(graph->node_count + 1, sizeof(CUgraphNode));
    size_t count = 0;
    bool is_moving = true;

    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        node->mark = 0;
    }
    while (is_moving && count < graph->node_count) {
        is_moving = false;
        for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
            bool is_ready = node->mark == 0;
            for (size_t i = 0; i < node->before_count && is_ready; i++) {
                is_ready = node->before[i]->mark != 0;
            }
            if (is_ready) {
                node->mark = 1;
                order[count++] = node;
                is_moving = true;
            }
        }
    }
    if (count < graph->node_count) {
        free(order);
        return NULL;
    }
    return order;
}

CUresult sim_graph_run(const struct CUgraph_st *graph, struct sim_queue *queue)
{
    struct CUgraphNode_st **order = sim_graph_sort(graph);
    CUresult result = order == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

    for (size_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        if (!order[i]->is_disabled) {
            result = sim_work_run(&order[i]->work, queue);
        }
    }
    free(order);
    return result;
}

CUresult sim_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (phGraph == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *phGraph = sim_graph_create();
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroy(CUgraph hGraph)
{
    if (sim_graph_of(hGraph) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_graph_destroy(hGraph);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    if (phGraphClone == NULL || sim_graph_of(originalGraph) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_graph_has_memory(originalGraph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *phGraphClone = sim_graph_clone(originalGraph);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode,
                                    CUgraph hClonedGraph)
{
    if (phNode == NULL || sim_graph_of(hClonedGraph) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (struct CUgraphNode_st *node = hClonedGraph->first; node != NULL; node = node->next) {
        if (node->original == hOriginalNode) {
            *phNode = node;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphDestroyNode(CUgraphNode hNode)
{
    struct CUgraphNode_st *node = sim_node_of(hNode);

    if (node == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgraph_st *graph = node->graph;
    if (sim_graph_has_memory(graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    struct CUgraphNode_st **link = &graph->first;
    graph->last = NULL;
    while (*link != NULL) {
        struct CUgraphNode_st *other = *link;
        if (other == node) {
            *link = node->next;
            continue;
        }
        for (size_t i = 0; i < other->before_count; i++) {
            if (other->before[i] == node) {
                other->before[i--] = other->before[--other->before_count];
            }
        }
        graph->last = other;
        link = &other->next;
    }
    graph->node_count--;
    destroy_node(node);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    if (sim_node_of(hNode) == NULL || type == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type = hNode->work.type;
    return CUDA_SUCCESS;
}

/* A list for a caller: with no place, only the number; with one, what fits, and NULL behind it. */
static void put(CUgraphNode node, CUgraphNode *nodes, size_t room, size_t *count)
{
    if (nodes != NULL && *count < room) {
        nodes[*count] = node;
    }
    ++*count;
}

static CUresult end_list(CUgraphNode *nodes, size_t count, size_t *room)
{
    for (size_t i = count; nodes != NULL && i < *room; i++) {
        nodes[i] = NULL;
    }
    if (nodes == NULL || count < *room) {
        *room = count;
    }
    return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *room, bool is_roots_only)
{
    size_t count = 0;

    if (sim_graph_of(graph) == NULL || room == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        if (!is_roots_only || node->before_count == 0) {
            put(node, nodes, *room, &count);
        }
    }
    return end_list(nodes, count, room);
}

CUresult sim_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    return list_nodes(hGraph, nodes, numNodes, false);
}

CUresult sim_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    return list_nodes(hGraph, rootNodes, numRootNodes, true);
}

CUresult sim_cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies,
                                        size_t *numDependencies)
{
    size_t count = 0;

    if (sim_node_of(hNode) == NULL || numDependencies == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < hNode->before_count; i++) {
        put(hNode->before[i], dependencies, *numDependencies, &count);
    }
    return end_list(dependencies, count, numDependencies);
}

CUresult sim_cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                          size_t *numDependentNodes)
{
    size_t count = 0;

    if (sim_node_of(hNode) == NULL || numDependentNodes == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (struct CUgraphNode_st *node = hNode->graph->first; node != NULL; node = node->next) {
        for (size_t i = 0; i < node->before_count; i++) {
            if (node->before[i] == hNode) {
                put(node, dependentNodes, *numDependentNodes, &count);
            }
        }
    }
    return end_list(dependentNodes, count, numDependentNodes);
}

/* Edges are all of the plain kind. */
static void clear_edges(CUgraphEdgeData *edges, const size_t *count)
{
    if (edges != NULL && count != NULL) {
        memset(edges, 0, *count * sizeof(*edges));
    }
}

CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
                                           CUgraphEdgeData *edgeData, size_t *numDependencies)
{
    clear_edges(edgeData, numDependencies);
    return sim_cuGraphNodeGetDependencies(hNode, dependencies, numDependencies);
}

CUresult sim_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
                                             CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
    clear_edges(edgeData, numDependentNodes);
    return sim_cuGraphNodeGetDependentNodes(hNode, dependentNodes, numDependentNodes);
}

CUresult sim_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    size_t count = 0;
    size_t twice = 0;

    if (sim_graph_of(hGraph) == NULL || numEdges == NULL || (from == NULL) != (to == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (struct CUgraphNode_st *node = hGraph->first; node != NULL; node = node->next) {
        for (size_t i = 0; i < node->before_count; i++) {
            put(node->before[i], from, *numEdges, &count);
            put(node, to, *numEdges, &twice);
        }
    }
    end_list(to, count, &(size_t){*numEdges});
    return end_list(from, count, numEdges);
}

CUresult sim_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *edgeData, size_t *numEdges)
{
    clear_edges(edgeData, numEdges);
    return sim_cuGraphGetEdges(hGraph, from, to, numEdges);
}

CUresult sim_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t numDependencies)
{
    for (size_t i = 0; i < numDependencies; i++) {
        struct CUgraphNode_st *before = sim_node_of(from[i]);
        struct CUgraphNode_st *node = sim_node_of(to[i]);
        if (sim_graph_of(hGraph) == NULL || before == NULL || node == NULL || before == node ||
            before->graph != hGraph || node->graph != hGraph ||
            !sim_node_add_before(node, before)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                       size_t numDependencies)
{
    (void)edgeData;
    return sim_cuGraphAddDependencies(hGraph, from, to, numDependencies);
}

CUresult sim_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
                                       const CUgraphNode *to, size_t numDependencies)
{
    for (size_t i = 0; i < numDependencies; i++) {
        struct CUgraphNode_st *node = sim_node_of(to[i]);
        size_t at = 0;
        if (sim_graph_of(hGraph) == NULL || node == NULL || node->graph != hGraph) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        while (at < node->before_count && node->before[at] != from[i]) {
            at++;
        }
        if (at == node->before_count) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        node->before[at] = node->before[--node->before_count];
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
                                          const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                          size_t numDependencies)
{
    (void)edgeData;
    return sim_cuGraphRemoveDependencies(hGraph, from, to, numDependencies);
}
