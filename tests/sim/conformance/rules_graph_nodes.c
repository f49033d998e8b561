/* SPDX-License-Identifier: MIT */
/* Explicit nodes, executable graphs and their updates. */
#include "graphs.h"

#include <string.h>

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

RULE(graph, an_update_takes_other_children, "cuda.h, cuGraphExecUpdate")
{
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t graphs[2];
    cudaGraphNode_t node;

    start();
    for (int i = 0; i < 2; i++) {
        begin();
        OK(launch_fill(p, 8, i + 1, stream));
        OK(cudaGraphCreate(&graphs[i], 0));
        OK(cudaGraphAddChildGraphNode(&node, graphs[i], NULL, 0, end()));
    }
    cudaGraphExec_t exec = instantiate(graphs[0]);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphExecUpdate(exec, graphs[1], &info));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 2);
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

RULE(graph, nodes_tell_their_parameters, "cuda_runtime_api.h, cudaGraphKernelNodeGetParams")
{
    struct cudaKernelNodeParams kernel;
    struct cudaKernelNodeParams kernel_found;
    struct cudaMemsetParams set = {.dst = p, .elementSize = 1, .width = 4, .height = 1};
    struct cudaMemsetParams set_found;
    struct cudaMemcpy3DParms copy_found;
    cudaGraphNode_t node;
    int value = 3;

    start();
    set.dst = p;
    cudaGraph_t graph = adding_graph(&node, &kernel, &value);
    OK(cudaGraphKernelNodeGetParams(node, &kernel_found));
    CHECK(kernel_found.func == kernel.func);
    CHECK_EQ(kernel_found.gridDim.x, kernel.gridDim.x);
    CHECK_EQ(*(int *)kernel_found.kernelParams[2], 3);
    OK(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &set));
    OK(cudaGraphMemsetNodeGetParams(node, &set_found));
    CHECK(set_found.dst == p && set_found.width == 4);
    OK(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, p, p + 64, 8, cudaMemcpyDeviceToDevice));
    OK(cudaGraphMemcpyNodeGetParams(node, &copy_found));
    CHECK(copy_found.dstPtr.ptr == p && copy_found.srcPtr.ptr == p + 64);
    CHECK_EQ(copy_found.extent.width, 8);
}

RULE(graph, nodes_take_other_parameters, "cuda_runtime_api.h, cudaGraphMemsetNodeSetParams")
{
    struct cudaMemsetParams set = {.elementSize = 1, .value = 1, .width = 4, .height = 1};
    cudaGraphInstantiateParams how;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    cudaGraphNode_t first;
    cudaGraphNode_t second;

    start();
    set.dst = p;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemsetNode(&first, graph, NULL, 0, &set));
    OK(cudaGraphAddMemcpyNode1D(&second, graph, &first, 1, p + 64, p, 1, cudaMemcpyDeviceToDevice));
    set.value = 9;
    OK(cudaGraphMemsetNodeSetParams(first, &set));
    OK(cudaGraphMemcpyNodeSetParams1D(second, p + 128, p, 1, cudaMemcpyDeviceToDevice));
    memset(&how, 0, sizeof(how));
    OK(cudaGraphInstantiateWithParams(&exec, graph, &how));
    CHECK_EQ(how.result_out, cudaGraphInstantiateSuccess);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p + 128), 9);
    CHECK_EQ(rule_first_byte(p + 64), 0);
}
