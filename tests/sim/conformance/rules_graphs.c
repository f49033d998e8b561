/* SPDX-License-Identifier: MIT */
/* Captured graphs and their launches. */
#include "graphs.h"

#include <pthread.h>
#include <string.h>

RULE(graph, captured_work_becomes_nodes, "cuda.h, cuStreamBeginCapture")
{
    start();
    begin();
    OK(launch_fill(p, BYTES, 1, stream));
    OK(cudaMemsetAsync(p, 2, 1, stream));
    OK(cudaMemcpyAsync(p + 64, p, 1, cudaMemcpyDeviceToDevice, stream));
    cudaGraph_t graph = end();
    CHECK_EQ(node_count(graph), 3);
    CHECK_EQ(first_type(graph), cudaGraphNodeTypeKernel);
}

RULE(graph, a_launch_runs_it, "cuda.h, cuGraphLaunch")
{
    start();
    begin();
    OK(launch_fill(p, BYTES, 1, stream));
    OK(cudaMemsetAsync(p, 2, 1, stream));
    OK(cudaMemcpyAsync(p + 64, p, 1, cudaMemcpyDeviceToDevice, stream));
    OK(cudaGraphLaunch(instantiate(end()), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 2);
    CHECK_EQ(rule_first_byte(p + 64), 2);
    CHECK_EQ(rule_first_byte(p + 65), 1);
}

RULE(graph, it_runs_as_often_as_launched, "cuda.h, cuGraphLaunch")
{
    start();
    begin();
    OK(launch_add((int *)p, 4, 5, stream));
    cudaGraphExec_t exec = instantiate(end());
    for (int i = 0; i < 20; i++) {
        OK(cudaGraphLaunch(exec, stream));
    }
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 100);
}

RULE(graph, arguments_are_those_of_the_capture, "guide, CUDA Graphs")
{
    start();
    begin();
    int value = 7;
    OK(launch_add((int *)p, 1, value, stream));
    value = 9;
    OK(cudaGraphLaunch(instantiate(end()), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 7);
}

RULE(graph, a_launch_comes_after_its_stream, "cuda.h, cuGraphLaunch")
{
    struct rule_gate gate;

    start();
    begin();
    OK(launch_fill(p, BYTES, 1, stream));
    cudaGraphExec_t exec = instantiate(end());
    rule_close(&gate, stream);
    OK(cudaGraphLaunch(exec, stream));
    CHECK(rule_is_held(stream));
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 1);
}

RULE(graph, launches_of_one_exec_do_not_overlap, "cuda.h, cuGraphLaunch")
{
    struct rule_gate gate;

    start();
    begin();
    OK(launch_add((int *)p, 1, 1, stream));
    cudaGraphExec_t exec = instantiate(end());
    rule_close(&gate, stream);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, other));
    CHECK(rule_is_held(other));
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
    CHECK_EQ(number(p), 2);
}

static void CUDART_CB count_call(void *count)
{
    ++*(int *)count;
}

RULE(graph, host_functions_become_nodes, "cuda.h, cuLaunchHostFunc")
{
    static int calls;

    start();
    begin();
    OK(cudaLaunchHostFunc(stream, count_call, &calls));
    cudaGraph_t graph = end();
    CHECK_EQ(first_type(graph), cudaGraphNodeTypeHost);
    CHECK_EQ(calls, 0);
    cudaGraphExec_t exec = instantiate(graph);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(calls, 2);
}

RULE(graph, events_in_a_capture_are_edges, "guide, Cross-stream Dependencies and Events")
{
    size_t count = 0;
    size_t roots = 0;

    start();
    begin();
    OK(launch_fill(p, 8, 1, stream));
    order(stream, other);
    OK(launch_fill(p + 8, 8, 2, other));
    OK(launch_fill(p + 16, 8, 3, stream));
    order(other, stream);
    OK(launch_fill(p, 24, 4, stream));
    cudaGraph_t graph = end();
    CHECK_EQ(node_count(graph), 4);
    OK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
    CHECK_EQ(count, 4);
    OK(cudaGraphGetRootNodes(graph, NULL, &roots));
    CHECK_EQ(roots, 1);
}

/* The thread has two bytes of stack for a node. */
static void *capture_deep(void *unused)
{
    cudaGraph_t graph;
    size_t count = 0;

    (void)unused;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < 64000; i++) {
        OK(cudaMemsetAsync(p, i, 1, stream));
    }
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &count));
    CHECK_EQ(count, 64000);
    OK(cudaGraphDestroy(graph));
    return NULL;
}

RULE(graph, depth_costs_no_stack, "assumed")
{
    pthread_attr_t small;
    pthread_t thread;

    start();
    CHECK_EQ(pthread_attr_init(&small), 0);
    CHECK_EQ(pthread_attr_setstacksize(&small, 131072), 0);
    CHECK_EQ(pthread_create(&thread, &small, capture_deep, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

RULE(graph, streams_must_be_joined, "cuda.h, CUDA_ERROR_STREAM_CAPTURE_UNJOINED")
{
    cudaGraph_t graph = (cudaGraph_t)&graph;

    start();
    begin();
    order(stream, other);
    OK(launch_fill(p, 8, 1, other));
    CHECK_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
    CHECK(graph == NULL);
}

RULE(graph, two_captures_do_not_merge, "cuda.h, CUDA_ERROR_STREAM_CAPTURE_MERGE")
{
    cudaEvent_t event;

    start();
    OK(cudaEventCreate(&event));
    begin();
    OK(cudaStreamBeginCapture(other, cudaStreamCaptureModeRelaxed));
    OK(cudaEventRecord(event, other));
    CHECK_EQ(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureMerge);
}

RULE(graph, a_capture_can_go_into_a_graph, "cuda.h, cuStreamBeginCaptureToGraph")
{
    cudaGraph_t graph;
    cudaGraph_t same = NULL;

    start();
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, cudaStreamCaptureModeRelaxed));
    OK(launch_fill(p, 8, 1, stream));
    OK(cudaStreamEndCapture(stream, &same));
    CHECK(same == graph);
    CHECK_EQ(node_count(graph), 1);
}

RULE(graph, a_capture_tells_its_last_nodes, "cuda.h, cuStreamGetCaptureInfo")
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    const cudaGraphNode_t *nodes = NULL;
    size_t count = 7;

    start();
    begin();
    OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &nodes, NULL, &count));
    CHECK_EQ(count, 0);
    OK(launch_fill(p, 8, 1, stream));
    OK(launch_fill(p, 8, 2, stream));
    OK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &nodes, NULL, &count));
    CHECK_EQ(count, 1);
    CHECK(end() == graph);
}
