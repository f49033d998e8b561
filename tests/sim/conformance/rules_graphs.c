/* SPDX-License-Identifier: MIT */
/* Graphs: captured and explicit, their launches, their memory. */
#include "rule.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define BYTES 4096

static cudaStream_t stream;
static cudaStream_t other;
static char *p;

static void start(void)
{
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, BYTES));
    OK(cudaMemset(p, 0, BYTES));
    OK(cudaDeviceSynchronize());
}

static void begin(void)
{
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

static cudaGraph_t end(void)
{
    cudaGraph_t graph = NULL;

    OK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec = NULL;

    OK(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

static size_t node_count(cudaGraph_t graph)
{
    size_t count = 0;

    OK(cudaGraphGetNodes(graph, NULL, &count));
    return count;
}

static enum cudaGraphNodeType first_type(cudaGraph_t graph)
{
    cudaGraphNode_t node;
    enum cudaGraphNodeType type;
    size_t count = 1;

    OK(cudaGraphGetNodes(graph, &node, &count));
    OK(cudaGraphNodeGetType(node, &type));
    return type;
}

/* Orders the second stream after the first, also in a capture. */
static void order(cudaStream_t before, cudaStream_t after)
{
    cudaEvent_t event;

    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaEventRecord(event, before));
    OK(cudaStreamWaitEvent(after, event, 0));
}

static int number(void *at)
{
    int value = 0;

    OK(cudaMemcpy(&value, at, sizeof(value), cudaMemcpyDeviceToHost));
    return value;
}

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

RULE(graph, explicit_nodes_run_in_order, "cuda.h, cuGraphAddMemsetNode")
{
    cudaGraph_t graph;
    cudaGraphNode_t set;
    cudaGraphNode_t copy;
    struct cudaMemsetParams params = {0};
    char host[4] = {0};

    start();
    params.dst = p;
    params.value = 6;
    params.elementSize = 1;
    params.width = 4;
    params.height = 1;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &params));
    OK(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, host, p, 4, cudaMemcpyDeviceToHost));
    OK(cudaGraphLaunch(instantiate(graph), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(host[3], 6);
}

/* A graph of one kernel that adds. */
static cudaGraph_t adding_graph(cudaGraphNode_t *node_out, struct cudaKernelNodeParams *params_out,
                                int *value)
{
    static int *at;
    static size_t count = 1;
    static void *arguments[3];
    cudaGraph_t graph;

    at = (int *)p;
    arguments[0] = &at;
    arguments[1] = &count;
    arguments[2] = value;
    memset(params_out, 0, sizeof(*params_out));
    params_out->func = (void *)kernel_add();
    params_out->gridDim = (dim3){1, 1, 1};
    params_out->blockDim = (dim3){1, 1, 1};
    params_out->kernelParams = arguments;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddKernelNode(node_out, graph, NULL, 0, params_out));
    return graph;
}

RULE(graph, kernel_nodes_copy_their_arguments, "cuda.h, cuGraphAddKernelNode")
{
    struct cudaKernelNodeParams params;
    cudaGraphNode_t node;
    int value = 3;

    start();
    cudaGraph_t graph = adding_graph(&node, &params, &value);
    value = 1000;
    OK(cudaGraphLaunch(instantiate(graph), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 3);
}

RULE(graph, an_exec_keeps_its_parameters, "cuda.h, cuGraphExecKernelNodeSetParams")
{
    struct cudaKernelNodeParams params;
    cudaGraphNode_t node;
    int value = 3;

    start();
    cudaGraph_t graph = adding_graph(&node, &params, &value);
    cudaGraphExec_t exec = instantiate(graph);
    value = 10;
    OK(cudaGraphKernelNodeSetParams(node, &params));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 3);
    OK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 13);
}

RULE(graph, an_update_takes_new_parameters, "cuda.h, cuGraphExecUpdate")
{
    struct cudaKernelNodeParams params;
    cudaGraphExecUpdateResultInfo info;
    cudaGraphNode_t node;
    int value = 3;

    start();
    cudaGraphExec_t exec = instantiate(adding_graph(&node, &params, &value));
    value = 20;
    OK(cudaGraphExecUpdate(exec, adding_graph(&node, &params, &value), &info));
    CHECK_EQ(info.result, cudaGraphExecUpdateSuccess);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 20);
}

