/* SPDX-License-Identifier: MIT */
#include "work.h"

#include "capture.h"
#include "conditional.h"
#include "graph.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

/* One piece of memory: the pointers and behind them what they point to. */
static void copy_arguments(struct sim_kernel_work *work)
{
    const struct sim_kernel *kernel = work->kernel;
    void **from = work->arguments;
    size_t count = kernel->parameter_count > 0 ? (size_t)kernel->parameter_count : 0;
    size_t bytes = count * sizeof(void *);

    if (from == NULL || count == 0) {
        work->arguments = NULL;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        bytes += (kernel->parameters[i].size_bytes + 15u) & ~(size_t)15;
    }
    work->arguments = calloc(1, bytes);
    char *at = (char *)(work->arguments + count);
    for (size_t i = 0; i < count; i++) {
        work->arguments[i] = memcpy(at, from[i], kernel->parameters[i].size_bytes);
        at += (kernel->parameters[i].size_bytes + 15u) & ~(size_t)15;
    }
}

static void copy_memops(struct sim_memop_work *work)
{
    size_t bytes = work->count * sizeof(*work->ops);
    void *copy = malloc(bytes + 1);

    work->ops = bytes != 0 ? memcpy(copy, work->ops, bytes) : copy;
}

void sim_work_copy(struct sim_work *work, const struct sim_work *from)
{
    *work = *from;
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: copy_arguments(&work->kernel); break;
    case CU_GRAPH_NODE_TYPE_GRAPH: work->child = sim_graph_clone(from->child); break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: sim_conditional_copy(&work->conditional); break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: copy_memops(&work->memops); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: sim_graph_memory_hold(work->memory); break;
    default: break;
    }
}

void sim_work_fini(struct sim_work *work)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: free(work->kernel.arguments); break;
    case CU_GRAPH_NODE_TYPE_GRAPH: sim_graph_destroy(work->child); break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: sim_conditional_fini(&work->conditional); break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: free(work->memops.ops); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: sim_graph_memory_drop(work->memory); break;
    default: break;
    }
}

CUresult sim_work_run(const struct sim_work *work, struct sim_queue *queue)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return sim_kernel_run(&work->kernel, queue);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return sim_copy_run(&work->copy, queue);
    case CU_GRAPH_NODE_TYPE_MEMSET: return sim_set_run(&work->set, queue);
    case CU_GRAPH_NODE_TYPE_HOST: return sim_host_run(&work->host, queue);
    case CU_GRAPH_NODE_TYPE_GRAPH: return sim_graph_run(work->child, queue);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return sim_event_record_run(work->event, queue);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return sim_event_wait_run(work->event, queue);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return sim_conditional_run(&work->conditional, queue);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return sim_memops_run(&work->memops, queue);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return sim_graph_memory_alloc(work->memory, queue);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return sim_graph_memory_free(work->memory, queue);
    default: return CUDA_SUCCESS;
    }
}

void sim_work_reach(const struct sim_work *work, struct sim_op *op)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: sim_kernel_reach(&work->kernel, op); break;
    case CU_GRAPH_NODE_TYPE_MEMCPY: sim_copy_reach(&work->copy, op); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: sim_set_reach(&work->set, op); break;
    default: break;
    }
}

CUresult sim_work_submit(const struct sim_work *work, struct sim_queue *queue)
{
    if (queue->capture != NULL) {
        return sim_capture_work(queue, work);
    }
    return sim_work_run(work, queue);
}
