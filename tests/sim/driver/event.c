/* SPDX-License-Identifier: MIT */
/* Events: a point in a queue, or in all queues of a context, with the clock it had there. */
#include "call.h"
#include "capture.h"
#include "context.h"
#include "defect.h"
#include "event.h"
#include "pool.h"
#include "sim_api.h"

#include <stdlib.h>

static struct CUevent_st *free_handles;
/* Every event there ever was, so that a leak checker finds what programs leave to the context. */
static struct CUevent_st *newest;

static bool is_event(CUevent event)
{
    return event != NULL && event->magic == SIM_EVENT_MAGIC;
}

CUresult sim_event_enter(CUevent event, struct CUctx_st **context_out)
{
    CUresult result = sim_enter(context_out);

    return result == CUDA_SUCCESS && !is_event(event) ? CUDA_ERROR_INVALID_HANDLE : result;
}

struct CUevent_st *sim_event_create(struct CUctx_st *context, unsigned flags)
{
    struct CUevent_st *event = free_handles;

    if (event != NULL) {
        free_handles = event->next;
    } else {
        event = calloc(1, sizeof(*event));
        event->older = newest;
        newest = event;
    }
    event->magic = SIM_EVENT_MAGIC;
    event->flags = flags;
    event->context = context;
    event->capture_id = 0;
    return event;
}

