/* SPDX-License-Identifier: MIT */
/* Stream capture: work put into a capturing queue is recorded, not run, and calls that CUDA forbids
 * meanwhile end the capture. The graph that comes out can be destroyed, not yet launched. */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "context.h"

#include <pthread.h>

/* Lives from begin to end; the origin takes part and the queues that joined it through an event. */
struct sim_capture {
    struct sim_capture *next;
    struct sim_queue *origin;
    CUstreamCaptureMode mode;
    CUstreamCaptureStatus status;
    pthread_t thread;
    unsigned long long id;
    CUgraph graph;
};

struct CUgraph_st {
    unsigned magic;
    size_t node_count;
};

/* A call that may be unsafe while somebody captures: refused by the modes of the capture and of
 * this thread. */
CUresult sim_capture_refuse_unsafe(void);
/* A call that covers a whole context: refused, and ends the captures of its streams. */
CUresult sim_capture_refuse_context(struct CUctx_st *context);
/* A call that waits for or asks after one queue. */
CUresult sim_capture_refuse_queue(struct sim_queue *queue);
/* Use of the legacy stream while a blocking stream of the context captures. */
CUresult sim_capture_refuse_implicit(struct sim_queue *queue);
/* Records one operation of a capturing queue; an error when the capture is broken. */
CUresult sim_capture_add(struct sim_queue *queue);
/* The queue takes part from now on. */
void sim_capture_join(struct sim_queue *queue, struct sim_capture *capture);
/* The capture of that id while it goes on, or NULL; 0 is nobody's id. */
struct sim_capture *sim_capture_of_id(unsigned long long id);

#endif
