/* SPDX-License-Identifier: MIT */
/* Work: what a call puts into a stream, or a node into each launch of its graph. */
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include "context.h"

struct sim_kernel;
struct sim_graph_memory;

struct sim_kernel_work {
    const struct sim_kernel *kernel;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    void **arguments;
};

/* A host function, or a stream callback with its stream. */
struct sim_host_work {
    CUhostFn function;
    CUstreamCallback callback;
    CUstream stream;
    void *data;
};

/* Waits for and writes of words. */
struct sim_memop_work {
    unsigned count;
    CUstreamBatchMemOpParams *ops;
};

struct sim_condition;

/* bodies: graphs that belong to the node. */
struct sim_conditional_work {
    struct sim_condition *condition;
    CUgraphConditionalNodeType type;
    unsigned body_count;
    CUgraph *bodies;
};

/* The member of the union that type says; events are those of both event nodes, memory that of an
 * allocation or a free. */
struct sim_work {
    CUgraphNodeType type;
    union {
        struct sim_kernel_work kernel;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        struct sim_host_work host;
        CUgraph child;
        CUevent event;
        struct sim_graph_memory *memory;
        struct sim_memop_work memops;
        struct sim_conditional_work conditional;
    };
};

/* A copy that owns arguments, child graph and memory; fini gives them up. */
void sim_work_copy(struct sim_work *work, const struct sim_work *from);
void sim_work_fini(struct sim_work *work);
/* Puts it at the end of a queue that does not capture. */
CUresult sim_work_run(const struct sim_work *work, struct sim_queue *queue);
/* Puts it at the end of a queue, or into the capture that is going on there. */
CUresult sim_work_submit(const struct sim_work *work, struct sim_queue *queue);

/* Adds what the work will touch to an operation: at least one byte of every block. */
void sim_work_reach(const struct sim_work *work, struct sim_op *op);

/* The single kinds, each in the file of its calls. */
CUresult sim_kernel_run(const struct sim_kernel_work *work, struct sim_queue *queue);
CUresult sim_copy_run(const CUDA_MEMCPY3D *work, struct sim_queue *queue);
CUresult sim_set_run(const CUDA_MEMSET_NODE_PARAMS *work, struct sim_queue *queue);
CUresult sim_host_run(const struct sim_host_work *work, struct sim_queue *queue);
CUresult sim_event_record_run(CUevent event, struct sim_queue *queue);
CUresult sim_event_wait_run(CUevent event, struct sim_queue *queue);
CUresult sim_memops_run(const struct sim_memop_work *work, struct sim_queue *queue);
/* A copy of a batch; early: its source is read before this returns. */
CUresult sim_copy_in_batch(const CUDA_MEMCPY3D *work, struct sim_queue *queue, bool is_early);
void sim_kernel_reach(const struct sim_kernel_work *work, struct sim_op *op);
void sim_copy_reach(const CUDA_MEMCPY3D *work, struct sim_op *op);
void sim_set_reach(const CUDA_MEMSET_NODE_PARAMS *work, struct sim_op *op);

#endif
