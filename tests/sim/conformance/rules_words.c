/* SPDX-License-Identifier: MIT */
/* Words in memory by which streams wait for each other, and the order that comes of it. */
#include "rule.h"

#include <string.h>

static CUstream first;
static CUstream second;
static CUstream third;
static CUdeviceptr word;
static CUdeviceptr p;
static unsigned *host_word;

static void start(void)
{
    void *pinned;

    rule_start(0);
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 64));
    OK(cuMemAlloc(&word, 64));
    OK(cuMemsetD8(word, 0, 64));
    OK(cuMemHostAlloc(&pinned, 64, 0));
    memset(pinned, 0, 64);
    OK(cuCtxSynchronize());
    host_word = pinned;
}

static unsigned read_word(CUdeviceptr from)
{
    unsigned value;

    OK(cuMemcpyDtoH(&value, from, sizeof(value)));
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
    CHECK_EQ(__atomic_load_n(&host_word[1], __ATOMIC_SEQ_CST), 0);
    __atomic_store_n(host_word, 1, __ATOMIC_SEQ_CST);
    OK(cuStreamSynchronize(first));
    CHECK_EQ(__atomic_load_n(&host_word[1], __ATOMIC_SEQ_CST), 7);
}

RULE(word, the_host_may_write_it_in_virtual_time, "cuda.h, cuStreamWaitValue32", RULE_SIMULATED,
     "SIMCUDA_TIME=virtual")
{
    start();
    OK(cuStreamWaitValue32(first, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamWaitValue32(first, (CUdeviceptr)host_word, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_EQ(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
    __atomic_store_n(host_word, 1, __ATOMIC_SEQ_CST);
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

static CUresult use(CUstream stream)
{
    return cuMemsetD8Async(p, 1, 64, stream);
}

RULE(word_order, work_behind_a_wait_comes_after_the_write, "cuda.h, cuStreamWaitValue32",
     RULE_RIGHT)
{
    start();
    OK(use(second));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamWaitValue32(first, word, 1, 0));
    OK(use(first));
    OK(cuStreamSynchronize(first));
}

RULE(word_order, the_write_may_be_enqueued_later, "cuda.h, cuStreamWaitValue32", RULE_RIGHT)
{
    start();
    OK(cuStreamWaitValue32(first, word, 1, 0));
    OK(use(first));
    OK(use(second));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamSynchronize(first));
    OK(cuCtxSynchronize());
}

RULE(word_order, it_goes_on_through_events, "cuda.h, cuStreamWaitValue32", RULE_RIGHT)
{
    CUevent event;

    start();
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamWaitValue32(first, word, 1, 0));
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(third, event, 0));
    OK(use(third));
    OK(use(second));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamSynchronize(third));
}

