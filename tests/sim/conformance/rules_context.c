/* SPDX-License-Identifier: MIT */
/* Start-up, devices, contexts, peers. */
#include "rule.h"

#include <pthread.h>
#include <string.h>

RULE(context, nothing_works_before_init, "cuda.h, cuInit")
{
    CUdeviceptr p;
    int count;

    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
}

RULE(context, init_takes_no_flags, "cuda.h, cuInit")
{
    CHECK_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

RULE(context, init_may_be_called_again, "assumed")
{
    OK(cuInit(0));
    OK(cuInit(0));
}

RULE(context, the_version_needs_no_init, "cuda.h, cuDriverGetVersion")
{
    int version = 0;

    OK(cuDriverGetVersion(&version));
    CHECK(version >= 11020);
    CHECK_EQ(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
}

RULE(context, no_device_is_an_error, "cuda.h, CUDA_ERROR_NO_DEVICE", RULE_SIMULATED,
     "SIMCUDA_DEVICES=0")
{
    CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

RULE(context, memory_needs_a_context, "cuda.h, cuMemAlloc")
{
    CUdeviceptr p;

    OK(cuInit(0));
    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

RULE(context, none_is_current_at_first, "cuda.h, cuCtxGetCurrent")
{
    CUcontext context = (CUcontext)&context;

    OK(cuInit(0));
    OK(cuCtxGetCurrent(&context));
    CHECK(context == NULL);
}

RULE(context, primary_contexts_are_shared, "cuda.h, cuDevicePrimaryCtxRetain")
{
    CUcontext first = rule_start(0);
    CUcontext second;

    OK(cuDevicePrimaryCtxRetain(&second, 0));
    CHECK(first == second);
}

RULE(context, retaining_does_not_make_current, "cuda.h, cuDevicePrimaryCtxRetain")
{
    CUcontext context;
    CUcontext current;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
}

RULE(context, state_tells_whether_primary_exists, "cuda.h, cuDevicePrimaryCtxGetState")
{
    unsigned flags;
    int is_active = 7;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(is_active, 0);
    rule_start(0);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(is_active, 1);
}

RULE(context, primary_flags_are_kept, "cuda.h, cuDevicePrimaryCtxSetFlags")
{
    unsigned flags;
    int is_active;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(flags, CU_CTX_SCHED_BLOCKING_SYNC);
}

RULE(context, the_last_release_ends_it, "cuda.h, cuDevicePrimaryCtxRelease")
{
    unsigned flags;
    int is_active;
    CUcontext context = rule_start(0);

    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(is_active, 1);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(is_active, 0);
}

RULE(context, releases_match_retains, "assumed")
{
    OK(cuInit(0));
    CHECK_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

RULE(context, an_ended_context_is_destroyed, "cuda.h, CUDA_ERROR_CONTEXT_IS_DESTROYED")
{
    CUdeviceptr p;

    rule_start(0);
    OK(cuDevicePrimaryCtxRelease(0));
    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

RULE(context, a_reset_frees_memory, "cuda.h, cuDevicePrimaryCtxReset")
{
    size_t before;
    size_t after;
    size_t total;
    CUdeviceptr p;

    rule_start(0);
    OK(cuMemGetInfo(&before, &total));
    OK(cuMemAlloc(&p, (size_t)16 << 20));
    OK(cuDevicePrimaryCtxReset(0));
    rule_start(0);
    OK(cuMemGetInfo(&after, &total));
    CHECK(after >= before);
    CHECK_EQ(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

RULE(context, a_reset_keeps_the_handle, "cuda.h, cuDevicePrimaryCtxReset")
{
    CUcontext before = rule_start(0);

    OK(cuDevicePrimaryCtxReset(0));
    CHECK(rule_start(0) == before);
}

RULE(context, ids_are_new_after_a_reset, "cuda.h, cuCtxGetId")
{
    unsigned long long before;
    unsigned long long after;

    OK(cuCtxGetId(rule_start(0), &before));
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuCtxGetId(rule_start(0), &after));
    CHECK(before != after);
}

RULE(context, a_reset_ends_streams, "assumed")
{
    CUstream stream;

    rule_start(0);
    OK(cuStreamCreate(&stream, 0));
    OK(cuDevicePrimaryCtxReset(0));
    rule_start(0);
    CHECK(cuStreamSynchronize(stream) != CUDA_SUCCESS);
}

RULE(context, created_ones_become_current, "cuda.h, cuCtxCreate")
{
    CUcontext made;
    CUcontext current;

    rule_start(0);
    OK(cuCtxCreate(&made, NULL, 0, 0));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == made);
}

RULE(context, pop_uncovers_the_one_below, "cuda.h, cuCtxPopCurrent")
{
    CUcontext primary = rule_start(0);
    CUcontext made;
    CUcontext current;

    OK(cuCtxCreate(&made, NULL, 0, 0));
    OK(cuCtxPopCurrent(&current));
    CHECK(current == made);
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
}

RULE(context, push_covers_it_again, "cuda.h, cuCtxPushCurrent")
{
    CUcontext primary = rule_start(0);
    CUcontext current;

    OK(cuCtxPushCurrent(primary));
    OK(cuCtxPopCurrent(&current));
    OK(cuCtxPopCurrent(&current));
    CHECK(current == primary);
    CHECK_EQ(cuCtxPopCurrent(&current), CUDA_ERROR_INVALID_CONTEXT);
}

RULE(context, setting_none_unbinds, "cuda.h, cuCtxSetCurrent")
{
    CUcontext current;

    rule_start(0);
    OK(cuCtxSetCurrent(NULL));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
}

RULE(context, destroying_the_current_one_pops_it, "cuda.h, cuCtxDestroy")
{
    CUcontext primary = rule_start(0);
    CUcontext made;
    CUcontext current;

    OK(cuCtxCreate(&made, NULL, 0, 0));
    OK(cuCtxDestroy(made));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
}

RULE(context, destroying_frees_its_memory, "cuda.h, cuCtxDestroy")
{
    CUcontext made;
    CUdeviceptr p;
    size_t before;
    size_t after;
    size_t total;

    rule_start(0);
    OK(cuMemGetInfo(&before, &total));
    OK(cuCtxCreate(&made, NULL, 0, 0));
    OK(cuMemAlloc(&p, (size_t)16 << 20));
    OK(cuCtxDestroy(made));
    OK(cuMemGetInfo(&after, &total));
    CHECK(after >= before);
}

RULE(context, pool_memory_survives_its_context, "assumed")
{
    CUcontext made;
    CUdeviceptr p;

    rule_start(0);
    OK(cuCtxCreate(&made, NULL, 0, 0));
    OK(cuMemAllocAsync(&p, 4096, NULL));
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy(made));
    OK(cuMemsetD8(p, 1, 4096));
    OK(cuCtxSynchronize());
    OK(cuMemFree(p));
}

RULE(context, primary_ones_are_not_destroyed, "cuda.h, cuDevicePrimaryCtxRetain")
{
    CHECK_EQ(cuCtxDestroy(rule_start(0)), CUDA_ERROR_INVALID_CONTEXT);
}

static void *get_current(void *context_out)
{
    OK(cuCtxGetCurrent(context_out));
    return NULL;
}

RULE(context, each_thread_has_its_own, "cuda.h, cuCtxGetCurrent")
{
    pthread_t thread;
    CUcontext other = rule_start(0);

    pthread_create(&thread, NULL, get_current, &other);
    pthread_join(thread, NULL);
    CHECK(other == NULL);
}

RULE(context, limits_are_kept, "cuda.h, cuCtxSetLimit")
{
    size_t value;

    rule_start(0);
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    CHECK_EQ(value, 4096);
    CHECK_EQ(cuCtxGetLimit(&value, (CUlimit)99), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

RULE(context, priorities_grow_downwards, "cuda.h, cuCtxGetStreamPriorityRange")
{
    int least;
    int greatest;

    rule_start(0);
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CHECK_EQ(least, 0);
    CHECK(greatest <= 0);
    OK(cuCtxGetStreamPriorityRange(NULL, NULL));
}

RULE(context, the_device_is_known, "cuda.h, cuCtxGetDevice")
{
    CUdevice device = 7;

    rule_start(0);
    OK(cuCtxGetDevice(&device));
    CHECK_EQ(device, 0);
}

RULE(device, ordinals_end_at_the_count, "cuda.h, cuDeviceGet")
{
    CUdevice device;
    int count;

    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    OK(cuDeviceGet(&device, count - 1));
    CHECK_EQ(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
    CHECK_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

RULE(device, names_are_cut_to_fit, "cuda.h, cuDeviceGetName")
{
    char name[5] = "####";

    OK(cuInit(0));
    OK(cuDeviceGetName(name, sizeof(name), 0));
    CHECK(memchr(name, 0, sizeof(name)) != NULL);
}

RULE(device, unknown_attributes_are_refused, "cuda.h, cuDeviceGetAttribute")
{
    int value;

    OK(cuInit(0));
    CHECK_EQ(cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(device, warps_have_32_threads, "guide, Hardware Implementation")
{
    int value;

    OK(cuInit(0));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    CHECK_EQ(value, 32);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
    CHECK_EQ(value, 1);
}

RULE(device, bus_ids_lead_back, "cuda.h, cuDeviceGetByPCIBusId")
{
    char bus[32];
    CUdevice device = 7;

    OK(cuInit(0));
    OK(cuDeviceGetPCIBusId(bus, sizeof(bus), 0));
    OK(cuDeviceGetByPCIBusId(&device, bus));
    CHECK_EQ(device, 0);
}

RULE(device, uuids_differ, "cuda.h, cuDeviceGetUuid", 0, "SIMCUDA_DEVICES=2")
{
    CUuuid ids[2];

    rule_start(1);
    OK(cuDeviceGetUuid(&ids[0], 0));
    OK(cuDeviceGetUuid(&ids[1], 1));
    CHECK(memcmp(&ids[0], &ids[1], sizeof(ids[0])) != 0);
}

RULE(peer, none_is_its_own, "cuda.h, cuDeviceCanAccessPeer", 0, "SIMCUDA_DEVICES=2")
{
    int can = 7;

    OK(cuInit(0));
    OK(cuDeviceCanAccessPeer(&can, 0, 0));
    CHECK_EQ(can, 0);
}

/* Both primary contexts, the first current. */
static CUcontext two_peers(void)
{
    CUcontext second = rule_start(1);
    int can;

    rule_start(0);
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    rule_needs(can);
    return second;
}

RULE(peer, access_is_enabled_once, "cuda.h, cuCtxEnablePeerAccess", 0, "SIMCUDA_DEVICES=2")
{
    CUcontext second = two_peers();

    OK(cuCtxEnablePeerAccess(second, 0));
    CHECK_EQ(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
}

RULE(peer, access_is_disabled_once, "cuda.h, cuCtxDisablePeerAccess", 0, "SIMCUDA_DEVICES=2")
{
    CUcontext second = two_peers();

    CHECK_EQ(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxEnablePeerAccess(second, 0));
    OK(cuCtxDisablePeerAccess(second));
    CHECK_EQ(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

RULE(peer, flags_must_be_zero, "cuda.h, cuCtxEnablePeerAccess", 0, "SIMCUDA_DEVICES=2")
{
    CHECK_EQ(cuCtxEnablePeerAccess(two_peers(), 1), CUDA_ERROR_INVALID_VALUE);
}

RULE(peer, copies_need_no_access, "cuda.h, cuMemcpyPeer", 0, "SIMCUDA_DEVICES=2")
{
    CUcontext second = two_peers();
    CUcontext first;
    CUdeviceptr p;
    CUdeviceptr q;
    char byte = 0;

    OK(cuCtxGetCurrent(&first));
    OK(cuMemAlloc(&p, 16));
    OK(cuMemsetD8(p, 9, 16));
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc(&q, 16));
    OK(cuMemcpyPeer(q, second, p, first, 16));
    OK(cuMemcpyDtoH(&byte, q, 1));
    CHECK_EQ(byte, 9);
}
