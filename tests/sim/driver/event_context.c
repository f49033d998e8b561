/* SPDX-License-Identifier: MIT */
/* Events over all streams of a context, or of a green one inside it. */
#include "capture.h"
#include "defect.h"
#include "event.h"
#include "green.h"
#include "sim_api.h"

/* The queues meant: all of the context or, when green is not NULL, those of that one. */
struct group {
    struct CUctx_st *context;
    struct CUgreenCtx_st *green;
};

static CUresult enter(CUcontext handle, CUevent event, struct group *group_out)
{
    struct CUctx_st *current;
    CUresult result = sim_event_enter(event, &current);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    group_out->context = handle == NULL ? current : sim_context_of(handle);
    group_out->green = sim_green_of_view(handle == NULL ? sim_context_current() : handle);
    return group_out->context == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static struct sim_queue *marks_of(const struct group *group)
{
    return group->green != NULL ? group->green->marks : group->context->marks;
}

static bool is_meant(const struct group *group, const struct sim_queue *queue)
{
    if (SIM_DEFECT(context_events_pass_green_ones) && group->green == NULL) {
        return queue != marks_of(group) && queue->green == NULL;
    }
    return queue != marks_of(group) && (group->green == NULL || queue->green == group->green);
}

/* Captures in the streams meant end with the call. */
static CUresult refuse_captures(const struct group *group)
{
    CUresult result = CUDA_SUCCESS;

    for (struct sim_queue *queue = group->context->queues; queue != NULL; queue = queue->next) {
        if (queue->capture != NULL && is_meant(group, queue)) {
            queue->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

/* A mark that waits for the tails of all queues meant, in the queue made for it. */
CUresult sim_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct group group;
    CUresult result = enter(hCtx, hEvent, &group);

    if (result == CUDA_SUCCESS && hEvent->context != group.context) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS && !SIM_DEFECT(context_events_spare_captures)) {
        result = refuse_captures(&group);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_queue *marks = marks_of(&group);
    struct sim_op *mark = sim_op_create(marks, "cuCtxRecordEvent");
    for (struct sim_queue *queue = group.context->queues; queue != NULL; queue = queue->next) {
        if (is_meant(&group, queue) && !SIM_DEFECT(context_events_cover_nothing)) {
            sim_op_wait_for(mark, queue->tail);
            sim_clock_join(&marks->clock, &queue->clock);
        }
    }
    return sim_event_record(hEvent, mark);
}

CUresult sim_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    struct group group;
    CUresult result = enter(hCtx, hEvent, &group);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_capture *capture = sim_capture_of_id(hEvent->capture_id);
    if (capture != NULL) {
        capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    result = refuse_captures(&group);
    if (result != CUDA_SUCCESS || hEvent->mark == NULL) {
        return result;
    }
    struct sim_queue *marks = marks_of(&group);
    struct sim_op **floor = group.green != NULL ? &group.green->floor : &group.context->floor;
    struct sim_clock *floor_clock = group.green != NULL ? &group.green->floor_clock
                                                        : &group.context->floor_clock;
    struct sim_op *op = sim_op_create(marks, "cuCtxWaitEvent");
    sim_op_wait_for(op, group.context->floor);
    sim_op_wait_for(op, *floor);
    sim_op_wait_for(op, hEvent->mark);
    sim_clock_join(&marks->clock, &hEvent->clock);
    sim_clock_join(floor_clock, &hEvent->clock);
    sim_op_drop(*floor);
    *floor = NULL;
    if (!SIM_DEFECT(new_streams_pass_context_waits)) {
        *floor = op;
        sim_op_hold(op);
    }
    sim_op_hold(op);
    sim_enqueue(op);
    for (struct sim_queue *queue = group.context->queues; queue != NULL; queue = queue->next) {
        if (is_meant(&group, queue)) {
            struct sim_op *wait = sim_op_create(queue, "cuCtxWaitEvent");
            sim_op_wait_for(wait, op);
            sim_clock_join(&queue->clock, &hEvent->clock);
            sim_enqueue(wait);
        }
    }
    sim_op_drop(op);
    return CUDA_SUCCESS;
}
