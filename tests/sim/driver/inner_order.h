/* SPDX-License-Identifier: MIT */
/* Nodes that no edge orders, though they run one after the other here: those in the body of a
 * conditional node. The clocks cannot tell; the edges are looked at instead. */
#ifndef SIM_INNER_ORDER_H
#define SIM_INNER_ORDER_H

#include "graph.h"

/* Reports nodes that no path orders and that meet in the same bytes, one of them writing. Each of
 * the nodes stands behind all that it waits for; what node i does ends before ops[ends[i]]. */
void sim_inner_order_check(struct CUgraphNode_st *const *nodes, size_t count,
                           struct sim_op *const *ops, const unsigned *ends);

#endif
