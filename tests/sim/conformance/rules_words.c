/* SPDX-License-Identifier: MIT */
/* Stream memory operations, and batches of copies. */
#include "rule.h"

#include <string.h>

static CUstream first;
static CUstream second;
static CUdeviceptr word;
static volatile unsigned *host_word;

static void start(void)
{
    void *pinned;

    rule_start(0);
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&word, 64));
    OK(cuMemsetD8(word, 0, 64));
    OK(cuMemHostAlloc(&pinned, 64, 0));
    memset(pinned, 0, 64);
    OK(cuCtxSynchronize());
    host_word = pinned;
}

static unsigned read_word(CUdeviceptr p)
{
    unsigned value;

    OK(cuMemcpyDtoH(&value, p, sizeof(value)));
    return value;
}

RULE(word, a_stream_waits_until_the_value_is_there, "cuda.h, cuStreamWaitValue32")
{
    start();
    OK(cuStreamWaitValue32(first, word, 5, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(rule_is_held(first));
    OK(cuStreamWriteValue32(second, word, 5, CU_STREAM_WRITE_VALUE_DEFAULT));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word), 5);
}

RULE(word, the_host_may_write_it, "cuda.h, cuStreamWaitValue32")
{
    start();
    OK(cuStreamWaitValue32(first, (CUdeviceptr)host_word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32(first, (CUdeviceptr)(host_word + 1), 7, 0));
    CHECK(rule_is_held(first));
    CHECK_EQ(host_word[1], 0);
    *host_word = 1;
    OK(cuStreamSynchronize(first));
    CHECK_EQ(host_word[1], 7);
}

RULE(word, the_host_may_write_it_in_virtual_time, "cuda.h, cuStreamWaitValue32", RULE_SIMULATED,
     "SIMCUDA_TIME=virtual")
{
    start();
    OK(cuStreamWaitValue32(first, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamWaitValue32(first, (CUdeviceptr)host_word, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_EQ(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
    *host_word = 1;
    OK(cuStreamSynchronize(first));
}

RULE(word, the_comparison_goes_round, "cuda.h, CU_STREAM_WAIT_VALUE_GEQ")
{
    start();
    OK(cuStreamWriteValue32(first, word, 3, 0));
    OK(cuStreamWaitValue32(first, word, 0xfffffff0u, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamSynchronize(first));
}

RULE(word, any_common_bit_will_do, "cuda.h, CU_STREAM_WAIT_VALUE_AND")
{
    start();
    OK(cuStreamWaitValue32(first, word, 6, CU_STREAM_WAIT_VALUE_AND));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamSynchronize(second));
    CHECK(rule_is_held(first));
    OK(cuStreamWriteValue32(second, word, 2, 0));
    OK(cuStreamSynchronize(first));
}

RULE(word, any_common_zero_will_do, "cuda.h, CU_STREAM_WAIT_VALUE_NOR")
{
    start();
    OK(cuStreamWriteValue32(first, word, 0xffffff00u, 0));
    OK(cuStreamWaitValue32(first, word, 0xff, CU_STREAM_WAIT_VALUE_NOR));
    CHECK(rule_is_held(first));
    OK(cuStreamWriteValue32(second, word, 0, 0));
    OK(cuStreamSynchronize(first));
}

RULE(word, wide_ones_have_64_bits, "cuda.h, cuStreamWaitValue64")
{
    start();
    OK(cuStreamWaitValue64(first, word, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ));
    CHECK(rule_is_held(first));
    OK(cuStreamWriteValue64(second, word, 1ull << 40, 0));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word + 4), 256);
}

RULE(word, a_batch_goes_in_its_order, "cuda.h, cuStreamBatchMemOp")
{
    CUstreamBatchMemOpParams batch[3];

    start();
    memset(batch, 0, sizeof(batch));
    batch[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    batch[0].writeValue.address = word;
    batch[0].writeValue.value = 1;
    batch[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    batch[1].waitValue.address = word;
    batch[1].waitValue.value = 2;
    batch[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    batch[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    batch[2].writeValue.address = word + 4;
    batch[2].writeValue.value = 3;
    OK(cuStreamBatchMemOp(first, 3, batch, 0));
    CHECK(rule_is_held(first));
    OK(cuStreamWriteValue32(second, word, 2, 0));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word + 4), 3);
}

RULE(word, a_batch_is_checked_first, "assumed")
{
    CUstreamBatchMemOpParams batch[2];

    start();
    memset(batch, 0, sizeof(batch));
    batch[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    batch[0].writeValue.address = word;
    batch[0].writeValue.value = 9;
    batch[1].operation = (CUstreamBatchMemOpType)99;
    CHECK_EQ(cuStreamBatchMemOp(first, 2, batch, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuStreamBatchMemOp(first, 1, batch, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuStreamBatchMemOp(first, 256, batch, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(read_word(word), 0);
}

RULE(word, managed_memory_is_refused, "cuda.h, cuStreamWaitValue32")
{
    CUdeviceptr managed;

    start();
    OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    CHECK_EQ(cuStreamWriteValue32(first, managed, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(word, it_lies_at_a_multiple_of_its_size, "assumed")
{
    start();
    CHECK_EQ(cuStreamWriteValue32(first, word + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuStreamWriteValue64(first, word + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(word, in_a_capture_it_becomes_a_node, "assumed")
{
    CUgraph graph;
    CUgraphExec exec;

    start();
    OK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamWriteValue32(first, word, 4, 0));
    OK(cuStreamEndCapture(first, &graph));
    CHECK_EQ(read_word(word), 0);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, first));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word), 4);
}

RULE(word, nodes_hold_batches, "cuda.h, cuGraphAddBatchMemOpNode")
{
    CUstreamBatchMemOpParams batch;
    CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.count = 1, .paramArray = &batch};
    CUDA_BATCH_MEM_OP_NODE_PARAMS kept;
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;

    start();
    OK(cuCtxGetCurrent(&params.ctx));
    memset(&batch, 0, sizeof(batch));
    batch.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    batch.writeValue.address = word;
    batch.writeValue.value = 11;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
    batch.writeValue.value = 12;
    OK(cuGraphBatchMemOpNodeGetParams(node, &kept));
    CHECK_EQ(kept.paramArray[0].writeValue.value, 11);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphLaunch(exec, first));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word), 11);
    OK(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
    OK(cuGraphLaunch(exec, first));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word), 12);
}

RULE(word, dead_memory_has_none, "cuda.h, CUDA_ERROR_ILLEGAL_ADDRESS", RULE_WRONG)
{
    start();
    OK(cuMemFree(word));
    CHECK_EQ(cuStreamWriteValue32(first, word, 1, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(word, both_sides_may_use_it_at_once, "cuda.h, cuStreamWaitValue32", RULE_RIGHT)
{
    start();
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamWaitValue32(first, word, 1, 0));
    OK(cuStreamSynchronize(first));
    OK(cuStreamSynchronize(second));
}

RULE(word, its_order_is_not_seen, "cuda.h, cuStreamWaitValue32", RULE_WRONG)
{
    CUdeviceptr p;

    start();
    OK(cuMemAlloc(&p, 64));
    OK(cuMemsetD8Async(p, 1, 64, second));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamWaitValue32(first, word, 1, 0));
    CHECK_EQ(cuMemsetD8Async(p, 2, 64, first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static const CUmemcpyAttributes in_order = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
static const CUmemcpyAttributes at_once = {
    .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL};

static CUresult copy_two(CUdeviceptr to, CUdeviceptr from, CUmemcpyAttributes attributes,
                         CUstream stream)
{
    CUdeviceptr targets[] = {to, to + 32};
    CUdeviceptr sources[] = {from, from + 32};
    size_t sizes[] = {4, 8};
    size_t at = 0;

    return cuMemcpyBatchAsync(targets, sources, sizes, 2, &attributes, &at, 1, stream);
}

RULE(batch, all_copies_are_made, "cuda.h, cuMemcpyBatchAsync")
{
    start();
    host_word[0] = 21;
    host_word[8] = 22;
    OK(copy_two(word, (CUdeviceptr)host_word, in_order, first));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word), 21);
    CHECK_EQ(read_word(word + 32), 22);
}

RULE(batch, it_goes_in_the_order_of_the_stream, "cuda.h, cuMemcpyBatchAsync")
{
    struct rule_gate gate;

    start();
    rule_close(&gate, first);
    OK(copy_two(word, (CUdeviceptr)host_word, in_order, first));
    host_word[0] = 23;
    rule_open(&gate);
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word), 23);
}

RULE(batch, a_source_may_be_read_during_the_call, "cuda.h, cuMemcpyBatchAsync")
{
    struct rule_gate gate;

    start();
    host_word[0] = 24;
    rule_close(&gate, first);
    OK(copy_two(word, (CUdeviceptr)host_word, at_once, first));
    host_word[0] = 25;
    rule_open(&gate);
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word), 24);
}

RULE(batch, every_copy_needs_attributes, "cuda.h, cuMemcpyBatchAsync")
{
    CUmemcpyAttributes none = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID};
    CUmemcpyAttributes attributes[2] = {in_order, in_order};
    size_t starts[2] = {0, 0};
    size_t sizes[2] = {4, 4};
    CUdeviceptr targets[2];
    CUdeviceptr sources[2];

    start();
    targets[0] = targets[1] = word;
    sources[0] = sources[1] = (CUdeviceptr)host_word;
    CHECK_EQ(copy_two(word, (CUdeviceptr)host_word, none, first), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemcpyBatchAsync(targets, sources, sizes, 2, attributes, starts, 2, first),
             CUDA_ERROR_INVALID_VALUE);
    starts[0] = 1;
    CHECK_EQ(cuMemcpyBatchAsync(targets, sources, sizes, 2, attributes, starts, 1, first),
             CUDA_ERROR_INVALID_VALUE);
}

RULE(batch, the_legacy_stream_takes_none, "cuda.h, cuMemcpyBatchAsync")
{
    start();
    CHECK_EQ(copy_two(word, (CUdeviceptr)host_word, in_order, NULL), CUDA_ERROR_INVALID_VALUE);
}

RULE(batch, volumes_count_elements_of_arrays, "cuda.h, cuMemcpy3DBatchAsync")
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUDA_MEMCPY3D_BATCH_OP ops[2];
    CUarray array;

    start();
    OK(cuArray3DCreate(&array, &shape));
    memset(ops, 0, sizeof(ops));
    for (unsigned i = 0; i < 8; i++) {
        host_word[i] = i + 100;
    }
    for (int i = 0; i < 2; i++) {
        CUmemcpy3DOperand *memory = i == 0 ? &ops[i].src : &ops[i].dst;
        CUmemcpy3DOperand *other = i == 0 ? &ops[i].dst : &ops[i].src;
        memory->type = CU_MEMCPY_OPERAND_TYPE_POINTER;
        memory->op.ptr.ptr = i == 0 ? (CUdeviceptr)host_word : word;
        other->type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
        other->op.array.array = array;
        ops[i].extent.width = i == 0 ? 4 : 2;
        ops[i].extent.height = 2;
        ops[i].extent.depth = 1;
        ops[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    }
    OK(cuMemcpy3DBatchAsync(1, &ops[0], 0, first));
    OK(cuMemcpy3DBatchAsync(1, &ops[1], 0, first));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(read_word(word), 100);
    CHECK_EQ(read_word(word + 4), 101);
    CHECK_EQ(read_word(word + 8), 104);
    ops[0].extent.depth = 0;
    CHECK_EQ(cuMemcpy3DBatchAsync(1, &ops[0], 0, first), CUDA_ERROR_INVALID_VALUE);
}
