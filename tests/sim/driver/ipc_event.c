/* SPDX-License-Identifier: MIT */
/* Events between processes: two counters in shared memory. Whoever waits for another process asks
 * again and again: on the thread of host functions for a stream, in the caller for the host. */
#include "call.h"
#include "event.h"
#include "share.h"
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HANDLE_MAGIC 0x4d454545u

/* done follows recorded. fd belongs to the process that made it. */
struct sim_shared_event {
    uint64_t recorded;
    uint64_t done;
    int32_t process;
    int32_t fd;
};

struct handle {
    uint32_t magic;
    struct sim_share share;
};

_Static_assert(sizeof(struct handle) <= sizeof(CUipcEventHandle), "a handle has 64 bytes");

/* What a waiting operation waits for. */
struct awaited {
    const struct sim_shared_event *shared;
    uint64_t number;
};

static uint64_t load(const uint64_t *value)
{
    return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

static void nap(void)
{
    const struct timespec moment = {0, 100000};

    nanosleep(&moment, NULL);
}

static void run_mark(struct sim_op *op)
{
    struct sim_shared_event *shared = op->data;

    if (load(&shared->done) < op->value) {
        __atomic_store_n(&shared->done, op->value, __ATOMIC_RELEASE);
    }
}

void sim_shared_event_record(struct CUevent_st *event, struct sim_op *mark)
{
    if (event->shared == NULL) {
        return;
    }
    event->own_record = __atomic_add_fetch(&event->shared->recorded, 1, __ATOMIC_ACQ_REL);
    mark->run = run_mark;
    mark->data = event->shared;
    mark->value = event->own_record;
}

bool sim_shared_event_is_foreign(const struct CUevent_st *event)
{
    return event->shared != NULL && load(&event->shared->recorded) != event->own_record;
}

bool sim_shared_event_is_done(const struct CUevent_st *event)
{
    return load(&event->shared->done) >= load(&event->shared->recorded);
}

static void run_wait(struct sim_op *op)
{
    const struct awaited *awaited = op->data;

    while (load(&awaited->shared->done) < awaited->number) {
        nap();
    }
}

static void drop_wait(struct sim_op *op)
{
    free(op->data);
}

struct sim_op *sim_shared_event_wait(const struct CUevent_st *event, struct sim_queue *queue)
{
    struct sim_op *op = sim_op_create(queue, "wait for another process");
    struct awaited *awaited = malloc(sizeof(*awaited));

    *awaited = (struct awaited){event->shared, load(&event->shared->recorded)};
    op->is_host_function = true;
    op->run = run_wait;
    op->drop = drop_wait;
    op->data = awaited;
    return op;
}

void sim_shared_event_synchronize(const struct CUevent_st *event)
{
    const struct sim_shared_event *shared = event->shared;
    uint64_t number = load(&shared->recorded);

    pthread_mutex_unlock(&sim_mutex);
    while (load(&shared->done) < number) {
        nap();
    }
    pthread_mutex_lock(&sim_mutex);
}

/* Nobody may open it any more. The counters stay mapped: operations may still look at them. */
void sim_shared_event_forget(struct CUevent_st *event)
{
    if (event->shared != NULL && event->shared->process == getpid()) {
        close(event->shared->fd);
    }
    event->shared = NULL;
    event->own_record = 0;
}

static bool share(struct CUevent_st *event)
{
    int fd;
    struct sim_shared_event *shared = sim_share_create(sizeof(*shared), &fd);

    if (shared == NULL) {
        return false;
    }
    shared->process = getpid();
    shared->fd = fd;
    event->shared = shared;
    if (event->mark != NULL) {
        /* The record that is there counts as the first. */
        shared->recorded = 1;
        shared->done = event->mark->state == SIM_OP_DONE;
        event->own_record = 1;
        if (shared->done == 0) {
            event->mark->run = run_mark;
            event->mark->data = shared;
            event->mark->value = 1;
        }
    }
    return true;
}

CUresult sim_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (event == NULL || event->magic != SIM_EVENT_MAGIC) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (pHandle == NULL || (event->flags & CU_EVENT_INTERPROCESS) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (event->shared == NULL && !share(event)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct handle handle = {.magic = HANDLE_MAGIC,
                            .share = {.process = event->shared->process,
                                      .fd = event->shared->fd,
                                      .file_bytes = sizeof(struct sim_shared_event)}};
    memset(pHandle, 0, sizeof(*pHandle));
    memcpy(pHandle, &handle, sizeof(handle));
    return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    struct CUctx_st *context;
    struct handle source;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    memcpy(&source, &handle, sizeof(source));
    if (phEvent == NULL || source.magic != HANDLE_MAGIC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (source.share.process == getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    struct sim_shared_event *shared = sim_share_open(&source.share);
    if (shared == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *phEvent = sim_event_create(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    (*phEvent)->shared = shared;
    return CUDA_SUCCESS;
}
