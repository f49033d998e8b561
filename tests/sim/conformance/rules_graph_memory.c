/* SPDX-License-Identifier: MIT */
/* Memory that graphs allocate. */
#include "graphs.h"

#include <stdint.h>
#include <string.h>

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
