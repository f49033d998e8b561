/* SPDX-License-Identifier: MIT */
/* Stream-ordered allocation and its pools. */
#include "rule.h"

#include <stdint.h>

#define MIB ((size_t)1 << 20)

static cudaStream_t new_stream(void)
{
    cudaStream_t stream;

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaMemPool_t default_pool(void)
{
    cudaMemPool_t pool;

    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static cudaMemPool_t new_pool(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    cudaMemPool_t pool;

    OK(cudaMemPoolCreate(&pool, &props));
    return pool;
}

static uint64_t number(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
    uint64_t value = 0;

    OK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void keep_everything(cudaMemPool_t pool)
{
    uint64_t all = UINT64_MAX;

    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

static char *take(size_t bytes, cudaStream_t stream)
{
    void *p;

    OK(cudaMallocAsync(&p, bytes, stream));
    return p;
}

RULE(pool, the_default_one_is_current, "cuda.h, cuDeviceGetMemPool")
{
    cudaMemPool_t pool;

    OK(cudaDeviceGetMemPool(&pool, 0));
    CHECK(pool == default_pool());
}

RULE(pool, another_one_can_be_current, "cuda.h, cuDeviceSetMemPool")
{
    cudaMemPool_t pool = new_pool();
    cudaMemPool_t current;

    OK(cudaDeviceSetMemPool(0, pool));
    OK(cudaDeviceGetMemPool(&current, 0));
    CHECK(current == pool);
    take(1000, NULL);
    CHECK(number(pool, cudaMemPoolAttrUsedMemCurrent) >= 1000);
}

RULE(pool, no_bytes_are_an_invalid_value, "assumed")
{
    CUdeviceptr p;

    rule_start(0);
    CHECK_EQ(cuMemAllocAsync(&p, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAllocAsync(NULL, 16, NULL), CUDA_ERROR_INVALID_VALUE);
}

RULE(pool, too_much_is_out_of_memory, "cuda.h, cuMemAllocAsync")
{
    void *p;

    CHECK_EQ(cudaMallocAsync(&p, (size_t)1 << 50, NULL), cudaErrorMemoryAllocation);
    OK(cudaDeviceSynchronize());
}

RULE(pool, used_memory_is_counted, "cuda.h, CU_MEMPOOL_ATTR_USED_MEM_CURRENT")
{
    cudaMemPool_t pool = default_pool();
    char *p = take(100000, NULL);

    CHECK(number(pool, cudaMemPoolAttrUsedMemCurrent) >= 100000);
    CHECK(number(pool, cudaMemPoolAttrReservedMemCurrent) >=
          number(pool, cudaMemPoolAttrUsedMemCurrent));
    OK(cudaFreeAsync(p, NULL));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(number(pool, cudaMemPoolAttrUsedMemCurrent), 0);
}

RULE(pool, memory_is_used_again_in_stream_order, "guide, Stream Ordered Memory Allocator")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    char *p = take(1000, stream);

    rule_close(&gate, stream);
    OK(cudaFreeAsync(p, stream));
    CHECK(take(1000, stream) == p);
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
}

RULE(pool, other_streams_do_not_get_it_early, "guide, Stream Ordered Memory Allocator")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    char *p = take(1000, stream);

    rule_close(&gate, stream);
    OK(cudaFreeAsync(p, stream));
    CHECK(take(1000, new_stream()) != p);
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
}

RULE(pool, an_event_lets_others_have_it, "cuda.h, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES")
{
    struct rule_gate gate;
    cudaStream_t first = new_stream();
    cudaStream_t second = new_stream();
    cudaEvent_t event;
    char *p = take(1000, first);

    OK(cudaEventCreate(&event));
    rule_close(&gate, first);
    OK(cudaFreeAsync(p, first));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    CHECK(take(1000, second) == p);
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(pool, unused_memory_leaves_at_a_synchronise, "cuda.h, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD")
{
    cudaStream_t stream = new_stream();

    OK(cudaFreeAsync(take(1000, stream), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(number(default_pool(), cudaMemPoolAttrReservedMemCurrent), 0);
}

RULE(pool, an_event_synchronise_counts_too, "cuda.h, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD")
{
    cudaStream_t stream = new_stream();
    cudaEvent_t event;

    OK(cudaEventCreate(&event));
    OK(cudaFreeAsync(take(1000, stream), stream));
    OK(cudaEventRecord(event, stream));
    OK(cudaEventSynchronize(event));
    CHECK_EQ(number(default_pool(), cudaMemPoolAttrReservedMemCurrent), 0);
}

RULE(pool, a_threshold_keeps_it, "cuda.h, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD")
{
    cudaStream_t stream = new_stream();

    keep_everything(default_pool());
    OK(cudaFreeAsync(take(1000, stream), stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(number(default_pool(), cudaMemPoolAttrReservedMemCurrent) > 0);
}

RULE(pool, a_trim_gives_it_back, "cuda.h, cuMemPoolTrimTo")
{
    cudaStream_t stream = new_stream();

    keep_everything(default_pool());
    OK(cudaFreeAsync(take(1000, stream), stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemPoolTrimTo(default_pool(), 0));
    CHECK_EQ(number(default_pool(), cudaMemPoolAttrReservedMemCurrent), 0);
}

RULE(pool, a_trim_leaves_what_is_asked, "cuda.h, cuMemPoolTrimTo")
{
    cudaStream_t stream = new_stream();

    keep_everything(default_pool());
    OK(cudaFreeAsync(take(64 * MIB, stream), stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemPoolTrimTo(default_pool(), 32 * MIB));
    CHECK(number(default_pool(), cudaMemPoolAttrReservedMemCurrent) >= 32 * MIB);
    CHECK(number(default_pool(), cudaMemPoolAttrReservedMemCurrent) < 64 * MIB);
}

RULE(pool, a_trim_spares_live_memory, "cuda.h, cuMemPoolTrimTo")
{
    char *p = take(1000, NULL);

    OK(cudaMemPoolTrimTo(default_pool(), 0));
    OK(cudaMemset(p, 1, 1000));
    CHECK(number(default_pool(), cudaMemPoolAttrReservedMemCurrent) >= 1000);
}

RULE(pool, high_marks_are_reset_by_zero, "cuda.h, cuMemPoolSetAttribute")
{
    cudaMemPool_t pool = default_pool();
    uint64_t zero = 0;
    uint64_t one = 1;

    OK(cudaFreeAsync(take(100000, NULL), NULL));
    OK(cudaDeviceSynchronize());
    CHECK(number(pool, cudaMemPoolAttrUsedMemHigh) >= 100000);
    CHECK_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one),
             cudaErrorInvalidValue);
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    CHECK_EQ(number(pool, cudaMemPoolAttrUsedMemHigh), 0);
}

RULE(pool, current_counts_cannot_be_set, "cuda.h, cuMemPoolSetAttribute")
{
    uint64_t zero = 0;

    CHECK_EQ(cudaMemPoolSetAttribute(default_pool(), cudaMemPoolAttrUsedMemCurrent, &zero),
             cudaErrorInvalidValue);
}

RULE(pool, reuse_switches_are_on_at_first, "cuda.h, cuMemPoolSetAttribute")
{
    int value = 7;
    int off = 0;

    OK(cudaMemPoolGetAttribute(default_pool(), cudaMemPoolReuseFollowEventDependencies, &value));
    CHECK_EQ(value, 1);
    OK(cudaMemPoolGetAttribute(default_pool(), cudaMemPoolReuseAllowOpportunistic, &value));
    CHECK_EQ(value, 1);
    OK(cudaMemPoolSetAttribute(default_pool(), cudaMemPoolReuseAllowOpportunistic, &off));
    OK(cudaMemPoolGetAttribute(default_pool(), cudaMemPoolReuseAllowOpportunistic, &value));
    CHECK_EQ(value, 0);
}

RULE(pool, the_default_one_is_not_destroyed, "cuda.h, cuMemPoolDestroy")
{
    CHECK_EQ(cudaMemPoolDestroy(default_pool()), cudaErrorInvalidValue);
}

RULE(pool, its_memory_outlives_it, "cuda.h, cuMemPoolDestroy")
{
    cudaMemPool_t pool = new_pool();
    void *p;

    OK(cudaMallocFromPoolAsync(&p, 1000, pool, NULL));
    OK(cudaMemPoolDestroy(pool));
    OK(cudaMemset(p, 1, 1000));
    OK(cudaFreeAsync(p, NULL));
    OK(cudaDeviceSynchronize());
}

RULE(pool, destroying_the_current_one_brings_back_the_default, "cuda.h, cuMemPoolDestroy")
{
    cudaMemPool_t pool = new_pool();
    cudaMemPool_t current;

    OK(cudaDeviceSetMemPool(0, pool));
    OK(cudaMemPoolDestroy(pool));
    OK(cudaDeviceGetMemPool(&current, 0));
    CHECK(current == default_pool());
}

RULE(pool, its_memory_may_be_freed_without_order, "cuda.h, cuMemFree")
{
    char *p = take(1000, NULL);

    OK(cudaDeviceSynchronize());
    OK(cudaFree(p));
    CHECK_EQ(number(default_pool(), cudaMemPoolAttrUsedMemCurrent), 0);
}

RULE(pool, plain_memory_may_be_freed_in_order, "assumed")
{
    void *p;

    OK(cudaMalloc(&p, 1000));
    OK(cudaFreeAsync(p, NULL));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(cudaFree(p), cudaErrorInvalidValue);
}

RULE(pool, a_block_is_freed_once, "cuda.h, cuMemFreeAsync")
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    char *p = take(1000, stream);

    rule_close(&gate, stream);
    OK(cudaFreeAsync(p, stream));
    CHECK_EQ(cudaFreeAsync(p, stream), cudaErrorInvalidValue);
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(cudaFreeAsync(p, stream), cudaErrorInvalidValue);
}

RULE(pool, only_starts_can_be_freed, "assumed")
{
    CHECK_EQ(cudaFreeAsync(take(1000, NULL) + 8, NULL), cudaErrorInvalidValue);
}

RULE(pool, pointers_know_their_pool, "cuda.h, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE")
{
    CUmemoryPool pool = NULL;

    OK(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                             (CUdeviceptr)take(1000, NULL)));
    CHECK(pool == default_pool());
}

RULE(pool, its_own_device_has_access, "cuda.h, cuMemPoolGetAccess")
{
    struct cudaMemLocation here = {.type = cudaMemLocationTypeDevice, .id = 0};
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;

    OK(cudaMemPoolGetAccess(&flags, default_pool(), &here));
    CHECK_EQ(flags, cudaMemAccessFlagsProtReadWrite);
}

RULE(pool, smaller_blocks_share_a_pending_one, "guide, Stream Ordered Memory Allocator",
     RULE_SIMULATED)
{
    struct rule_gate gate;
    cudaStream_t stream = new_stream();
    char *p = take(8192, stream);

    rule_close(&gate, stream);
    OK(cudaFreeAsync(p, stream));
    CHECK(take(2048, stream) == p);
    CHECK(take(2048, stream) == p + 2048);
    CHECK(take(8192, stream) != p);
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK(take(4096, new_stream()) == p + 4096);
}

RULE(pool, events_can_be_left_unfollowed, "cuda.h, cuMemPoolSetAttribute")
{
    struct rule_gate gate;
    cudaStream_t first = new_stream();
    cudaStream_t second = new_stream();
    cudaEvent_t event;
    char *p = take(1000, first);
    int off = 0;

    OK(cudaMemPoolSetAttribute(default_pool(), cudaMemPoolReuseFollowEventDependencies, &off));
    OK(cudaMemPoolSetAttribute(default_pool(), cudaMemPoolReuseAllowInternalDependencies, &off));
    OK(cudaEventCreate(&event));
    rule_close(&gate, first);
    OK(cudaFreeAsync(p, first));
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    CHECK(take(1000, second) != p);
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(pool, access_is_given_to_peers, "cuda.h, cuMemPoolSetAccess", 0, "SIMCUDA_DEVICES=2")
{
    struct cudaMemAccessDesc desc = {.location = {.type = cudaMemLocationTypeDevice, .id = 1},
                                     .flags = cudaMemAccessFlagsProtReadWrite};
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtReadWrite;
    int can = 0;

    rule_start(1);
    OK(cuDeviceCanAccessPeer(&can, 1, 0));
    rule_needs(can);
    OK(cudaMemPoolGetAccess(&flags, default_pool(), &desc.location));
    CHECK_EQ(flags, cudaMemAccessFlagsProtNone);
    OK(cudaMemPoolSetAccess(default_pool(), &desc, 1));
    OK(cudaMemPoolGetAccess(&flags, default_pool(), &desc.location));
    CHECK_EQ(flags, cudaMemAccessFlagsProtReadWrite);
}

RULE(pool, its_own_device_cannot_be_shut_out, "cuda.h, cuMemPoolSetAccess")
{
    struct cudaMemAccessDesc desc = {.location = {.type = cudaMemLocationTypeDevice, .id = 0},
                                     .flags = cudaMemAccessFlagsProtNone};

    CHECK_EQ(cudaMemPoolSetAccess(default_pool(), &desc, 1), cudaErrorInvalidValue);
}

RULE(pool, a_maximum_is_kept, "cuda.h, CUmemPoolProps")
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0},
                                     .maxSize = 64 * MIB};
    cudaMemPool_t pool;
    void *p;

    OK(cudaMemPoolCreate(&pool, &props));
    OK(cudaMallocFromPoolAsync(&p, 32 * MIB, pool, NULL));
    CHECK_EQ(cudaMallocFromPoolAsync(&p, 128 * MIB, pool, NULL), cudaErrorMemoryAllocation);
}

RULE(pool, a_location_names_it, "cuda.h, cuMemGetDefaultMemPool")
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemoryPool by_location;
    CUmemoryPool by_device;

    rule_start(0);
    OK(cuMemGetDefaultMemPool(&by_location, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    OK(cuDeviceGetDefaultMemPool(&by_device, 0));
    CHECK(by_location == by_device);
}

RULE(pool, a_location_takes_another, "cuda.h, cuMemSetMemPool")
{
    struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = 0};
    cudaMemPool_t pool = new_pool();
    cudaMemPool_t found;

    OK(cudaMemGetDefaultMemPool(&found, &location, cudaMemAllocationTypePinned));
    CHECK(found == default_pool());
    OK(cudaMemSetMemPool(&location, cudaMemAllocationTypePinned, pool));
    OK(cudaMemGetMemPool(&found, &location, cudaMemAllocationTypePinned));
    CHECK(found == pool);
}
