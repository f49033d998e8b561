/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include "call.h"
#include "capture.h"
#include "defect.h"
#include "green.h"
#include "pool.h"
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_MAGIC 0x5354524du

/* The per-thread default stream of one context, for this thread. */
struct per_thread {
    struct per_thread *next;
    struct CUctx_st *context;
    unsigned long long context_id;
    struct sim_queue *queue;
};

static struct CUstream_st *free_handles;
static struct sim_collection collection;
static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

/* A thread's default streams end with it, their work does not. */
static void end_thread(void *list)
{
    pthread_mutex_lock(&sim_mutex);
    for (struct per_thread *entry = list; entry != NULL;) {
        struct per_thread *next = entry->next;
        if (entry->context->is_active && entry->context->id == entry->context_id) {
            sim_queue_orphan(entry->queue);
        }
        free(entry);
        entry = next;
    }
    pthread_mutex_unlock(&sim_mutex);
}

static void make_thread_key(void)
{
    pthread_key_create(&thread_key, end_thread);
}

struct sim_queue *sim_per_thread_queue(struct CUctx_st *context)
{
    pthread_once(&thread_key_once, make_thread_key);
    struct per_thread *list = pthread_getspecific(thread_key);
    struct per_thread *entry = list;

    while (entry != NULL && entry->context != context) {
        entry = entry->next;
    }
    if (entry == NULL) {
        entry = calloc(1, sizeof(*entry));
        entry->context = context;
        entry->next = list;
        pthread_setspecific(thread_key, entry);
    }
    if (entry->context_id != context->id) {
        entry->context_id = context->id;
        entry->queue = sim_queue_create(context, false, false);
    }
    return entry->queue;
}

struct CUstream_st *sim_stream_of(CUstream handle)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        return NULL;
    }
    return handle->magic == STREAM_MAGIC ? handle : NULL;
}

CUresult sim_enter_stream(CUstream handle, struct sim_queue **queue_out)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    const struct CUgreenCtx_st *green = sim_green_of_view(sim_context_current());
    if (handle == CU_STREAM_PER_THREAD || (handle == NULL && sim_call_is_per_thread())) {
        *queue_out = sim_per_thread_queue(context);
        return CUDA_SUCCESS;
    }
    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        *queue_out = green != NULL ? green->legacy : context->legacy;
        return CUDA_SUCCESS;
    }
    struct CUstream_st *stream = sim_stream_of(handle);
    if (stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (stream->queue->green != NULL && stream->queue->green->is_destroyed) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *queue_out = stream->queue;
    return CUDA_SUCCESS;
}

struct sim_collection sim_collect_begin(void)
{
    struct sim_collection outer = collection;

    collection = (struct sim_collection){.is_open = true};
    return outer;
}

struct sim_collection sim_collect_end(struct sim_collection outer)
{
    struct sim_collection own = collection;

    collection = outer;
    return own;
}

CUresult sim_submit(struct sim_op *op)
{
    struct sim_queue *queue = op->queue;

    if (collection.is_open) {
        collection.ops = realloc(collection.ops, (collection.count + 1) * sizeof(struct sim_op *));
        collection.ops[collection.count++] = op;
        return CUDA_SUCCESS;
    }
    CUresult result = sim_capture_refuse_implicit(queue);

    if (result == CUDA_SUCCESS && queue->capture != NULL) {
        /* Nothing that does anything comes here; see sim_work_submit. */
        struct sim_work nothing = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
        result = sim_capture_work(queue, &nothing);
        sim_op_drop(op);
        return result;
    }
    if (result != CUDA_SUCCESS) {
        sim_op_drop(op);
        return result;
    }
    struct CUctx_st *context = queue->context;
    sim_enqueue(op);
    return context->sticky;
}

