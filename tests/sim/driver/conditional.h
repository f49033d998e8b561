/* SPDX-License-Identifier: MIT */
/* Conditional nodes. What their bodies do is collected when the node is enqueued, for the checks,
 * and run when the node runs, as the condition then has it. The condition is set by the simulated
 * kernel sim_set_condition. A loop in whose body nobody has set its condition ends: kernels that
 * only exist by name cannot end it. */
#ifndef SIM_CONDITIONAL_H
#define SIM_CONDITIONAL_H

#include "graph.h"

/* Behind a handle. Never freed. */
struct sim_condition {
    unsigned magic;
    bool has_default;
    unsigned default_value;
    unsigned value;
    uint64_t set_count;
    struct sim_condition *older;
};

struct sim_condition *sim_condition_of(uint64_t handle);
/* When the operation runs, the conditions in the graph get their default values. */
void sim_conditions_reset(struct sim_op *op, const struct CUgraph_st *graph);

/* Are there only nodes in the bodies that may be there: no host functions, events or memory? */
bool sim_conditionals_are_valid(const struct CUgraph_st *graph);

void sim_conditional_copy(struct sim_conditional_work *work);
void sim_conditional_fini(struct sim_conditional_work *work);
CUresult sim_conditional_run(const struct sim_conditional_work *work, struct sim_queue *queue);

#endif