RULE(graph, an_update_needs_the_same_shape, "cuda.h, cuGraphExecUpdate")
{
    struct cudaKernelNodeParams params;
    cudaGraphExecUpdateResultInfo info;
    cudaGraphNode_t node;
    int value = 3;

    start();
    cudaGraphExec_t exec = instantiate(adding_graph(&node, &params, &value));
    cudaGraph_t graph = adding_graph(&node, &params, &value);
    OK(cudaGraphAddEmptyNode(&node, graph, &node, 1));
    CHECK_EQ(cudaGraphExecUpdate(exec, graph, &info), cudaErrorGraphExecUpdateFailure);
    CHECK_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
}

RULE(graph, circles_are_refused, "cuda.h, cuGraphInstantiate")
{
    cudaGraph_t graph;
    cudaGraphNode_t nodes[2];
    cudaGraphExec_t exec;

    start();
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    OK(cudaGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
    if (cudaGraphAddDependencies(graph, &nodes[1], &nodes[0], NULL, 1) == cudaSuccess) {
        CHECK(cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess);
    }
}

RULE(graph, an_edge_exists_once, "cuda.h, cuGraphAddDependencies")
{
    cudaGraph_t graph;
    cudaGraphNode_t nodes[2];

    start();
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
    OK(cudaGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
    CHECK_EQ(cudaGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1), cudaErrorInvalidValue);
}

RULE(graph, a_clone_is_of_its_own, "cuda.h, cuGraphClone")
{
    cudaGraph_t graph;
    cudaGraph_t clone;
    cudaGraphNode_t node;
    cudaGraphNode_t found = NULL;

    start();
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    OK(cudaGraphClone(&clone, graph));
    OK(cudaGraphNodeFindInClone(&found, node, clone));
    CHECK(found != node);
    OK(cudaGraphDestroyNode(node));
    CHECK_EQ(node_count(graph), 0);
    CHECK_EQ(node_count(clone), 1);
}

RULE(graph, an_exec_outlives_its_graph, "cuda.h, cuGraphDestroy")
{
    start();
    begin();
    OK(launch_fill(p, 8, 4, stream));
    cudaGraph_t graph = end();
    cudaGraphExec_t exec = instantiate(graph);
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 4);
    OK(cudaGraphExecDestroy(exec));
}

RULE(graph, an_exec_may_go_while_it_runs, "assumed")
{
    struct rule_gate gate;

    start();
    begin();
    OK(launch_fill(p, 8, 4, stream));
    cudaGraphExec_t exec = instantiate(end());
    rule_close(&gate, stream);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecDestroy(exec));
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 4);
}