RULE(word_order, work_behind_the_write_is_not_ordered, "cuda.h, cuStreamWaitValue32", RULE_WRONG)
{
    start();
    OK(cuStreamWaitValue32(first, word, 1, 0));
    OK(use(first));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    CHECK_EQ(use(second), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(word_order, another_streams_write_tells_nothing, "cuda.h, cuStreamWaitValue32", RULE_WRONG)
{
    start();
    OK(cuStreamWaitValue32(first, word, 1, 0));
    OK(use(first));
    OK(use(third));
    CHECK_EQ(cuStreamWriteValue32(second, word, 1, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(word_order, a_value_that_ends_no_wait_tells_nothing, "cuda.h, cuStreamWaitValue32", RULE_WRONG)
{
    start();
    OK(use(second));
    OK(cuStreamWriteValue32(second, word, 2, 0));
    OK(cuStreamWriteValue32(third, word, 1, 0));
    OK(cuStreamWaitValue32(first, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_EQ(use(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(word_order, any_of_several_writes_may_end_it, "cuda.h, cuStreamWaitValue32", RULE_WRONG)
{
    start();
    OK(use(second));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamWriteValue32(third, word, 1, 0));
    OK(cuStreamWaitValue32(first, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_EQ(use(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(word_order, a_counter_tells_how_far, "cuda.h, cuStreamWaitValue32", RULE_RIGHT)
{
    start();
    OK(use(second));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamWriteValue32(second, word, 2, 0));
    OK(cuStreamWaitValue32(first, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    OK(use(first));
    OK(cuStreamSynchronize(first));
}

RULE(word_order, a_counter_tells_no_more, "cuda.h, cuStreamWaitValue32", RULE_WRONG)
{
    start();
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(use(second));
    OK(cuStreamWriteValue32(second, word, 2, 0));
    OK(cuStreamWaitValue32(first, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_EQ(use(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(word_order, a_word_that_is_so_already_tells_nothing, "cuda.h, cuStreamWaitValue32", RULE_WRONG)
{
    start();
    OK(cuStreamWriteValue32(first, word, 5, 0));
    OK(use(second));
    OK(cuStreamWriteValue32(second, word, 5, 0));
    OK(cuStreamWriteValue32(first, word, 6, 0));
    OK(cuStreamWaitValue32(first, word, 5, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_EQ(use(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(word_order, the_host_tells_what_it_has_seen, "cuda.h, cuStreamWaitValue32", RULE_RIGHT)
{
    start();
    OK(cuStreamWaitValue32(first, (CUdeviceptr)host_word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(use(second));
    OK(use(first));
    OK(cuStreamSynchronize(second));
    __atomic_store_n(host_word, 1, __ATOMIC_SEQ_CST);
    OK(cuStreamSynchronize(first));
}

RULE(word_order, the_host_does_not_tell_what_it_has_not_seen, "cuda.h, cuStreamWaitValue32",
     RULE_WRONG)
{
    struct rule_gate gate;

    start();
    rule_close(&gate, second);
    OK(cuStreamWaitValue32(first, (CUdeviceptr)host_word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(use(second));
    OK(use(first));
    __atomic_store_n(host_word, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
    rule_open(&gate);
}

RULE(word_order, the_host_may_read_it, "cuda.h, cuStreamWriteValue32")
{
    start();
    OK(use(second));
    OK(cuStreamWriteValue32(second, (CUdeviceptr)host_word, 1, 0));
    while (__atomic_load_n(host_word, __ATOMIC_SEQ_CST) != 1) {
    }
    OK(use(first));
    OK(cuStreamSynchronize(first));
}

RULE(word_order, a_copy_may_write_it, "cuda.h, cuStreamWaitValue32", RULE_RIGHT)
{
    start();
    OK(cuStreamWaitValue32(first, word, 0x01010101, CU_STREAM_WAIT_VALUE_EQ));
    OK(use(first));
    OK(use(second));
    OK(cuMemcpyDtoDAsync(word, p, 4, second));
    OK(cuStreamSynchronize(first));
    OK(cuCtxSynchronize());
}

typedef CUresult (*write_function)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

/* As programs of release 8 to 11 call it. */
static write_function early_write(void)
{
    void *address = NULL;

    OK(cuGetProcAddress("cuStreamWriteValue32", &address, 8000, 0, NULL));
    return (write_function)address;
}

RULE(word_order, early_forms_may_write_without_a_barrier,
     "cuda.h, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER", RULE_WRONG)
{
    start();
    OK(use(second));
    OK(early_write()(second, word, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    OK(cuStreamWaitValue32(first, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_EQ(use(first), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(word, later_forms_have_no_writes_without_a_barrier,
     "cuda.h, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER; code assumed")
{
    start();
    OK(cuStreamWriteValue32(first, word, 1, 0));
    CHECK_EQ(cuStreamWriteValue32(first, word, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER),
             CUDA_ERROR_NOT_SUPPORTED);
}

RULE(word_order, pools_do_not_see_it, "cuda.h, cuStreamWaitValue32", RULE_RIGHT)
{
    struct rule_gate gate;
    CUdeviceptr freed;
    CUdeviceptr other;

    start();
    OK(cuMemAllocAsync(&freed, 64, second));
    rule_close(&gate, second);
    OK(cuMemFreeAsync(freed, second));
    OK(cuStreamWriteValue32(second, word, 1, 0));
    OK(cuStreamWaitValue32(first, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuMemAllocAsync(&other, 64, first));
    CHECK(other != freed);
    rule_open(&gate);
    OK(cuCtxSynchronize());
}
