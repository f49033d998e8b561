/* SPDX-License-Identifier: MIT */
/* Executable graphs. */
#include "call.h"
#include "capture.h"
#include "conditional.h"
#include "defect.h"
#include "graph.h"
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

#define EXEC_MAGIC 0x45584543u

/* One step of a launch: a node, the queue of its chain, and the steps it waits for. */
struct step {
    struct CUgraphNode_st *node;
    unsigned queue;
    bool is_leaf;
    unsigned *before;
    unsigned before_count;
};

/* graph is a private copy. Its queues are made at the first launch in a context and given up with
 * it. end: the last launch's last operation, held, with the clock it had. */
struct CUgraphExec_st {
    unsigned magic;
    unsigned long long flags;
    struct CUgraph_st *graph;
    struct CUgraph_st *source;
    struct step *steps;
    unsigned step_count;
    unsigned queue_count;
    struct sim_queue **queues;
    struct CUctx_st *context;
    unsigned long long context_id;
    struct sim_op *end;
    struct sim_clock clock;
    struct CUgraphExec_st *next;
};

static struct CUgraphExec_st *execs;

/* What a launch in progress knows of each step that is through. */
struct progress {
    struct sim_op *op;
    struct sim_clock clock;
};

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

/* A node goes on with the chain of a predecessor that nobody has gone on with yet. */
static void plan(struct CUgraphExec_st *exec, struct CUgraphNode_st **order)
{
    unsigned *chain_ends = calloc(exec->graph->node_count + 1, sizeof(*chain_ends));

    exec->step_count = (unsigned)exec->graph->node_count;
    exec->steps = calloc(exec->step_count + 1, sizeof(*exec->steps));
    for (unsigned i = 0; i < exec->step_count; i++) {
        struct step *step = &exec->steps[i];
        step->node = order[i];
        step->is_leaf = true;
        step->queue = UINT32_MAX;
        step->node->mark = i;
        step->before_count = (unsigned)step->node->before_count;
        step->before = calloc(step->before_count + 1, sizeof(*step->before));
        for (unsigned j = 0; j < step->before_count; j++) {
            unsigned other = step->node->before[j]->mark;
            step->before[j] = other;
            exec->steps[other].is_leaf = false;
            if (step->queue == UINT32_MAX && chain_ends[exec->steps[other].queue] == other) {
                step->queue = exec->steps[other].queue;
            }
        }
        if (step->queue == UINT32_MAX) {
            step->queue = exec->queue_count++;
        }
        chain_ends[step->queue] = i;
    }
    free(chain_ends);
}

