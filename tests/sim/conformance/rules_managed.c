/* SPDX-License-Identifier: MIT */
/* Managed memory: advice, prefetches, discards. */
#include "rule.h"

#include <string.h>

#define PART ((size_t)64 << 10)

static const CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
static const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST, .id = 0};
static CUstream first;
static CUstream second;
static CUdeviceptr p;

/* Two parts of managed memory. */
static void start(void)
{
    int is_concurrent = 0;

    rule_start(0);
    OK(cuDeviceGetAttribute(&is_concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
    rule_needs(is_concurrent);
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocManaged(&p, 2 * PART, CU_MEM_ATTACH_GLOBAL));
}

static int attribute(CUmem_range_attribute what, CUdeviceptr of, size_t size)
{
    int value = 99;

    OK(cuMemRangeGetAttribute(&value, sizeof(value), what, of, size));
    return value;
}

RULE(managed, advice_is_that_of_the_whole_range, "cuda.h, cuMemRangeGetAttribute")
{
    start();
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, PART), 0);
    OK(cuMemAdvise(p, PART, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, PART), 1);
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 2 * PART), 0);
    OK(cuMemAdvise(p, 2 * PART, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device));
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, PART), 0);
}

RULE(managed, locations_are_told_when_they_are_the_same, "cuda.h, cuMemRangeGetAttribute")
{
    start();
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, PART), CU_DEVICE_INVALID);
    OK(cuMemAdvise(p, 2 * PART, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 2 * PART), 0);
    OK(cuMemAdvise(p + PART, PART, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p + PART, PART), CU_DEVICE_CPU);
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 2 * PART), CU_DEVICE_INVALID);
}

RULE(managed, who_accesses_it_is_a_list, "cuda.h, cuMemRangeGetAttribute")
{
    int who[3];

    start();
    OK(cuMemAdvise(p, PART, CU_MEM_ADVISE_SET_ACCESSED_BY, device));
    OK(cuMemAdvise(p, PART, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
    OK(cuMemRangeGetAttribute(who, sizeof(who), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, PART));
    CHECK(who[0] + who[1] == 0 + CU_DEVICE_CPU && who[0] * who[1] == 0);
    CHECK_EQ(who[2], CU_DEVICE_INVALID);
    CHECK_EQ(cuMemRangeGetAttribute(who, 3, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, PART),
             CUDA_ERROR_INVALID_VALUE);
}

RULE(managed, the_last_prefetch_is_known, "cuda.h, cuMemPrefetchAsync")
{
    CUmem_range_attribute whats[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                                     CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION};
    int values[2] = {99, 99};
    void *data[] = {&values[0], &values[1]};
    size_t sizes[] = {sizeof(int), sizeof(int)};

    start();
    OK(cuMemPrefetchAsync(p, PART, device, 0, first));
    OK(cuStreamSynchronize(first));
    OK(cuMemRangeGetAttributes(data, sizes, whats, 2, p, PART));
    CHECK_EQ(values[0], 0);
    CHECK_EQ(values[1], 0);
}

RULE(managed, other_memory_takes_no_advice, "cuda.h, cuMemAdvise")
{
    CUdeviceptr plain;

    start();
    OK(cuMemAlloc(&plain, PART));
    CHECK_EQ(cuMemAdvise(plain, PART, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAdvise(p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, device), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemPrefetchAsync(plain, PART, device, 0, first), CUDA_ERROR_INVALID_VALUE);
}

RULE(managed, a_batch_prefetches_to_each_location, "cuda.h, cuMemPrefetchBatchAsync")
{
    CUdeviceptr parts[2];
    size_t sizes[] = {PART, PART};
    CUmemLocation locations[] = {device, host};
    size_t begins[] = {0, 1};

    start();
    parts[0] = p;
    parts[1] = p + PART;
    OK(cuMemPrefetchBatchAsync(parts, sizes, 2, locations, begins, 2, 0, first));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, PART), 0);
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p + PART, PART),
             CU_DEVICE_CPU);
    OK(cuMemDiscardAndPrefetchBatchAsync(parts, sizes, 2, locations, begins, 1, 0, first));
    OK(cuStreamSynchronize(first));
    CHECK_EQ(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 2 * PART), 0);
    begins[1] = 0;
    CHECK_EQ(cuMemPrefetchBatchAsync(parts, sizes, 2, locations, begins, 2, 0, first),
             CUDA_ERROR_INVALID_VALUE);
}

RULE(managed, batches_refuse_the_legacy_stream, "cuda.h, cuMemDiscardBatchAsync")
{
    size_t size = PART;

    start();
    CHECK_EQ(cuMemDiscardBatchAsync(&p, &size, 1, 0, CU_STREAM_LEGACY), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemDiscardBatchAsync(&p, &size, 1, 0, first));
}

RULE(managed, nobody_uses_what_is_discarded, "cuda.h, cuMemDiscardBatchAsync", RULE_WRONG)
{
    size_t size = PART;

    start();
    OK(cuMemsetD8Async(p, 1, 64, first));
    CHECK_EQ(cuMemDiscardBatchAsync(&p, &size, 1, 0, second), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(managed, a_prefetch_is_no_use, "cuda.h, cuMemPrefetchAsync", RULE_RIGHT)
{
    start();
    OK(cuMemsetD8Async(p, 1, 64, first));
    OK(cuMemPrefetchAsync(p, PART, device, 0, second));
    OK(cuCtxSynchronize());
    CHECK_EQ(*(volatile unsigned char *)p, 1);
}