struct CUstream_st *sim_stream_create(struct CUctx_st *context, struct sim_queue *queue,
                                      unsigned flags, int priority)
{
    struct CUstream_st *stream = free_handles;

    if (stream != NULL) {
        free_handles = stream->next;
    } else {
        stream = calloc(1, sizeof(*stream));
    }
    stream->magic = STREAM_MAGIC;
    stream->flags = flags;
    stream->priority = priority > 0                                           ? 0
                       : priority < -5 && !SIM_DEFECT(priorities_have_no_end) ? -5
                                                                              : priority;
    stream->context = context;
    stream->queue = queue;
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

/* With a green context current, the stream is one of its. */
CUresult sim_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (phStream == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUgreenCtx_st *green = sim_green_of_view(sim_context_current());
    bool is_nonblocking = (flags & CU_STREAM_NON_BLOCKING) != 0 && !SIM_DEFECT(all_streams_block);
    struct sim_queue *queue = green != NULL ? sim_green_queue(green)
                                            : sim_queue_create(context, is_nonblocking, false);
    *phStream = sim_stream_create(context, queue, flags, priority);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return sim_cuStreamCreateWithPriority(phStream, Flags, 0);
}

static void release(struct CUstream_st *stream)
{
    struct CUstream_st **link = &stream->context->streams;

    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    stream->magic = 0;
    stream->next = free_handles;
    free_handles = stream;
}

CUresult sim_cuStreamDestroy_v2(CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && sim_stream_of(hStream) == NULL) {
        result = CUDA_ERROR_INVALID_HANDLE;
    }
    if (result == CUDA_SUCCESS) {
        sim_capture_drop(queue);
        release(hStream);
        sim_queue_orphan(queue);
    }
    return result;
}

void sim_stream_forget_context(struct CUctx_st *context)
{
    while (context->streams != NULL) {
        release(context->streams);
    }
}

CUresult sim_cuStreamSynchronize(CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_queue(queue);
    }
    if (result == CUDA_SUCCESS) {
        struct CUctx_st *context = queue->context;
        sim_wait_queue(queue);
        sim_pool_settle(context->device);
        result = context->sticky;
    }
    return result;
}

CUresult sim_cuStreamQuery(CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_queue(queue);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    sim_query_progress();
    if (!(queue->is_legacy ? sim_queue_is_idle(queue) : sim_queue_is_done(queue))) {
        return SIM_DEFECT(queries_always_succeed) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    }
    sim_queue_join(queue, &sim_host_clock);
    return queue->context->sticky;
}

CUresult sim_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && streamId == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *streamId = queue->id;
    }
    return result;
}

CUresult sim_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && pctx == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *pctx = queue->green != NULL ? &queue->green->view : queue->context;
    }
    return result;
}

CUresult sim_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && device == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *device = queue->context->device;
    }
    return result;
}

CUresult sim_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && flags == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *flags = sim_stream_of(hStream) != NULL ? hStream->flags : 0;
    }
    return result;
}

CUresult sim_cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && priority == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *priority = sim_stream_of(hStream) != NULL ? hStream->priority : 0;
    }
    return result;
}

/* Attributes are hints; nothing here looks at them. */
CUresult sim_cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                  const CUstreamAttrValue *value)
{
    struct sim_queue *queue;

    (void)attr;
    (void)value;
    return sim_enter_stream(hStream, &queue);
}

CUresult sim_cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr,
                                  CUstreamAttrValue *value_out)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && value_out == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        memset(value_out, 0, sizeof(*value_out));
        if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY && sim_stream_of(hStream) != NULL) {
            value_out->priority = hStream->priority;
        }
    }
    return result;
}

CUresult sim_cuStreamCopyAttributes(CUstream dst, CUstream src)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(src, &queue);

    return result == CUDA_SUCCESS ? sim_enter_stream(dst, &queue) : result;
}

CUresult sim_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                    unsigned int flags)
{
    struct sim_queue *queue;

    (void)dptr;
    (void)length;
    (void)flags;
    return sim_enter_stream(hStream, &queue);
}
