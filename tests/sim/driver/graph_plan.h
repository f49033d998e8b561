/* SPDX-License-Identifier: MIT */
/* How a graph is launched: in queues of its own, one for every chain of nodes, between two
 * operations of the queue it is launched into. A child graph is launched the same way in place of
 * its node, so nodes that no edge orders are unordered to the checks at every depth. */
#ifndef SIM_GRAPH_PLAN_H
#define SIM_GRAPH_PLAN_H

#include "graph.h"

/* One step of a launch: a node, the queue of its chain, and the steps it waits for. child: the plan
 * of the node's graph, made anew at a launch when that has become another. */
struct sim_step {
    struct CUgraphNode_st *node;
    struct sim_plan *child;
    unsigned queue;
    bool is_leaf;
    unsigned *before;
    unsigned before_count;
};

/* The queues are made at the first launch in a context and given up with it. */
struct sim_plan {
    struct CUgraph_st *graph;
    struct sim_step *steps;
    unsigned step_count;
    unsigned queue_count;
    struct sim_queue **queues;
    struct CUctx_st *context;
    unsigned long long context_id;
};

/* NULL: the nodes go round in circles, here or in a child. The graph must outlive the plan. */
struct sim_plan *sim_plan_create(struct CUgraph_st *graph);
void sim_plan_destroy(struct sim_plan *plan);
/* Puts all nodes behind what is in the queue; they are through when the queue is. begin is the
 * operation that they all wait for. */
CUresult sim_plan_launch(struct sim_plan *plan, struct sim_queue *queue, struct sim_op *begin,
                         const char *end_name);

#endif
