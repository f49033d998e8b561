/* SPDX-License-Identifier: MIT */
#include "conditional.h"

#include "access.h"
#include "defect.h"
#include "inner_order.h"
#include "sim_api.h"

#include <stdlib.h>

#define CONDITION_MAGIC 0x434f4e44u

static struct sim_condition *newest;

/* What one body does, in order. */
struct body {
    struct sim_op **ops;
    unsigned count;
};

/* running: the body that is being run, and its operation that comes next. seen: how often the
 * condition had been set when that body began. */
struct conditional {
    struct sim_condition *condition;
    CUgraphConditionalNodeType type;
    const struct body *running;
    unsigned next;
    uint64_t seen;
    unsigned body_count;
    struct body bodies[];
};

struct sim_condition *sim_condition_of(uint64_t handle)
{
    struct sim_condition *condition = newest;

    while (condition != NULL && (uint64_t)condition != handle) {
        condition = condition->older;
    }
    return condition;
}

CUresult sim_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
                                            CUcontext ctx, unsigned int defaultLaunchValue,
                                            unsigned int flags)
{
    (void)ctx;
    if (pHandle_out == NULL || sim_graph_of(hGraph) == NULL ||
        flags > CU_GRAPH_COND_ASSIGN_DEFAULT) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_condition *condition = calloc(1, sizeof(*condition));
    condition->magic = CONDITION_MAGIC;
    condition->has_default = flags == CU_GRAPH_COND_ASSIGN_DEFAULT;
    condition->default_value = defaultLaunchValue;
    condition->older = newest;
    newest = condition;
    *pHandle_out = (uint64_t)condition;
    return CUDA_SUCCESS;
}

void sim_conditional_copy(struct sim_conditional_work *work)
{
    CUgraph *bodies = calloc(work->body_count, sizeof(CUgraph));

    for (unsigned i = 0; i < work->body_count; i++) {
        bodies[i] = work->bodies != NULL ? sim_graph_clone(work->bodies[i]) : sim_graph_create();
    }
    work->bodies = bodies;
}

void sim_conditional_fini(struct sim_conditional_work *work)
{
    for (unsigned i = 0; i < work->body_count; i++) {
        sim_graph_destroy(work->bodies[i]);
    }
    free(work->bodies);
}

static bool is_body_valid(const struct CUgraph_st *body)
{
    for (const struct CUgraphNode_st *node = body->first; node != NULL; node = node->next) {
        switch (node->work.type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
        case CU_GRAPH_NODE_TYPE_MEMCPY:
        case CU_GRAPH_NODE_TYPE_MEMSET:
        case CU_GRAPH_NODE_TYPE_EMPTY:
        case CU_GRAPH_NODE_TYPE_CONDITIONAL: break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            if (!is_body_valid(node->work.child)) {
                return false;
            }
            break;
        default: return false;
        }
    }
    return sim_conditionals_are_valid(body);
}

bool sim_conditionals_are_valid(const struct CUgraph_st *graph)
{
    for (const struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        const struct sim_conditional_work *work = &node->work.conditional;
        if (node->work.type != CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            continue;
        }
        for (unsigned i = 0; i < work->body_count; i++) {
            if (!is_body_valid(work->bodies[i])) {
                return false;
            }
        }
    }
    return true;
}

static unsigned count_defaults(const struct CUgraph_st *graph, struct sim_condition **found)
{
    unsigned count = 0;

    for (struct CUgraphNode_st *node = graph->first; node != NULL; node = node->next) {
        const struct sim_conditional_work *work = &node->work.conditional;
        if (node->work.type == CU_GRAPH_NODE_TYPE_GRAPH) {
            count += count_defaults(node->work.child, found != NULL ? found + count : NULL);
        } else if (node->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
            if (work->condition->has_default) {
                if (found != NULL) {
                    found[count] = work->condition;
                }
                count++;
            }
            for (unsigned i = 0; i < work->body_count; i++) {
                count += count_defaults(work->bodies[i], found != NULL ? found + count : NULL);
            }
        }
    }
    return count;
}

/* data is a list that ends with NULL. */
static void run_reset(struct sim_op *op)
{
    for (struct sim_condition **condition = op->data; *condition != NULL; condition++) {
        (*condition)->value = (*condition)->default_value;
    }
}

static void drop_reset(struct sim_op *op)
{
    free(op->data);
}

void sim_conditions_reset(struct sim_op *op, const struct CUgraph_st *graph)
{
    unsigned count = count_defaults(graph, NULL);

    if (count == 0) {
        return;
    }
    struct sim_condition **list = calloc(count + 1, sizeof(struct sim_condition *));
    count_defaults(graph, list);
    op->data = list;
    op->run = run_reset;
    op->drop = drop_reset;
}