CUresult sim_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (phEvent == NULL || Flags > 7 ||
        ((Flags & CU_EVENT_INTERPROCESS) != 0 && (Flags & CU_EVENT_DISABLE_TIMING) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *phEvent = sim_event_create(context, Flags);
    return CUDA_SUCCESS;
}

static void clear(struct CUevent_st *event)
{
    sim_op_drop(event->mark);
    event->mark = NULL;
    event->capture_id = 0;
    free(event->capture_nodes);
    event->capture_nodes = NULL;
    event->capture_node_count = 0;
    sim_clock_fini(&event->clock);
}

CUresult sim_cuEventDestroy_v2(CUevent hEvent)
{
    struct CUctx_st *context;
    CUresult result = sim_event_enter(hEvent, &context);

    if (result == CUDA_SUCCESS) {
        clear(hEvent);
        sim_shared_event_forget(hEvent);
        hEvent->magic = 0;
        hEvent->next = free_handles;
        free_handles = hEvent;
    }
    return result;
}

CUresult sim_event_record(struct CUevent_st *event, struct sim_op *mark)
{
    struct sim_queue *queue = mark->queue;

    clear(event);
    sim_shared_event_record(event, mark);
    event->mark = mark;
    sim_op_hold(mark);
    CUresult result = sim_submit(mark);
    sim_queue_join(queue, &event->clock);
    return result;
}

/* In a capture the event stands for the nodes so far; an external one becomes a node itself. */
static CUresult capture_record(struct CUevent_st *event, struct sim_queue *queue, unsigned flags)
{
    struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event};

    if (flags == CU_EVENT_RECORD_EXTERNAL) {
        return sim_capture_work(queue, &work);
    }
    clear(event);
    if (queue->capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    event->capture_id = queue->capture->id;
    event->capture_node_count = queue->capture_node_count;
    event->capture_nodes = calloc(queue->capture_node_count + 1, sizeof(CUgraphNode));
    for (size_t i = 0; i < queue->capture_node_count; i++) {
        event->capture_nodes[i] = queue->capture_nodes[i];
    }
    return CUDA_SUCCESS;
}

CUresult sim_event_record_run(CUevent event, struct sim_queue *queue)
{
    return is_event(event) ? sim_event_record(event, sim_op_create(queue, "event record node"))
                           : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    struct CUctx_st *context;
    struct sim_queue *queue;
    CUresult result = sim_event_enter(hEvent, &context);

    if (result == CUDA_SUCCESS) {
        result = sim_enter_stream(hStream, &queue);
    }
    if (result != CUDA_SUCCESS || flags > CU_EVENT_RECORD_EXTERNAL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (queue->context != hEvent->context && !SIM_DEFECT(events_cross_contexts)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (queue->capture != NULL) {
        return capture_record(hEvent, queue, flags);
    }
    result = sim_capture_refuse_implicit(queue);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    return sim_event_record(hEvent, sim_op_create(queue, "cuEventRecord"));
}

CUresult sim_cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return sim_cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult sim_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct CUctx_st *context;
    struct sim_queue *queue;
    CUresult result = sim_event_enter(hEvent, &context);

    if (result == CUDA_SUCCESS) {
        result = sim_enter_stream(hStream, &queue);
    }
    if (result != CUDA_SUCCESS || Flags > CU_EVENT_WAIT_EXTERNAL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_capture *capture = sim_capture_of_id(hEvent->capture_id);
    if (capture != NULL) {
        return sim_capture_join(queue, capture, hEvent->capture_nodes, hEvent->capture_node_count);
    }
    if (queue->capture != NULL) {
        /* Work from outside cannot be waited for inside a capture. */
        if (hEvent->mark != NULL && Flags == 0) {
            queue->capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        }
        struct sim_work work = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = hEvent};
        return Flags != 0 ? sim_capture_work(queue, &work) : CUDA_SUCCESS;
    }
    return sim_event_wait_run(hEvent, queue);
}

CUresult sim_event_wait_run(CUevent hEvent, struct sim_queue *queue)
{
    if (!is_event(hEvent)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (sim_shared_event_is_foreign(hEvent)) {
        return sim_submit(sim_shared_event_wait(hEvent, queue));
    }
    if (hEvent->mark == NULL) {
        return CUDA_SUCCESS;
    }
    struct sim_op *wait = sim_op_create(queue, "cuStreamWaitEvent");
    if (!SIM_DEFECT(streams_do_not_wait_for_events)) {
        sim_op_wait_for(wait, hEvent->mark);
    }
    if (!SIM_DEFECT(event_waits_do_not_order)) {
        sim_clock_join(&queue->clock, &hEvent->clock);
    }
    return sim_submit(wait);
}

/* Is the event free of captures, and may this thread ask? */
static CUresult may_ask(struct CUevent_st *event)
{
    struct sim_capture *capture = sim_capture_of_id(event->capture_id);

    if (capture != NULL) {
        capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return sim_capture_refuse_unsafe();
}

CUresult sim_cuEventQuery(CUevent hEvent)
{
    struct CUctx_st *context;
    CUresult result = sim_event_enter(hEvent, &context);

    if (result == CUDA_SUCCESS) {
        result = may_ask(hEvent);
    }
    if (result == CUDA_SUCCESS && sim_shared_event_is_foreign(hEvent)) {
        return sim_shared_event_is_done(hEvent) ? context->sticky : CUDA_ERROR_NOT_READY;
    }
    if (result != CUDA_SUCCESS || hEvent->mark == NULL) {
        return result;
    }
    sim_query_progress();
    if (hEvent->mark->state != SIM_OP_DONE) {
        return CUDA_ERROR_NOT_READY;
    }
    sim_clock_join(&sim_host_clock, &hEvent->clock);
    return context->sticky;
}

CUresult sim_cuEventSynchronize(CUevent hEvent)
{
    struct CUctx_st *context;
    struct sim_clock seen = {0};
    CUresult result = sim_event_enter(hEvent, &context);

    if (result == CUDA_SUCCESS) {
        result = may_ask(hEvent);
    }
    if (result == CUDA_SUCCESS && sim_shared_event_is_foreign(hEvent)) {
        sim_shared_event_synchronize(hEvent);
        return context->sticky;
    }
    if (result != CUDA_SUCCESS || hEvent->mark == NULL) {
        return result;
    }
    /* The event may be recorded anew while this thread waits. */
    struct sim_op *mark = hEvent->mark;
    sim_clock_join(&seen, &hEvent->clock);
    sim_op_hold(mark);
    sim_wait(mark);
    sim_op_drop(mark);
    sim_clock_join(&sim_host_clock, &seen);
    sim_clock_fini(&seen);
    sim_pool_settle(context->device);
    return context->sticky;
}

CUresult sim_cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    struct CUctx_st *context;
    CUresult result = sim_event_enter(hStart, &context);

    if (result == CUDA_SUCCESS) {
        result = sim_event_enter(hEnd, &context);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (pMilliseconds == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (((hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING) != 0 || hStart->mark == NULL ||
        hEnd->mark == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if ((hStart->mark->state != SIM_OP_DONE || hEnd->mark->state != SIM_OP_DONE) &&
        !SIM_DEFECT(pending_events_have_times)) {
        return CUDA_ERROR_NOT_READY;
    }
    *pMilliseconds = (float)((double)((int64_t)(hEnd->mark->end_ns - hStart->mark->end_ns)) /
                             1000000.0);
    return CUDA_SUCCESS;
}

CUresult sim_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return sim_cuEventElapsedTime(pMilliseconds, hStart, hEnd);
}
