/* SPDX-License-Identifier: MIT */
/* Executable graphs. */
#include "call.h"
#include "capture.h"
#include "conditional.h"
#include "defect.h"
#include "graph_plan.h"
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

#define EXEC_MAGIC 0x45584543u

/* graph is a private copy. end: the last launch's last operation, held, with the clock it had. */
struct CUgraphExec_st {
    unsigned magic;
    unsigned long long flags;
    struct CUgraph_st *graph;
    struct CUgraph_st *source;
    struct sim_plan *plan;
    struct sim_op *end;
    struct sim_clock clock;
    struct CUgraphExec_st *next;
};

static struct CUgraphExec_st *execs;

static struct CUgraphExec_st *exec_of(CUgraphExec handle)
{
    return handle != NULL && handle->magic == EXEC_MAGIC ? handle : NULL;
}

struct CUgraph_st *sim_exec_graph(CUgraphExec handle)
{
    return exec_of(handle) != NULL ? handle->graph : NULL;
}

struct CUgraphNode_st *sim_exec_node(CUgraphExec handle, CUgraphNode node)
{
    struct CUgraphExec_st *exec = exec_of(handle);
    struct CUgraphNode_st *found = exec != NULL ? exec->graph->first : NULL;

    while (found != NULL && found->original != node) {
        found = found->next;
    }
    return found;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
                                         unsigned long long flags)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS || phGraphExec == NULL || sim_graph_of(hGraph) == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_conditionals_are_valid(hGraph)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool has_memory = sim_graph_has_memory(hGraph);
    if (has_memory && hGraph->exec_count != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    struct CUgraph_st *graph = sim_graph_clone(hGraph);
    struct sim_plan *plan = sim_plan_create(graph);
    if (plan == NULL) {
        sim_graph_destroy(graph);
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgraphExec_st *exec = calloc(1, sizeof(*exec));
    exec->magic = EXEC_MAGIC;
    exec->flags = flags;
    exec->graph = graph;
    exec->source = hGraph;
    exec->plan = plan;
    exec->next = execs;
    execs = exec;
    hGraph->exec_count++;
    *phGraphExec = exec;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
                                   CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    if (phErrorNode != NULL) {
        *phErrorNode = NULL;
    }
    if (logBuffer != NULL && bufferSize != 0) {
        *logBuffer = '\0';
    }
    return sim_cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0);
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    if (instantiateParams == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = sim_cuGraphInstantiateWithFlags(phGraphExec, hGraph,
                                                      instantiateParams->flags);
    instantiateParams->hErrNode_out = NULL;
    instantiateParams->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                                                           : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    if (exec_of(hGraphExec) == NULL || flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = hGraphExec->flags;
    return CUDA_SUCCESS;
}

static void destroy_when_run(struct sim_op *op)
{
    sim_graph_destroy(op->data);
}

/* What a launch that has not ended uses lives until it has. */
static void give_up_graph(struct CUgraphExec_st *exec)
{
    if (exec->end != NULL && exec->end->state != SIM_OP_DONE &&
        !SIM_DEFECT(running_graphs_keep_no_objects)) {
        exec->end->data = exec->graph;
        exec->end->run = destroy_when_run;
    } else {
        sim_graph_destroy(exec->graph);
    }
}

CUresult sim_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct CUgraphExec_st *exec = exec_of(hGraphExec);

    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgraphExec_st **link = &execs;
    while (*link != exec) {
        link = &(*link)->next;
    }
    *link = exec->next;
    sim_plan_destroy(exec->plan);
    exec->source->exec_count--;
    give_up_graph(exec);
    sim_op_drop(exec->end);
    sim_clock_fini(&exec->clock);
    exec->magic = 0;
    free(exec);
    return CUDA_SUCCESS;
}

/* What an earlier launch left allocated is in the way, or is freed first when that was ordered. */
static CUresult clear_memory(struct CUgraphExec_st *exec, struct sim_queue *queue)
{
    for (const struct CUgraphNode_st *node = exec->graph->first; node != NULL; node = node->next) {
        const struct sim_work *work = &node->work;
        if (work->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !sim_graph_memory_is_live(work->memory)) {
            continue;
        }
        if ((exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == 0) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        sim_graph_memory_free(work->memory, queue);
    }
    return CUDA_SUCCESS;
}

static CUresult launch(struct CUgraphExec_st *exec, struct sim_queue *queue)
{
    struct sim_op *begin = sim_op_create(queue, "cuGraphLaunch");

    if (!SIM_DEFECT(launches_overtake)) {
        sim_op_wait_for(begin, exec->end);
        sim_clock_join(&queue->clock, &exec->clock);
    }
    sim_conditions_reset(begin, exec->graph);
    CUresult result = sim_plan_launch(exec->plan, queue, begin, "cuGraphLaunch end");
    sim_op_drop(exec->end);
    exec->end = queue->tail;
    sim_op_hold(exec->end);
    sim_clock_join(&exec->clock, &queue->clock);
    return result != CUDA_SUCCESS ? result : queue->context->sticky;
}

CUresult sim_cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    struct CUgraphExec_st *exec = exec_of(hGraphExec);
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result != CUDA_SUCCESS || exec == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (queue->capture != NULL) {
        struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = exec->graph};
        return sim_graph_has_memory(exec->graph) ? CUDA_ERROR_NOT_SUPPORTED
                                                 : sim_capture_work(queue, &work);
    }
    result = sim_capture_refuse_implicit(queue);
    if (result == CUDA_SUCCESS) {
        result = clear_memory(exec, queue);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    return launch(exec, queue);
}

CUresult sim_cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    return result == CUDA_SUCCESS && exec_of(hGraphExec) == NULL ? CUDA_ERROR_INVALID_VALUE
                                                                 : result;
}

CUresult sim_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                   unsigned int isEnabled)
{
    struct CUgraphNode_st *node = sim_exec_node(hGraphExec, hNode);

    if (node == NULL || (node->work.type != CU_GRAPH_NODE_TYPE_KERNEL &&
                         node->work.type != CU_GRAPH_NODE_TYPE_MEMSET &&
                         node->work.type != CU_GRAPH_NODE_TYPE_MEMCPY)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    node->is_disabled = isEnabled == 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                   unsigned int *isEnabled)
{
    struct CUgraphNode_st *node = sim_exec_node(hGraphExec, hNode);

    if (node == NULL || isEnabled == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *isEnabled = !node->is_disabled;
    return CUDA_SUCCESS;
}
