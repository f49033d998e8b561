/* SPDX-License-Identifier: MIT */
/* Contexts, which of them is current on a thread, and what every function checks first. */
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

#include "engine.h"

#include <cuda.h>

/* A context is never freed, so a stale handle can be told. The primary context of a device keeps
 * its handle over resets; is_active says whether it exists at the moment. floor: what later work of
 * every stream waits for (cuCtxWaitEvent). marks: the queue of cuCtxRecordEvent. green: this is no
 * context but the handle of a green one, which can be current; sim_enter and sim_context_of give
 * the primary context for it. */
struct CUctx_st {
    unsigned magic;
    struct CUgreenCtx_st *green;
    int device;
    bool is_primary;
    bool is_active;
    unsigned references;
    unsigned flags;
    unsigned long long id;
    CUresult sticky;
    struct sim_queue *queues;
    struct sim_queue *legacy;
    struct sim_queue *marks;
    struct sim_op *floor;
    struct sim_clock floor_clock;
    struct CUstream_st *streams;
    size_t limits[16];
    unsigned peers;
    int cache_config;
};

extern bool sim_is_initialized;

/* The current context, or NULL; no checks. */
struct CUctx_st *sim_context_current(void);
/* Initialised, a current context, alive, no sticky error. */
CUresult sim_enter(struct CUctx_st **context_out);
CUresult sim_check_device(CUdevice device);
/* A live context behind a handle; NULL: not one. */
struct CUctx_st *sim_context_of(CUcontext handle);

/* The queue behind a stream handle as the running call means it; 0 is legacy or per-thread. */
CUresult sim_enter_stream(CUstream handle, struct sim_queue **queue_out);
struct sim_queue *sim_per_thread_queue(struct CUctx_st *context);
/* In stream.c: forgets the handles of a context that ends. */
void sim_stream_forget_context(struct CUctx_st *context);
/* In memory.c: frees what cuMemAlloc and its kin gave to the context. */
void sim_memory_forget_context(struct CUctx_st *context);

/* Operations that are kept instead of being put into their queue. */
struct sim_collection {
    struct sim_op **ops;
    unsigned count;
    bool is_open;
};

/* From begin to end, sim_submit keeps the operations; end gives them, and goes on with the
 * collection that begin interrupted. */
struct sim_collection sim_collect_begin(void);
struct sim_collection sim_collect_end(struct sim_collection outer);
/* Hands an operation to its queue, or to the capture that is going on there. */
CUresult sim_submit(struct sim_op *op);

#endif
