/* SPDX-License-Identifier: MIT */
/* Batches of copies. */
#include "rule.h"

#include <string.h>

static CUstream first;
static CUdeviceptr word;
static volatile unsigned *host_word;

static void start(void)
{
    void *pinned;

    rule_start(0);
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
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