/* The body that the condition chooses now, or NULL. */
static const struct body *choose(const struct conditional *data)
{
    unsigned value = data->condition->value;

    switch (data->type) {
    case CU_GRAPH_COND_TYPE_IF:
        if (value != 0 || SIM_DEFECT(conditions_are_always_true)) {
            return &data->bodies[0];
        }
        return data->body_count > 1 ? &data->bodies[1] : NULL;
    case CU_GRAPH_COND_TYPE_WHILE: return value != 0 ? &data->bodies[0] : NULL;
    default: return value < data->body_count ? &data->bodies[value] : NULL;
    }
}

static void begin_body(struct conditional *data)
{
    data->running = choose(data);
    data->next = 0;
    data->seen = data->condition->set_count;
}

/* A loop ends too when nobody in its body has set the condition. */
static void end_body(struct conditional *data)
{
    bool goes_on = data->type == CU_GRAPH_COND_TYPE_WHILE &&
                   data->condition->set_count != data->seen;

    data->running = NULL;
    if (goes_on) {
        begin_body(data);
    }
}

/* false: it wants to go on after its delay. */
static bool run_in_body(struct sim_op *op)
{
    op->is_unfinished = false;
    if (op->run != NULL && !op->is_broken && sim_access_is_live(op)) {
        op->run(op);
    }
    return !op->is_unfinished;
}

/* Runs the operations of the body, each when its delay is over. Called first with none begun. */
static void run_conditional(struct sim_op *op)
{
    struct conditional *data = op->data;
    bool has_waited = data->running != NULL;

    if (!has_waited) {
        begin_body(data);
    }
    op->delay_ns = 0;
    while (data->running != NULL) {
        struct sim_op *next = data->next < data->running->count ? data->running->ops[data->next]
                                                                : NULL;
        if (next == NULL) {
            end_body(data);
        } else if ((has_waited || next->delay_ns == 0 || SIM_DEFECT(bodies_take_no_time)) &&
                   run_in_body(next)) {
            data->next++;
            has_waited = false;
        } else {
            op->delay_ns = next->delay_ns;
            op->is_unfinished = true;
            return;
        }
    }
}

static void drop_conditional(struct sim_op *op)
{
    struct conditional *data = op->data;

    for (unsigned i = 0; i < data->body_count; i++) {
        for (unsigned j = 0; j < data->bodies[i].count; j++) {
            sim_op_drop(data->bodies[i].ops[j]);
        }
        free(data->bodies[i].ops);
    }
    free(data);
}

/* The node touches what any of its bodies may touch. */
static void adopt_ranges(struct sim_op *op, const struct body *body)
{
    for (unsigned i = 0; i < body->count; i++) {
        for (unsigned j = 0; j < body->ops[i]->range_count; j++) {
            sim_op_add_range(op, body->ops[i]->ranges[j]);
        }
    }
}

static void append_ops(struct body *body, struct sim_collection *more)
{
    body->ops = realloc(body->ops, (body->count + more->count + 1) * sizeof(struct sim_op *));
    for (unsigned i = 0; i < more->count; i++) {
        body->ops[body->count++] = more->ops[i];
    }
    free(more->ops);
}

/* What the nodes do, one after the other, behind what is in the body already. */
static CUresult collect(const struct CUgraph_st *graph, struct sim_queue *queue, struct body *body)
{
    struct CUgraphNode_st **order = sim_graph_sort(graph);
    unsigned *ends = calloc(graph->node_count + 1, sizeof(*ends));
    unsigned start = body->count;
    CUresult result = order == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

    for (size_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        const struct sim_work *work = &order[i]->work;
        if (work->type == CU_GRAPH_NODE_TYPE_GRAPH) {
            result = collect(work->child, queue, body);
        } else if (!order[i]->is_disabled) {
            struct sim_collection outer = sim_collect_begin();
            result = sim_work_run(work, queue);
            struct sim_collection own = sim_collect_end(outer);
            append_ops(body, &own);
        }
        ends[i] = body->count - start;
    }
    if (result == CUDA_SUCCESS) {
        sim_inner_order_check(order, graph->node_count, body->ops + start, ends);
    }
    free(order);
    free(ends);
    return result;
}

CUresult sim_conditional_run(const struct sim_conditional_work *work, struct sim_queue *queue)
{
    CUresult result = CUDA_SUCCESS;
    struct conditional *data = calloc(1, sizeof(*data) + work->body_count * sizeof(struct body));
    struct sim_op *op = sim_op_create(queue, "conditional node");

    data->condition = work->condition;
    data->type = work->type;
    data->body_count = work->body_count;
    op->data = data;
    op->run = run_conditional;
    op->drop = drop_conditional;
    for (unsigned i = 0; i < work->body_count && result == CUDA_SUCCESS; i++) {
        result = collect(work->bodies[i], queue, &data->bodies[i]);
        adopt_ranges(op, &data->bodies[i]);
    }
    if (result != CUDA_SUCCESS) {
        sim_op_drop(op);
        return result;
    }
    return sim_submit(op);
}
