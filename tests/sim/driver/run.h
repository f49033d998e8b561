/* SPDX-License-Identifier: MIT */
/* Running operations: the part of engine.h that decides when and on which thread. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "engine.h"

/* The operation waits for nothing any more. may_run: it may run here and now; not so when another
 * one has just finished, else a long queue would become a deep recursion. */
void sim_run_ready(struct sim_op *op, bool may_run);
/* Calls it on the thread of host functions, in both kinds of time, without the lock. */
void sim_call_on_host_thread(void (*function)(void *), void *data);
/* In engine.c: op has run; wakes its followers and gives up the engine's reference. */
void sim_op_finish(struct sim_op *op);
struct sim_op *sim_pending_first(void);

#endif
