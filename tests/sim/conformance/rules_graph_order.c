/* SPDX-License-Identifier: MIT */
/* What in a graph is ordered, and what around it. */
#include "graphs.h"

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

/* A graph whose one node is the other graph. */
static cudaGraph_t around(cudaGraph_t child)
{
    cudaGraph_t graph;
    cudaGraphNode_t node;

    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    return graph;
}

RULE(graph_order, nodes_of_a_child_do_not_meet_without_an_edge, "guide, CUDA Graphs", RULE_WRONG)
{
    start();
    begin();
    OK(launch_fill(p + 1024, 8, 1, stream));
    order(stream, other);
    OK(launch_fill(p, 8, 1, other));
    OK(launch_fill(p, 8, 2, stream));
    order(other, stream);
    CHECK_EQ(cudaGraphLaunch(instantiate(around(around(end()))), stream), cudaErrorIllegalAddress);
}

RULE(graph_order, edges_order_the_nodes_of_a_child, "guide, CUDA Graphs", RULE_RIGHT)
{
    start();
    begin();
    OK(launch_fill(p, 8, 1, stream));
    order(stream, other);
    OK(launch_fill(p, 8, 2, other));
    order(other, stream);
    OK(launch_fill(p, 8, 3, stream));
    cudaGraphExec_t exec = instantiate(around(end()));
    OK(launch_fill(p, 8, 4, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaGraphLaunch(exec, stream));
    OK(launch_fill(p + 1, 8, 5, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 3);
    CHECK_EQ(rule_first_byte(p + 1), 5);
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
