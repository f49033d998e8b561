/* SPDX-License-Identifier: MIT */
/* Stream capture: work put into a capturing queue becomes a node of a graph and does not run, and
 * calls that CUDA forbids meanwhile end the capture. */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "block.h"
#include "context.h"
#include "violation.h"
#include "work.h"

#include <pthread.h>

/* Memory that a captured node will touch. */
struct sim_captured_use {
    struct sim_captured_use *next;
    struct sim_block *block;
    struct sim_party party;
};

/* Lives from begin to end; the origin takes part and the queues that joined it through an event. */
struct sim_capture {
    struct sim_capture *next;
    struct sim_queue *origin;
    CUstreamCaptureMode mode;
    CUstreamCaptureStatus status;
    pthread_t thread;
    unsigned long long id;
    CUgraph graph;
    bool is_graph_given;
    struct sim_captured_use *uses;
};

/* A call that may be unsafe while somebody captures: refused by the modes of the capture and of
 * this thread. */
CUresult sim_capture_refuse_unsafe(void);
/* A call that covers a whole context: refused, and ends the captures of its streams. */
CUresult sim_capture_refuse_context(struct CUctx_st *context);
/* A call that waits for or asks after one queue. */
CUresult sim_capture_refuse_queue(struct sim_queue *queue);
/* The queue's stream goes away: a capture that began there is over, one that it joined is broken.
 */
void sim_capture_drop(struct sim_queue *queue);
/* Use of the legacy stream while a blocking stream of the context captures. */
CUresult sim_capture_refuse_implicit(struct sim_queue *queue);
/* Work for a capturing queue becomes a node; an error when the capture is broken. */
CUresult sim_capture_work(struct sim_queue *queue, const struct sim_work *work);
/* The block is about to end: a violation when a capture that goes on has taken up work with it. */
void sim_capture_refuse_end(struct sim_block *block);
/* The queue takes part from now on, if it did not, and its next node comes after these too. */
CUresult sim_capture_join(struct sim_queue *queue, struct sim_capture *capture,
                          CUgraphNode const *nodes, size_t count);
/* The capture of that id while it goes on, or NULL; 0 is nobody's id. */
struct sim_capture *sim_capture_of_id(unsigned long long id);

#endif
