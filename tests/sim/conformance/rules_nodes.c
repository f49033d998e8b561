/* SPDX-License-Identifier: MIT */
/* Nodes by the call for all types, and conditional ones. */
#include "rule.h"

#include <string.h>

static CUstream stream;
static CUdeviceptr p;
static CUgraph graph;
static CUgraphNodeParams params;

static void start(void)
{
    rule_start(0);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 64));
    OK(cuMemsetD8(p, 0, 64));
    OK(cuCtxSynchronize());
    OK(cuGraphCreate(&graph, 0));
    memset(&params, 0, sizeof(params));
}

static void run(CUgraphExec exec)
{
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
}

static CUgraphExec instantiate(void)
{
    CUgraphExec exec;

    OK(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

static void be_a_set(unsigned value)
{
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    params.memset.dst = p;
    params.memset.value = value;
    params.memset.elementSize = 1;
    params.memset.width = 4;
    params.memset.height = 1;
    OK(cuCtxGetCurrent(&params.memset.ctx));
}

RULE(node, one_call_adds_any_type, "cuda.h, cuGraphAddNode")
{
    CUgraphNode first;
    CUgraphNode second;
    CUgraphNodeType type;
    CUdeviceptr q;

    start();
    OK(cuMemAlloc(&q, 64));
    be_a_set(3);
    OK(cuGraphAddNode(&first, graph, NULL, NULL, 0, &params));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    params.memcpy.copyParams.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    params.memcpy.copyParams.srcDevice = p;
    params.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    params.memcpy.copyParams.dstDevice = q;
    params.memcpy.copyParams.WidthInBytes = 4;
    params.memcpy.copyParams.Height = 1;
    params.memcpy.copyParams.Depth = 1;
    OK(cuCtxGetCurrent(&params.memcpy.copyCtx));
    OK(cuGraphAddNode(&second, graph, &first, NULL, 1, &params));
    OK(cuGraphNodeGetType(second, &type));
    CHECK_EQ(type, CU_GRAPH_NODE_TYPE_MEMCPY);
    run(instantiate());
    CHECK_EQ(rule_first_byte((void *)q), 3);
}

RULE(node, an_allocation_tells_its_address, "cuda.h, cuGraphAddNode")
{
    CUgraphNode node;
    CUgraphNode end;

    start();
    params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.alloc.bytesize = 64;
    OK(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
    CUdeviceptr own = params.alloc.dptr;
    CHECK(own != 0);
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
    params.free.dptr = own;
    OK(cuGraphAddNode(&end, graph, &node, NULL, 1, &params));
    run(instantiate());
}

RULE(node, parameters_change_by_one_call, "cuda.h, cuGraphNodeSetParams")
{
    CUgraphNode node;

    start();
    be_a_set(1);
    OK(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
    CUgraphExec exec = instantiate();
    be_a_set(2);
    OK(cuGraphNodeSetParams(node, &params));
    run(exec);
    CHECK_EQ(rule_first_byte((void *)p), 1);
    run(instantiate());
    CHECK_EQ(rule_first_byte((void *)p), 2);
    be_a_set(5);
    OK(cuGraphExecNodeSetParams(exec, node, &params));
    run(exec);
    CHECK_EQ(rule_first_byte((void *)p), 5);
}

RULE(node, events_of_nodes_can_be_changed, "cuda.h, cuGraphEventRecordNodeSetEvent")
{
    CUgraphNode node;
    CUevent first;
    CUevent second;
    CUevent found;
    struct rule_gate gate;

    start();
    OK(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
    OK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, first));
    OK(cuGraphEventRecordNodeGetEvent(node, &found));
    CHECK(found == first);
    CUgraphExec exec = instantiate();
    OK(cuGraphExecEventRecordNodeSetEvent(exec, node, second));
    rule_close(&gate, stream);
    OK(cuGraphLaunch(exec, stream));
    OK(cuEventQuery(first));
    CHECK_EQ(cuEventQuery(second), CUDA_ERROR_NOT_READY);
    rule_open(&gate);
    OK(cuStreamSynchronize(stream));
    OK(cuEventQuery(second));
}

RULE(node, a_child_takes_new_parameters_of_equal_shape,
     "cuda.h, cuGraphExecChildGraphNodeSetParams")
{
    CUgraph child;
    CUgraph other;
    CUgraph wrong;
    CUgraphNode node;
    CUgraphNode inner;

    start();
    be_a_set(1);
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddNode(&inner, child, NULL, NULL, 0, &params));
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    CUgraphExec exec = instantiate();
    be_a_set(7);
    OK(cuGraphCreate(&other, 0));
    OK(cuGraphAddNode(&inner, other, NULL, NULL, 0, &params));
    OK(cuGraphExecChildGraphNodeSetParams(exec, node, other));
    run(exec);
    CHECK_EQ(rule_first_byte((void *)p), 7);
    OK(cuGraphCreate(&wrong, 0));
    CHECK(cuGraphExecChildGraphNodeSetParams(exec, node, wrong) != CUDA_SUCCESS);
}

/* A conditional node at the end of what the graph holds; its bodies are in params. */
static CUgraphConditionalHandle add_conditional(CUgraphConditionalNodeType type, unsigned size,
                                                unsigned value, const CUgraphNode *before,
                                                size_t before_count)
{
    CUgraphConditionalHandle handle;
    CUcontext context;
    CUgraphNode node;

    OK(cuCtxGetCurrent(&context));
    OK(cuGraphConditionalHandleCreate(&handle, graph, context, value,
                                      CU_GRAPH_COND_ASSIGN_DEFAULT));
    memset(&params, 0, sizeof(params));
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    params.conditional.ctx = context;
    OK(cuGraphAddNode(&node, graph, before, NULL, before_count, &params));
    return handle;
}

/* Puts a set of one byte into a body. */
static void fill_body(CUgraph body, unsigned value)
{
    CUgraphNode node;
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = p, .value = value, .elementSize = 1, .width = 1, .height = 1};
    CUcontext context;

    OK(cuCtxGetCurrent(&context));
    OK(cuGraphAddMemsetNode(&node, body, NULL, 0, &set, context));
}

static int run_if(unsigned value)
{
    CUgraph bodies[2];

    start();
    add_conditional(CU_GRAPH_COND_TYPE_IF, 2, value, NULL, 0);
    memcpy(bodies, params.conditional.phGraph_out, sizeof(bodies));
    fill_body(bodies[0], 10);
    fill_body(bodies[1], 20);
    run(instantiate());
    return rule_first_byte((void *)p);
}

RULE(conditional, if_runs_its_body_when_it_is_true, "cuda.h, CU_GRAPH_COND_TYPE_IF")
{
    CHECK_EQ(run_if(1), 10);
}

RULE(conditional, if_runs_the_other_when_it_is_false, "cuda.h, CU_GRAPH_COND_TYPE_IF")
{
    CHECK_EQ(run_if(0), 20);
}

RULE(conditional, switch_runs_the_body_of_the_number, "cuda.h, CU_GRAPH_COND_TYPE_SWITCH")
{
    CUgraph bodies[3];

    start();
    add_conditional(CU_GRAPH_COND_TYPE_SWITCH, 3, 2, NULL, 0);
    memcpy(bodies, params.conditional.phGraph_out, sizeof(bodies));
    for (unsigned i = 0; i < 3; i++) {
        fill_body(bodies[i], 30 + i);
    }
    run(instantiate());
    CHECK_EQ(rule_first_byte((void *)p), 32);
}

RULE(conditional, a_number_without_a_body_runs_none, "cuda.h, CU_GRAPH_COND_TYPE_SWITCH")
{
    start();
    add_conditional(CU_GRAPH_COND_TYPE_SWITCH, 1, 1, NULL, 0);
    fill_body(params.conditional.phGraph_out[0], 33);
    run(instantiate());
    CHECK_EQ(rule_first_byte((void *)p), 0);
}

RULE(conditional, kernels_before_it_set_it, "cuda.h, CUDA_CONDITIONAL_NODE_PARAMS")
{
    CUgraphConditionalHandle handle;
    CUgraphNode const *before;
    CUgraph found;
    size_t count;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraphNode node;
    CUcontext context;

    start();
    OK(cuCtxGetCurrent(&context));
    OK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuGraphConditionalHandleCreate(&handle, graph, context, 0, CU_GRAPH_COND_ASSIGN_DEFAULT));
    rule_needs(launch_set_condition(handle, 1, stream) == cudaSuccess);
    OK(cuStreamGetCaptureInfo(stream, &status, &id, &found, &before, NULL, &count));
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = context;
    OK(cuGraphAddNode(&node, graph, before, NULL, count, &params));
    fill_body(params.conditional.phGraph_out[0], 40);
    OK(cuStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
                                         CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    OK(cuStreamEndCapture(stream, &found));
    run(instantiate());
    CHECK_EQ(rule_first_byte((void *)p), 40);
}

RULE(conditional, while_runs_until_it_is_false, "cuda.h, CU_GRAPH_COND_TYPE_WHILE")
{
    CUgraphConditionalHandle handle;
    CUdeviceptr left;
    CUgraph body;

    start();
    OK(cuMemAlloc(&left, 4));
    OK(cuMemsetD32(left, 5, 1));
    OK(cuCtxSynchronize());
    handle = add_conditional(CU_GRAPH_COND_TYPE_WHILE, 1, 1, NULL, 0);
    OK(cuStreamBeginCaptureToGraph(stream, params.conditional.phGraph_out[0], NULL, NULL, 0,
                                   CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch_add((int *)p, 1, 1, stream));
    rule_needs(launch_loop(handle, (unsigned *)left, stream) == cudaSuccess);
    OK(cuStreamEndCapture(stream, &body));
    run(instantiate());
    CHECK_EQ(rule_first_byte((void *)p), 5);
    CHECK_EQ(rule_first_byte((void *)left), 0);
}

RULE(conditional, the_default_comes_back_at_every_launch, "cuda.h, CU_GRAPH_COND_ASSIGN_DEFAULT")
{
    CUgraphConditionalHandle handle;
    CUgraph body;
    CUdeviceptr left;

    start();
    OK(cuMemAlloc(&left, 4));
    OK(cuMemsetD32(left, 1, 1));
    OK(cuCtxSynchronize());
    handle = add_conditional(CU_GRAPH_COND_TYPE_IF, 1, 1, NULL, 0);
    OK(cuStreamBeginCaptureToGraph(stream, params.conditional.phGraph_out[0], NULL, NULL, 0,
                                   CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch_add((int *)p, 1, 1, stream));
    rule_needs(launch_loop(handle, (unsigned *)left, stream) == cudaSuccess);
    OK(cuStreamEndCapture(stream, &body));
    CUgraphExec exec = instantiate();
    run(exec);
    run(exec);
    CHECK_EQ(rule_first_byte((void *)p), 2);
}

RULE(conditional, sizes_fit_the_type, "cuda.h, CUDA_CONDITIONAL_NODE_PARAMS")
{
    CUgraphConditionalHandle handle;
    CUgraphNode node;

    start();
    handle = add_conditional(CU_GRAPH_COND_TYPE_IF, 1, 0, NULL, 0);
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 2;
    CHECK_EQ(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 3;
    CHECK_EQ(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
}

static void CUDART_CB nothing(void *unused)
{
    (void)unused;
}

RULE(conditional, bodies_hold_no_host_functions, "cuda.h, CUDA_CONDITIONAL_NODE_PARAMS")
{
    CUDA_HOST_NODE_PARAMS host = {.fn = nothing};
    CUgraphNode node;
    CUgraphExec exec;

    start();
    add_conditional(CU_GRAPH_COND_TYPE_IF, 1, 0, NULL, 0);
    CUgraph body = params.conditional.phGraph_out[0];
    CHECK(cuGraphAddHostNode(&node, body, NULL, 0, &host) != CUDA_SUCCESS ||
          cuGraphInstantiate(&exec, graph, 0) != CUDA_SUCCESS);
}

RULE(conditional, a_body_that_may_run_is_a_use, "guide, Streams", RULE_WRONG)
{
    CUstream other;

    start();
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    add_conditional(CU_GRAPH_COND_TYPE_IF, 1, 0, NULL, 0);
    fill_body(params.conditional.phGraph_out[0], 1);
    OK(cuCtxSynchronize());
    OK(cuGraphLaunch(instantiate(), stream));
    CHECK_EQ(cuMemsetD8Async(p, 1, 1, other), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(conditional, nodes_of_a_body_do_not_meet_without_an_edge, "guide, CUDA Graphs", RULE_WRONG)
{
    start();
    add_conditional(CU_GRAPH_COND_TYPE_IF, 1, 1, NULL, 0);
    fill_body(params.conditional.phGraph_out[0], 1);
    fill_body(params.conditional.phGraph_out[0], 2);
    CHECK_EQ(cuGraphLaunch(instantiate(), stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Puts count sets of the bytes behind p into a body, one after the other. */
static void fill_in_turn(CUgraph body, unsigned count)
{
    CUgraph same;

    OK(cuStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (unsigned i = 0; i < count; i++) {
        OK(cuMemsetD8Async(p + i, (unsigned char)(i + 1), 2, stream));
    }
    OK(cuStreamEndCapture(stream, &same));
}

RULE(conditional, edges_order_the_nodes_of_a_body, "guide, CUDA Graphs", RULE_RIGHT)
{
    start();
    add_conditional(CU_GRAPH_COND_TYPE_IF, 1, 1, NULL, 0);
    fill_in_turn(params.conditional.phGraph_out[0], 40);
    run(instantiate());
    CHECK_EQ(rule_first_byte((void *)(p + 40)), 40);
}

RULE(conditional, all_nodes_of_a_body_are_uses, "guide, Streams", RULE_WRONG)
{
    CUstream other;

    start();
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    add_conditional(CU_GRAPH_COND_TYPE_IF, 1, 1, NULL, 0);
    fill_in_turn(params.conditional.phGraph_out[0], 40);
    OK(cuGraphLaunch(instantiate(), stream));
    CHECK_EQ(cuMemsetD8Async(p + 40, 9, 1, other), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* A loop of five rounds with two kernels each. */
RULE(conditional, bodies_take_time, "assumed", RULE_SIMULATED,
     "SIMCUDA_TIME=virtual SIMCUDA_KERNEL_US=1000")
{
    CUgraphConditionalHandle handle;
    CUdeviceptr left;
    CUgraph body;
    CUevent events[2];
    float ms = 0;

    start();
    OK(cuMemAlloc(&left, 4));
    OK(cuMemsetD32(left, 5, 1));
    OK(cuCtxSynchronize());
    handle = add_conditional(CU_GRAPH_COND_TYPE_WHILE, 1, 1, NULL, 0);
    OK(cuStreamBeginCaptureToGraph(stream, params.conditional.phGraph_out[0], NULL, NULL, 0,
                                   CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch_add((int *)p, 1, 1, stream));
    rule_needs(launch_loop(handle, (unsigned *)left, stream) == cudaSuccess);
    OK(cuStreamEndCapture(stream, &body));
    CUgraphExec exec = instantiate();
    OK(cuEventCreate(&events[0], 0));
    OK(cuEventCreate(&events[1], 0));
    OK(cuEventRecord(events[0], stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuEventRecord(events[1], stream));
    OK(cuStreamSynchronize(stream));
    OK(cudaEventElapsedTime(&ms, events[0], events[1]));
    CHECK(ms >= 10 && ms < 11);
    CHECK_EQ(rule_first_byte((void *)p), 5);
}
