/* SPDX-License-Identifier: MIT */
/* Nodes of all types by the runtime's one call for them, and copies in batches. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <string.h>

enum { BYTES = 256 };

static cudaGraph_t graph;
static cudaGraphNode_t last;
static unsigned char *block;
static unsigned char host[BYTES];

static void start(void)
{
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaMalloc((void **)&block, BYTES));
    OK(cudaMemset(block, 0, BYTES));
}

/* After the last one. */
static void add(struct cudaGraphNodeParams *params)
{
    cudaGraphNode_t node;

    OK(cudaGraphAddNode(&node, graph, last != NULL ? &last : NULL, NULL, last != NULL, params));
    last = node;
}

static void launch(void)
{
    cudaGraphExec_t exec;

    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(host, block, BYTES, cudaMemcpyDeviceToHost));
    OK(cudaGraphExecDestroy(exec));
}

static void *fill_arguments[3];
static size_t fill_bytes = 4;
static int fill_value = 7;

static struct cudaGraphNodeParams kernel(void)
{
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeKernel};

    fill_arguments[0] = &block;
    fill_arguments[1] = &fill_bytes;
    fill_arguments[2] = &fill_value;
    params.kernel.func = (void *)sim_kernel_fill;
    params.kernel.gridDim = (dim3){1, 1, 1};
    params.kernel.blockDim = (dim3){1, 1, 1};
    params.kernel.kernelParams = fill_arguments;
    return params;
}

static void kernels_sets_and_copies(void)
{
    struct cudaGraphNodeParams params = kernel();

    start();
    add(&params);
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemset};
    params.memset.dst = block + 4;
    params.memset.value = 9;
    params.memset.elementSize = 1;
    params.memset.width = 4;
    params.memset.height = 1;
    add(&params);
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemcpy};
    params.memcpy.copyParams.srcPtr = (struct cudaPitchedPtr){block, 8, 8, 1};
    params.memcpy.copyParams.dstPtr = (struct cudaPitchedPtr){block + 16, 8, 8, 1};
    params.memcpy.copyParams.extent = (struct cudaExtent){8, 1, 1};
    params.memcpy.copyParams.kind = cudaMemcpyDeviceToDevice;
    add(&params);
    launch();
    CHECK_EQ(host[0], 7);
    CHECK_EQ(host[4], 9);
    CHECK_EQ(host[19], 7);
    CHECK_EQ(host[20], 9);
    CHECK_EQ(host[24], 0);
}

static void allocations_tell_their_address(void)
{
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeMemAlloc};

    start();
    params.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
    params.alloc.poolProps.location.type = cudaMemLocationTypeDevice;
    params.alloc.bytesize = 4096;
    add(&params);
    void *p = params.alloc.dptr;
    CHECK(p != NULL);
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemFree};
    params.free.dptr = p;
    add(&params);
    launch();
}

static void conditions_choose_a_body(void)
{
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeConditional};
    struct cudaGraphNodeParams inner = kernel();
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t node;

    start();
    OK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 1;
    add(&params);
    CHECK(params.conditional.phGraph_out != NULL);
    OK(cudaGraphAddNode(&node, params.conditional.phGraph_out[0], NULL, NULL, 0, &inner));
    launch();
    CHECK_EQ(host[0], 7);
    CHECK_EQ(host[4], 0);
}

static void a_bad_call_adds_nothing(void)
{
    struct cudaGraphNodeParams params = kernel();
    size_t count = 5;

    start();
    params.kernel.func = &count;
    CHECK_EQ(cudaGraphAddNode(&last, graph, NULL, NULL, 0, &params),
             cudaErrorInvalidDeviceFunction);
    CHECK_EQ(cudaGraphAddNode(&last, graph, NULL, NULL, 0, NULL), cudaErrorInvalidValue);
    OK(cudaGraphGetNodes(graph, NULL, &count));
    CHECK_EQ(count, 0);
    cudaGetLastError();
}

static void edges_come_and_go(void)
{
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeEmpty};
    cudaGraphNode_t first;
    size_t count = 5;

    start();
    add(&params);
    first = last;
    add(&params);
    OK(cudaGraphNodeGetDependentNodes(first, NULL, NULL, &count));
    CHECK_EQ(count, 1);
    OK(cudaGraphRemoveDependencies(graph, &first, &last, NULL, 1));
    OK(cudaGraphNodeGetDependentNodes(first, NULL, NULL, &count));
    CHECK_EQ(count, 0);
}

static void batches_copy_all(void)
{
    unsigned char from[2][8];
    struct cudaMemcpyAttributes attributes = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    size_t first = 0;
    size_t sizes[2] = {8, 8};
    cudaStream_t stream;

    start();
    memset(from, 3, sizeof(from));
    void *dsts[2] = {block, block + 100};
    const void *srcs[2] = {from[0], from[1]};
    OK(cudaStreamCreate(&stream));
    OK(cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, &attributes, &first, 1, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(host, block, BYTES, cudaMemcpyDeviceToHost));
    CHECK_EQ(host[7], 3);
    CHECK_EQ(host[8], 0);
    CHECK_EQ(host[107], 3);
}

static const struct check_case cases[] = {
    {"kernels_sets_and_copies", kernels_sets_and_copies, NULL, 0},
    {"allocations_tell_their_address", allocations_tell_their_address, NULL, 0},
    {"conditions_choose_a_body", conditions_choose_a_body, NULL, 0},
    {"a_bad_call_adds_nothing", a_bad_call_adds_nothing, NULL, 0},
    {"edges_come_and_go", edges_come_and_go, NULL, 0},
    {"batches_copy_all", batches_copy_all, NULL, 0},
};

CHECK_MAIN(cases)
