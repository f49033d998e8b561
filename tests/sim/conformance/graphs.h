/* SPDX-License-Identifier: MIT */
/* What the rules about graphs have in common: two streams that nothing orders, a block of zeros,
 * and a capture in the first stream. */
#ifndef SIM_RULE_GRAPHS_H
#define SIM_RULE_GRAPHS_H

#include "rule.h"

#define BYTES 4096

static cudaStream_t stream;
static cudaStream_t other;
static char *p;

static inline void start(void)
{
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, BYTES));
    OK(cudaMemset(p, 0, BYTES));
    OK(cudaDeviceSynchronize());
}

static inline void begin(void)
{
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

static inline cudaGraph_t end(void)
{
    cudaGraph_t graph = NULL;

    OK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static inline cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec = NULL;

    OK(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

static inline size_t node_count(cudaGraph_t graph)
{
    size_t count = 0;

    OK(cudaGraphGetNodes(graph, NULL, &count));
    return count;
}

static inline enum cudaGraphNodeType first_type(cudaGraph_t graph)
{
    cudaGraphNode_t node;
    enum cudaGraphNodeType type;
    size_t count = 1;

    OK(cudaGraphGetNodes(graph, &node, &count));
    OK(cudaGraphNodeGetType(node, &type));
    return type;
}

/* Orders the second stream after the first, also in a capture. */
static inline void order(cudaStream_t before, cudaStream_t after)
{
    cudaEvent_t event;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaEventRecord(event, before));
    OK(cudaStreamWaitEvent(after, event, 0));
}

static inline int number(void *at)
{
    int value = 0;

    OK(cudaMemcpy(&value, at, sizeof(value), cudaMemcpyDeviceToHost));
    return value;
}

/* A graph that allocates, fills and maybe frees. */
static inline cudaGraph_t allocating_graph(char **q_out, int is_freed)
{
    begin();
    OK(cudaMallocAsync((void **)q_out, BYTES, stream));
    OK(launch_fill(*q_out, BYTES, 5, stream));
    OK(cudaMemcpyAsync(p, *q_out, 16, cudaMemcpyDeviceToDevice, stream));
    if (is_freed) {
        OK(cudaFreeAsync(*q_out, stream));
    }
    return end();
}

#endif
