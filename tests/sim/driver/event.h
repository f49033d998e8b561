/* SPDX-License-Identifier: MIT */
/* Events, as event.c and ipc_event.c know them. */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "context.h"

#define SIM_EVENT_MAGIC 0x45564e54u

/* mark is the recorded operation (held), NULL before the first record. capture_id: the record is
 * part of a capture and stands for the nodes; 0 when it is not. shared: what all processes know of
 * it, for an event that was given to another one; own_record is the last record made here. */
struct CUevent_st {
    unsigned magic;
    unsigned flags;
    struct CUctx_st *context;
    struct sim_op *mark;
    struct sim_clock clock;
    unsigned long long capture_id;
    CUgraphNode *capture_nodes;
    size_t capture_node_count;
    struct sim_shared_event *shared;
    uint64_t own_record;
    struct CUevent_st *next;
    struct CUevent_st *older;
};

/* A new one, or a used handle; nothing but flags and context is set. */
struct CUevent_st *sim_event_create(struct CUctx_st *context, unsigned flags);

/* What every call with an event checks first. */
CUresult sim_event_enter(CUevent event, struct CUctx_st **context_out);
/* Puts the mark into its queue; the event stands for it from now on. */
CUresult sim_event_record(struct CUevent_st *event, struct sim_op *mark);

/* A record is being made: mark will tell the others when it is done. */
void sim_shared_event_record(struct CUevent_st *event, struct sim_op *mark);
/* Was the last record made by another process? Then: is it done, and an operation that waits for
 * it, in a queue. */
bool sim_shared_event_is_foreign(const struct CUevent_st *event);
bool sim_shared_event_is_done(const struct CUevent_st *event);
struct sim_op *sim_shared_event_wait(const struct CUevent_st *event, struct sim_queue *queue);
/* Lets go of the lock until it is done. */
void sim_shared_event_synchronize(const struct CUevent_st *event);
void sim_shared_event_forget(struct CUevent_st *event);

#endif