static void forget_plan(struct CUgraphExec_st *exec)
{
    for (unsigned i = 0; i < exec->step_count; i++) {
        free(exec->steps[i].before);
    }
    free(exec->steps);
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
    struct CUgraphNode_st **order = sim_graph_sort(graph);
    if (order == NULL) {
        sim_graph_destroy(graph);
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgraphExec_st *exec = calloc(1, sizeof(*exec));
    exec->magic = EXEC_MAGIC;
    exec->flags = flags;
    exec->graph = graph;
    exec->source = hGraph;
    exec->next = execs;
    execs = exec;
    hGraph->exec_count++;
    plan(exec, order);
    free(order);
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

/* The context of the queues may have ended, and they with it. */
static bool has_queues(const struct CUgraphExec_st *exec)
{
    return exec->queues != NULL && exec->context->is_active &&
           exec->context->id == exec->context_id;
}

static void give_up_queues(struct CUgraphExec_st *exec)
{
    for (unsigned i = 0; i < exec->queue_count && has_queues(exec); i++) {
        exec->queues[i]->is_orphan = true;
    }
    if (has_queues(exec)) {
        sim_queue_reap(exec->context);
    }
    free(exec->queues);
    exec->queues = NULL;
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
    give_up_queues(exec);
    exec->source->exec_count--;
    sim_graph_destroy(exec->graph);
    forget_plan(exec);
    sim_op_drop(exec->end);
    sim_clock_fini(&exec->clock);
    exec->magic = 0;
    free(exec);
    return CUDA_SUCCESS;
}

static void take_queues(struct CUgraphExec_st *exec, struct CUctx_st *context)
{
    if (has_queues(exec) && exec->context == context) {
        return;
    }
    give_up_queues(exec);
    exec->context = context;
    exec->context_id = context->id;
    exec->queues = calloc(exec->queue_count + 1, sizeof(struct sim_queue *));
    for (unsigned i = 0; i < exec->queue_count; i++) {
        exec->queues[i] = sim_queue_create(context, true, false);
    }
}

/* What an earlier launch left allocated is in the way, or is freed first when that was ordered. */
static CUresult clear_memory(struct CUgraphExec_st *exec, struct sim_queue *queue)
{
    for (unsigned i = 0; i < exec->step_count; i++) {
        const struct sim_work *work = &exec->steps[i].node->work;
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

/* The end of a step's queue now, with the clock there. */
static struct progress mark_progress(const struct sim_queue *queue)
{
    struct progress progress = {.op = queue->tail};

    sim_op_hold(progress.op);
    sim_clock_join(&progress.clock, &queue->clock);
    return progress;
}

static void forget_progress(struct progress *progress)
{
    sim_op_drop(progress->op);
    sim_clock_fini(&progress->clock);
}

/* An operation that waits for others and does nothing. */
static struct sim_op *join_all(struct sim_queue *queue, const char *name,
                               const struct progress *const *others, unsigned count)
{
    struct sim_op *op = sim_op_create(queue, name);

    for (unsigned i = 0; i < count; i++) {
        sim_op_wait_for(op, others[i]->op);
        sim_clock_join(&queue->clock, &others[i]->clock);
    }
    return op;
}

static CUresult run_step(struct CUgraphExec_st *exec, unsigned index, struct progress *done,
                         const struct progress *start)
{
    const struct step *step = &exec->steps[index];
    struct sim_queue *queue = exec->queues[step->queue];
    const struct progress **others = calloc(step->before_count + 1, sizeof(*others));
    unsigned count = 0;
    CUresult result = CUDA_SUCCESS;

    for (unsigned i = 0; i < step->before_count && !SIM_DEFECT(graphs_have_no_edges); i++) {
        others[count++] = &done[step->before[i]];
    }
    if (step->before_count == 0) {
        others[count++] = start;
    }
    sim_enqueue(join_all(queue, "graph node", others, count));
    free(others);
    if (!step->node->is_disabled) {
        result = sim_work_run(&step->node->work, queue);
    }
    done[index] = mark_progress(queue);
    return result;
}

static CUresult launch(struct CUgraphExec_st *exec, struct sim_queue *queue)
{
    struct progress *done = calloc(exec->step_count + 1, sizeof(*done));
    const struct progress **leaves = calloc(exec->step_count + 1, sizeof(*leaves));
    struct sim_op *begin = sim_op_create(queue, "cuGraphLaunch");
    unsigned leaf_count = 0;
    unsigned count = 0;
    CUresult result = CUDA_SUCCESS;

    if (!SIM_DEFECT(launches_overtake)) {
        sim_op_wait_for(begin, exec->end);
        sim_clock_join(&queue->clock, &exec->clock);
    }
    sim_conditions_reset(begin, exec->graph);
    sim_enqueue(begin);
    struct progress start = mark_progress(queue);
    while (count < exec->step_count && result == CUDA_SUCCESS) {
        result = run_step(exec, count, done, &start);
        if (exec->steps[count].is_leaf || result != CUDA_SUCCESS) {
            leaves[leaf_count++] = &done[count];
        }
        count++;
    }
    struct sim_op *end = join_all(queue, "cuGraphLaunch end", leaves, leaf_count);
    sim_op_hold(end);
    sim_enqueue(end);
    sim_op_drop(exec->end);
    exec->end = end;
    sim_clock_join(&exec->clock, &queue->clock);
    forget_progress(&start);
    for (unsigned i = 0; i < count; i++) {
        forget_progress(&done[i]);
    }
    free(done);
    free(leaves);
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
    take_queues(exec, queue->context);
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