RULE(graph, a_child_runs_where_it_stands, "cuda.h, cuGraphAddChildGraphNode")
{
    cudaGraph_t graph;
    cudaGraphNode_t node;

    start();
    begin();
    OK(launch_add((int *)p, 1, 2, stream));
    cudaGraph_t child = end();
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK(cudaGraphAddChildGraphNode(&node, graph, &node, 1, child));
    OK(cudaGraphLaunch(instantiate(graph), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 4);
}

RULE(graph, a_launch_in_a_capture_is_a_child, "guide, Creating a Graph Using Stream Capture")
{
    start();
    begin();
    OK(launch_add((int *)p, 1, 2, stream));
    cudaGraphExec_t exec = instantiate(end());
    begin();
    OK(cudaGraphLaunch(exec, stream));
    cudaGraph_t graph = end();
    CHECK_EQ(first_type(graph), cudaGraphNodeTypeGraph);
    CHECK_EQ(number(p), 0);
    OK(cudaGraphLaunch(instantiate(graph), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 2);
}

RULE(graph, nodes_can_be_disabled, "cuda.h, cuGraphNodeSetEnabled")
{
    struct cudaKernelNodeParams params;
    cudaGraphNode_t node;
    int value = 3;

    start();
    cudaGraphExec_t exec = instantiate(adding_graph(&node, &params, &value));
    OK(cudaGraphNodeSetEnabled(exec, node, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphNodeSetEnabled(exec, node, 1));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(p), 3);
}

RULE(graph, event_nodes_record, "cuda.h, cuGraphAddEventRecordNode")
{
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaEvent_t event;
    struct rule_gate gate;

    start();
    OK(cudaEventCreate(&event));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddEventRecordNode(&node, graph, NULL, 0, event));
    cudaGraphExec_t exec = instantiate(graph);
    rule_close(&gate, stream);
    OK(cudaGraphLaunch(exec, stream));
    CHECK_EQ(cudaEventQuery(event), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaEventSynchronize(event));
}

/* A graph that allocates, fills and maybe frees. */
static cudaGraph_t allocating_graph(char **q_out, int is_freed)
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

static uint64_t graph_memory(enum cudaGraphMemAttributeType attribute)
{
    uint64_t value = 0;

    OK(cudaDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

RULE(graph_memory, allocations_become_nodes, "cuda.h, cuMemAllocAsync")
{
    char *q = NULL;

    start();
    cudaGraph_t graph = allocating_graph(&q, 1);
    CHECK(q != NULL);
    CHECK_EQ(first_type(graph), cudaGraphNodeTypeMemAlloc);
    CHECK_EQ(node_count(graph), 4);
    cudaGraphExec_t exec = instantiate(graph);
    for (int i = 0; i < 5; i++) {
        OK(cudaGraphLaunch(exec, stream));
    }
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 5);
}

RULE(graph_memory, only_its_own_is_freed_in_a_capture, "cuda.h, cuMemFreeAsync")
{
    start();
    begin();
    CHECK_EQ(cudaFreeAsync(p, stream), cudaErrorInvalidValue);
}

RULE(graph_memory, a_graph_frees_once, "cuda.h, cuGraphAddMemFreeNode")
{
    cudaGraphNode_t node;
    char *q;

    start();
    cudaGraph_t graph = allocating_graph(&q, 1);
    CHECK_EQ(cudaGraphAddMemFreeNode(&node, graph, NULL, 0, q), cudaErrorInvalidValue);
    CHECK_EQ(cudaGraphAddMemFreeNode(&node, graph, NULL, 0, p), cudaErrorInvalidValue);
}

RULE(graph_memory, what_is_not_freed_stays, "cuda.h, cuGraphAddMemAllocNode")
{
    char *q;

    start();
    OK(cudaGraphLaunch(instantiate(allocating_graph(&q, 0)), stream));
    OK(launch_add((int *)q, 1, 1, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(q), 6);
    OK(cudaFree(q));
}

RULE(graph_memory, a_second_launch_needs_it_freed, "cuda.h, cuGraphLaunch")
{
    char *q;

    start();
    cudaGraphExec_t exec = instantiate(allocating_graph(&q, 0));
    OK(cudaGraphLaunch(exec, stream));
    CHECK_EQ(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
    OK(cudaFreeAsync(q, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaFree(q));
}

RULE(graph_memory, a_flag_frees_it_at_the_next_launch,
     "cuda.h, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_"
     "FREE_ON_LAUNCH")
{
    cudaGraphExec_t exec;
    char *q;

    start();
    OK(cudaGraphInstantiate(&exec, allocating_graph(&q, 0),
                            cudaGraphInstantiateFlagAutoFreeOnLaunch));
    for (int i = 0; i < 4; i++) {
        OK(cudaGraphLaunch(exec, stream));
    }
    OK(cudaStreamSynchronize(stream));
    OK(cudaFree(q));
}

RULE(graph_memory, there_is_one_exec_at_a_time, "cuda.h, cuGraphInstantiate")
{
    cudaGraphExec_t first;
    cudaGraphExec_t second;
    char *q;

    start();
    cudaGraph_t graph = allocating_graph(&q, 1);
    OK(cudaGraphInstantiate(&first, graph, 0));
    CHECK(cudaGraphInstantiate(&second, graph, 0) != cudaSuccess);
    OK(cudaGraphExecDestroy(first));
    OK(cudaGraphInstantiate(&second, graph, 0));
}

RULE(graph_memory, it_is_not_cloned, "cuda.h, cuGraphClone")
{
    cudaGraph_t clone;
    char *q;

    start();
    CHECK(cudaGraphClone(&clone, allocating_graph(&q, 1)) != cudaSuccess);
}

RULE(graph_memory, it_is_counted_and_trimmed, "cuda.h, cuDeviceGraphMemTrim")
{
    char *q;

    start();
    OK(cudaGraphLaunch(instantiate(allocating_graph(&q, 1)), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(graph_memory(cudaGraphMemAttrUsedMemCurrent), 0);
    CHECK(graph_memory(cudaGraphMemAttrUsedMemHigh) >= BYTES);
    CHECK(graph_memory(cudaGraphMemAttrReservedMemCurrent) >= BYTES);
    OK(cudaDeviceGraphMemTrim(0));
    CHECK_EQ(graph_memory(cudaGraphMemAttrReservedMemCurrent), 0);
}

RULE(graph_memory, explicit_nodes_allocate, "cuda.h, cuGraphAddMemAllocNode")
{
    cudaGraph_t graph;
    cudaGraphNode_t nodes[3];
    struct cudaMemAllocNodeParams params = {0};
    struct cudaMemsetParams set = {0};

    start();
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = BYTES;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &params));
    CHECK(params.dptr != NULL);
    set.dst = params.dptr;
    set.elementSize = 1;
    set.width = BYTES;
    set.height = 1;
    OK(cudaGraphAddMemsetNode(&nodes[1], graph, &nodes[0], 1, &set));
    OK(cudaGraphAddMemFreeNode(&nodes[2], graph, &nodes[1], 1, params.dptr));
    cudaGraphExec_t exec = instantiate(graph);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
}

RULE(graph_order, nodes_without_an_edge_do_not_meet, "guide, CUDA Graphs", RULE_WRONG)
{
    start();
    begin();
    OK(launch_fill(p + 1024, 8, 1, stream));
    order(stream, other);
    OK(launch_fill(p, 8, 1, other));
    OK(launch_fill(p, 8, 2, stream));
    order(other, stream);
    CHECK_EQ(cudaGraphLaunch(instantiate(end()), stream), cudaErrorIllegalAddress);
}

RULE(graph_order, a_launch_is_ordered_like_its_stream, "cuda.h, cuGraphLaunch", RULE_WRONG)
{
    start();
    begin();
    OK(launch_fill(p, 8, 1, stream));
    cudaGraphExec_t exec = instantiate(end());
    OK(launch_fill(p, 8, 2, other));
    CHECK_EQ(cudaGraphLaunch(exec, stream), cudaErrorIllegalAddress);
}

RULE(graph_order, work_after_a_launch_needs_order, "cuda.h, cuGraphLaunch", RULE_WRONG)
{
    start();
    begin();
    OK(launch_fill(p, 8, 1, stream));
    OK(cudaGraphLaunch(instantiate(end()), stream));
    CHECK_EQ(launch_fill(p, 8, 2, other), cudaErrorIllegalAddress);
}

RULE(graph_order, freed_memory_is_not_launched_on, "cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS", RULE_WRONG)
{
    start();
    begin();
    OK(launch_fill(p, 8, 1, stream));
    cudaGraphExec_t exec = instantiate(end());
    OK(cudaFree(p));
    CHECK_EQ(cudaGraphLaunch(exec, stream), cudaErrorIllegalAddress);
}

RULE(graph_order, graph_memory_ends_at_its_free, "cuda.h, cuGraphAddMemAllocNode", RULE_WRONG)
{
    char *q;

    start();
    OK(cudaGraphLaunch(instantiate(allocating_graph(&q, 1)), stream));
    CHECK_EQ(launch_fill(q, 8, 1, stream), cudaErrorIllegalAddress);
}

RULE(graph_order, edges_order, "guide, CUDA Graphs", RULE_RIGHT)
{
    char *q;

    start();
    begin();
    OK(launch_fill(p, 64, 1, stream));
    order(stream, other);
    OK(launch_fill(p, 32, 1, other));
    OK(launch_fill(p + 32, 32, 2, stream));
    order(other, stream);
    OK(launch_fill(p, 64, 3, stream));
    cudaGraphExec_t exec = instantiate(end());
    OK(launch_fill(p, 64, 4, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(launch_fill(p, 64, 5, stream));
    order(stream, other);
    OK(cudaGraphLaunch(exec, other));
    OK(cudaDeviceSynchronize());
    exec = instantiate(allocating_graph(&q, 1));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaDeviceSynchronize());
}

RULE(graph_order, launches_of_one_exec_are_ordered, "cuda.h, cuGraphLaunch", RULE_RIGHT)
{
    start();
    begin();
    OK(launch_fill(p, 8, 1, stream));
    order(stream, other);
    OK(launch_copy(p + 64, p, 8, other));
    OK(launch_copy(p + 128, p, 8, stream));
    order(other, stream);
    cudaGraphExec_t exec = instantiate(end());
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, other));
    OK(cudaDeviceSynchronize());
}
