/* SPDX-License-Identifier: MIT */
/* Stream handles. A handle is used again soon after its stream is gone, as a real driver does; the
 * id of a stream never is. */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "context.h"

struct CUstream_st {
    unsigned magic;
    unsigned flags;
    int priority;
    struct sim_queue *queue;
    struct CUctx_st *context;
    struct CUstream_st *next;
};

/* A handle for a queue; the priority is cut to the range there is. */
struct CUstream_st *sim_stream_create(struct CUctx_st *context, struct sim_queue *queue,
                                      unsigned flags, int priority);
/* The stream behind a handle that is not one of the default streams, or NULL. */
struct CUstream_st *sim_stream_of(CUstream handle);

#endif
