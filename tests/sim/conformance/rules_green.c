/* SPDX-License-Identifier: MIT */
/* Green contexts. */
#include "rule.h"

#include <unistd.h>

static CUcontext primary;

/* A green context over the first multiprocessors of device 0. */
static CUgreenCtx make(void)
{
    CUdevResource all;
    CUdevResource part;
    CUdevResourceDesc description;
    CUgreenCtx green;
    unsigned count = 1;

    primary = rule_start(0);
    rule_needs(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    OK(cuDevSmResourceSplitByCount(&part, &count, &all, NULL, 0, 8));
    CHECK_EQ(count, 1);
    OK(cuDevResourceGenerateDesc(&description, &part, 1));
    OK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
}

static CUstream stream_of(CUgreenCtx green)
{
    CUstream stream;

    OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    return stream;
}

static CUevent new_event(void)
{
    CUevent event;

    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

/* Is the event not done, and stays so for a while? */
static int is_held(CUevent event)
{
    int result = 1;

    for (int i = 0; i < 30 && result; i++) {
        usleep(1000);
        result = cuEventQuery(event) == CUDA_ERROR_NOT_READY;
    }
    return result;
}

RULE(green, resources_are_multiprocessors, "cuda.h, cuDeviceGetDevResource")
{
    CUdevResource all;
    int count;

    rule_start(0);
    rule_needs(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    OK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    CHECK_EQ(all.type, CU_DEV_RESOURCE_TYPE_SM);
    CHECK_EQ(all.sm.smCount, count);
}

RULE(green, a_split_gives_equal_parts_and_a_rest, "cuda.h, cuDevSmResourceSplitByCount")
{
    CUdevResource all;
    CUdevResource parts[64];
    CUdevResource rest;
    unsigned possible = 0;
    unsigned count;

    rule_start(0);
    rule_needs(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    OK(cuDevSmResourceSplitByCount(NULL, &possible, &all, NULL, 0, 9));
    CHECK(possible > 0 && possible <= 64);
    count = possible;
    OK(cuDevSmResourceSplitByCount(parts, &count, &all, &rest, 0, 9));
    CHECK_EQ(count, possible);
    CHECK(parts[0].sm.smCount >= 9);
    CHECK_EQ(parts[0].sm.smCount % all.sm.smCoscheduledAlignment, 0);
    unsigned sum = rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0;
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQ(parts[i].sm.smCount, parts[0].sm.smCount);
        sum += parts[i].sm.smCount;
    }
    CHECK_EQ(sum, all.sm.smCount);
    count = 1;
    CHECK_EQ(cuDevSmResourceSplitByCount(parts, &count, &all, NULL, 0, all.sm.smCount + 1),
             CUDA_ERROR_INVALID_VALUE);
}

RULE(green, it_has_what_it_was_made_of, "cuda.h, cuGreenCtxGetDevResource")
{
    CUgreenCtx green = make();
    CUdevResource own;

    OK(cuGreenCtxGetDevResource(green, &own, CU_DEV_RESOURCE_TYPE_SM));
    CHECK_EQ(own.sm.smCount, 8);
}

RULE(green, a_default_stream_must_be_asked_for, "cuda.h, cuGreenCtxCreate")
{
    CUdevResource all;
    CUdevResourceDesc description;
    CUgreenCtx green;

    rule_start(0);
    rule_needs(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    OK(cuDevResourceGenerateDesc(&description, &all, 1));
    CHECK_EQ(cuGreenCtxCreate(&green, description, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(green, it_is_not_made_current, "cuda.h, cuGreenCtxCreate")
{
    CUcontext current;

    make();
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
}

RULE(green, it_retains_the_primary_context, "cuda.h, cuGreenCtxCreate")
{
    CUgreenCtx green = make();
    unsigned flags;
    int is_active;

    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(is_active, 1);
    OK(cuGreenCtxDestroy(green));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(is_active, 0);
}

RULE(green, its_context_can_be_made_current, "cuda.h, cuCtxFromGreenCtx")
{
    CUgreenCtx green = make();
    CUcontext view;
    CUcontext current;
    CUdevice device;
    CUdeviceptr p;

    OK(cuCtxFromGreenCtx(&view, green));
    CHECK(view != primary);
    OK(cuCtxSetCurrent(view));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == view);
    OK(cuCtxGetDevice(&device));
    CHECK_EQ(device, 0);
    OK(cuMemAlloc(&p, 64));
    OK(cuCtxSetCurrent(primary));
    OK(cuMemFree(p));
}

RULE(green, its_streams_do_not_block, "cuda.h, cuGreenCtxStreamCreate")
{
    CUgreenCtx green = make();
    CUstream stream;
    unsigned flags;

    CHECK_EQ(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0),
             CUDA_ERROR_INVALID_VALUE);
    stream = stream_of(green);
    OK(cuStreamGetFlags(stream, &flags));
    CHECK_EQ(flags, CU_STREAM_NON_BLOCKING);
    OK(cuStreamDestroy(stream));
}

RULE(green, streams_know_it, "cuda.h, cuStreamGetGreenCtx")
{
    CUgreenCtx green = make();
    CUgreenCtx found;
    CUcontext view;
    CUcontext context;
    CUstream plain;
    CUstream stream = stream_of(green);

    OK(cuStreamGetGreenCtx(stream, &found));
    CHECK(found == green);
    OK(cuStreamCreate(&plain, 0));
    OK(cuStreamGetGreenCtx(plain, &found));
    CHECK(found == NULL);
    OK(cuStreamGetCtx_v2(stream, &context, &found));
    CHECK(context == primary && found == green);
    OK(cuCtxFromGreenCtx(&view, green));
    OK(cuStreamGetCtx(stream, &context));
    CHECK(context == view);
}

RULE(green, streams_made_while_it_is_current_are_its, "cuda.h, cuStreamGetCtx")
{
    CUgreenCtx green = make();
    CUgreenCtx found;
    CUcontext view;
    CUstream stream;

    OK(cuCtxFromGreenCtx(&view, green));
    OK(cuCtxPushCurrent(view));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuCtxPopCurrent(NULL));
    OK(cuStreamGetGreenCtx(stream, &found));
    CHECK(found == green);
}

RULE(green, the_primary_contexts_event_covers_it, "cuda.h, cuCtxRecordEvent")
{
    CUgreenCtx green = make();
    CUstream stream = stream_of(green);
    CUevent event = new_event();
    struct rule_gate gate;

    rule_close(&gate, stream);
    OK(cuCtxRecordEvent(primary, event));
    CHECK(is_held(event));
    rule_open(&gate);
    OK(cuEventSynchronize(event));
    OK(cuStreamQuery(stream));
}

RULE(green, its_own_event_covers_nothing_else, "cuda.h, cuGreenCtxRecordEvent")
{
    CUgreenCtx green = make();
    CUstream stream = stream_of(green);
    CUstream outside;
    CUevent event = new_event();
    CUevent later = new_event();
    struct rule_gate gate;

    OK(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
    rule_close(&gate, outside);
    OK(cuGreenCtxRecordEvent(green, event));
    OK(cuEventSynchronize(event));
    rule_open(&gate);
    OK(cuStreamSynchronize(outside));
    rule_close(&gate, stream);
    OK(cuGreenCtxRecordEvent(green, later));
    CHECK(is_held(later));
    rule_open(&gate);
    OK(cuEventSynchronize(later));
}

RULE(green, the_event_of_its_view_covers_nothing_else, "cuda.h, cuCtxRecordEvent")
{
    CUgreenCtx green = make();
    CUstream outside;
    CUcontext view;
    CUevent event = new_event();
    struct rule_gate gate;

    OK(cuCtxFromGreenCtx(&view, green));
    OK(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
    rule_close(&gate, outside);
    OK(cuCtxRecordEvent(view, event));
    OK(cuEventSynchronize(event));
    rule_open(&gate);
    OK(cuStreamSynchronize(outside));
}

RULE(green, it_waits_with_all_its_streams, "cuda.h, cuGreenCtxWaitEvent")
{
    CUgreenCtx green = make();
    CUstream before = stream_of(green);
    CUstream outside;
    CUevent event = new_event();
    struct rule_gate gate;

    OK(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
    rule_close(&gate, outside);
    OK(cuEventRecord(event, outside));
    OK(cuGreenCtxWaitEvent(green, event));
    CUstream after = stream_of(green);
    CHECK(rule_is_held(before));
    CHECK(rule_is_held(after));
    rule_open(&gate);
    OK(cuStreamSynchronize(before));
    OK(cuStreamSynchronize(after));
}

RULE(green, its_event_breaks_its_captures_alone, "cuda.h, cuGreenCtxRecordEvent")
{
    CUgreenCtx green = make();
    CUstream stream = stream_of(green);
    CUstream outside;
    CUevent event = new_event();
    CUgraph graph;

    OK(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(outside, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuGreenCtxRecordEvent(green, event));
    OK(cuStreamEndCapture(outside, &graph));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_EQ(cuGreenCtxRecordEvent(green, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

RULE(green, synchronising_the_primary_waits_for_it, "cuda.h, cuCtxSynchronize_v2")
{
    CUgreenCtx green = make();
    CUstream stream = stream_of(green);
    struct rule_gate gate;

    rule_close(&gate, stream);
    rule_open_soon(&gate);
    OK(cuCtxSynchronize());
    CHECK(rule_is_open(&gate));
}

RULE(green, streams_of_a_destroyed_one_are_gone, "cuda.h, cuGreenCtxDestroy")
{
    CUgreenCtx green = make();
    CUstream stream = stream_of(green);

    OK(cuGreenCtxDestroy(green));
    CHECK_EQ(cuStreamSynchronize(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuStreamDestroy(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

RULE(green, each_has_an_id, "cuda.h, cuGreenCtxGetId")
{
    CUgreenCtx first = make();
    CUgreenCtx second = make();
    unsigned long long one;
    unsigned long long two;

    OK(cuGreenCtxGetId(first, &one));
    OK(cuGreenCtxGetId(second, &two));
    CHECK(one != two);
}

RULE(green, streams_of_two_are_not_ordered, "guide, Streams", RULE_WRONG)
{
    CUgreenCtx one = make();
    CUgreenCtx two = make();
    CUdeviceptr p;

    OK(cuMemAlloc(&p, 64));
    OK(cuMemsetD8Async(p, 1, 64, stream_of(one)));
    CHECK_EQ(cuMemsetD8Async(p, 2, 64, stream_of(two)), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(green, a_free_waits_for_it, "assumed")
{
    CUgreenCtx green = make();
    CUstream stream = stream_of(green);
    CUdeviceptr p;
    struct rule_gate gate;

    OK(cuMemAlloc(&p, 64));
    rule_close(&gate, stream);
    OK(cuMemsetD8Async(p, 1, 64, stream));
    rule_open_soon(&gate);
    OK(cuMemFree(p));
    CHECK(rule_is_open(&gate));
}
