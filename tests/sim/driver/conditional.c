/* SPDX-License-Identifier: MIT */
#include "conditional.h"

#include "access.h"
#include "defect.h"
#include "sim_api.h"

#include <stdlib.h>

#define CONDITION_MAGIC 0x434f4e44u

static struct sim_condition *newest;

/* What one body does, in order. */
struct body {
    struct sim_op **ops;
    unsigned count;
};

struct conditional {
    struct sim_condition *condition;
    CUgraphConditionalNodeType type;
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

static void run_body(const struct body *body)
{
    for (unsigned i = 0; i < body->count; i++) {
        struct sim_op *op = body->ops[i];
        if (op->run != NULL && !op->is_broken && sim_access_is_live(op)) {
            op->run(op);
        }
    }
}

static void run_conditional(struct sim_op *op)
{
    struct conditional *data = op->data;
    struct sim_condition *condition = data->condition;
    uint64_t seen;

    switch (data->type) {
    case CU_GRAPH_COND_TYPE_IF:
        if (condition->value != 0 || SIM_DEFECT(conditions_are_always_true)) {
            run_body(&data->bodies[0]);
        } else if (data->body_count > 1) {
            run_body(&data->bodies[1]);
        }
        break;
    case CU_GRAPH_COND_TYPE_WHILE:
        do {
            seen = condition->set_count;
            if (condition->value != 0) {
                run_body(&data->bodies[0]);
            }
        } while (condition->value != 0 && condition->set_count != seen);
        break;
    default:
        if (condition->value < data->body_count) {
            run_body(&data->bodies[condition->value]);
        }
        break;
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
        struct sim_collection outer = sim_collect_begin();
        result = sim_graph_run(work->bodies[i], queue);
        struct sim_collection own = sim_collect_end(outer);
        data->bodies[i] = (struct body){own.ops, own.count};
        adopt_ranges(op, &data->bodies[i]);
    }
    if (result != CUDA_SUCCESS) {
        sim_op_drop(op);
        return result;
    }
    return sim_submit(op);
}
