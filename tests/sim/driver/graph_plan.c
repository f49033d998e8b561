/* SPDX-License-Identifier: MIT */
#include "graph_plan.h"

#include "context.h"
#include "defect.h"

#include <stdlib.h>

/* What a launch in progress knows of each step that is through. */
struct progress {
    struct sim_op *op;
    struct sim_clock clock;
};

/* A node goes on with the chain of a predecessor that nobody has gone on with yet. */
static void plan_steps(struct sim_plan *plan, struct CUgraphNode_st **order)
{
    unsigned *chain_ends = calloc(plan->step_count + 1, sizeof(*chain_ends));

    for (unsigned i = 0; i < plan->step_count; i++) {
        struct sim_step *step = &plan->steps[i];
        step->node = order[i];
        step->is_leaf = true;
        step->queue = UINT32_MAX;
        step->node->mark = i;
        step->before_count = (unsigned)step->node->before_count;
        step->before = calloc(step->before_count + 1, sizeof(*step->before));
        for (unsigned j = 0; j < step->before_count; j++) {
            unsigned other = step->node->before[j]->mark;
            step->before[j] = other;
            plan->steps[other].is_leaf = false;
            if (step->queue == UINT32_MAX && chain_ends[plan->steps[other].queue] == other) {
                step->queue = plan->steps[other].queue;
            }
        }
        if (step->queue == UINT32_MAX) {
            step->queue = plan->queue_count++;
        }
        chain_ends[step->queue] = i;
    }
    free(chain_ends);
}

/* The context of the queues may have ended, and they with it. */
static bool has_queues(const struct sim_plan *plan)
{
    return plan->queues != NULL && plan->context->is_active &&
           plan->context->id == plan->context_id;
}

static void give_up_queues(struct sim_plan *plan)
{
    for (unsigned i = 0; i < plan->queue_count && has_queues(plan); i++) {
        plan->queues[i]->is_orphan = true;
    }
    if (has_queues(plan)) {
        sim_queue_reap(plan->context);
    }
    free(plan->queues);
    plan->queues = NULL;
}

void sim_plan_destroy(struct sim_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    give_up_queues(plan);
    for (unsigned i = 0; i < plan->step_count; i++) {
        sim_plan_destroy(plan->steps[i].child);
        free(plan->steps[i].before);
    }
    free(plan->steps);
    free(plan);
}

struct sim_plan *sim_plan_create(struct CUgraph_st *graph)
{
    struct CUgraphNode_st **order = sim_graph_sort(graph);

    if (order == NULL) {
        return NULL;
    }
    struct sim_plan *plan = calloc(1, sizeof(*plan));
    plan->graph = graph;
    plan->step_count = (unsigned)graph->node_count;
    plan->steps = calloc(plan->step_count + 1, sizeof(*plan->steps));
    plan_steps(plan, order);
    free(order);
    for (unsigned i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].node->work.type == CU_GRAPH_NODE_TYPE_GRAPH &&
            (plan->steps[i].child = sim_plan_create(plan->steps[i].node->work.child)) == NULL) {
            sim_plan_destroy(plan);
            return NULL;
        }
    }
    return plan;
}

static void take_queues(struct sim_plan *plan, struct CUctx_st *context)
{
    if (has_queues(plan) && plan->context == context) {
        return;
    }
    give_up_queues(plan);
    plan->context = context;
    plan->context_id = context->id;
    plan->queues = calloc(plan->queue_count + 1, sizeof(struct sim_queue *));
    for (unsigned i = 0; i < plan->queue_count; i++) {
        plan->queues[i] = sim_queue_create(context, true, false);
    }
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

/* An update may have put another graph in place of the node's. */
static CUresult launch_child(struct sim_step *step, struct sim_queue *queue)
{
    struct CUgraph_st *graph = step->node->work.child;

    if (step->child == NULL || step->child->graph != graph) {
        sim_plan_destroy(step->child);
        step->child = sim_plan_create(graph);
    }
    return step->child == NULL
               ? CUDA_ERROR_INVALID_VALUE
               : sim_plan_launch(step->child, queue, sim_op_create(queue, "child graph"),
                                 "child graph end");
}

static CUresult run_step(struct sim_plan *plan, unsigned index, struct progress *done,
                         const struct progress *start)
{
    struct sim_step *step = &plan->steps[index];
    struct sim_queue *queue = plan->queues[step->queue];
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
    if (step->node->work.type == CU_GRAPH_NODE_TYPE_GRAPH && !SIM_DEFECT(children_run_in_a_row)) {
        result = launch_child(step, queue);
    } else if (!step->node->is_disabled) {
        result = sim_work_run(&step->node->work, queue);
    }
    done[index] = mark_progress(queue);
    return result;
}

CUresult sim_plan_launch(struct sim_plan *plan, struct sim_queue *queue, struct sim_op *begin,
                         const char *end_name)
{
    struct progress *done = calloc(plan->step_count + 1, sizeof(*done));
    const struct progress **leaves = calloc(plan->step_count + 1, sizeof(*leaves));
    unsigned leaf_count = 0;
    unsigned count = 0;
    CUresult result = CUDA_SUCCESS;

    take_queues(plan, queue->context);
    sim_enqueue(begin);
    struct progress start = mark_progress(queue);
    while (count < plan->step_count && result == CUDA_SUCCESS) {
        result = run_step(plan, count, done, &start);
        if (plan->steps[count].is_leaf || result != CUDA_SUCCESS) {
            leaves[leaf_count++] = &done[count];
        }
        count++;
    }
    sim_enqueue(join_all(queue, end_name, leaves, leaf_count));
    forget_progress(&start);
    for (unsigned i = 0; i < count; i++) {
        forget_progress(&done[i]);
    }
    free(done);
    free(leaves);
    return result;
}
