/* SPDX-License-Identifier: MIT */
#include "preload/ending.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/reentry.h"
#include "device/cuda_table.h"
#include "preload/context.h"
#include "preload/original.h"

/* How long one waits for another: that one may be inside a driver that waits itself. */
#define WAIT_MAX_NS UINT64_C(1000000000)

/* Threads that look for contexts, and threads that end some: these keep those off, and wait until
 * none is under way. */
static atomic_int finders, enders;
static atomic_int holders[CCA_DEVICES_MAX];

static bool becomes_zero(atomic_int *count)
{
    uint64_t start_ns = cca_clock_ns();
    while (atomic_load(count) != 0) {
        if (cca_clock_ns() - start_ns >= WAIT_MAX_NS) {
            return false;
        }
        cca_clock_sleep_us(20);
    }
    return true;
}

/* Nothing was counted, or not in this process, where a fork lies in between. */
static void count_down(atomic_int *count)
{
    int value = atomic_load(count);
    while (value > 0 && !atomic_compare_exchange_weak(count, &value, value - 1)) {
    }
}

/* The threads that were counted are the parent's. */
static void forget_threads(void)
{
    atomic_store(&finders, 0);
    atomic_store(&enders, 0);
    for (int device = 0; device < CCA_DEVICES_MAX; device++) {
        atomic_store(&holders[device], 0);
    }
}

void cca_ending_load(void)
{
    /* Without room for handlers a forked child may find no contexts of others. */
    (void)pthread_atfork(NULL, NULL, forget_threads);
}

void cca_ending_begins(void)
{
    if (cca_process_is_active()) {
        struct cca_allocator *allocator = cca_process_allocator();
        if (allocator != NULL) {
            cca_allocator_blind(allocator, true);
        }
        atomic_fetch_add(&enders, 1);
        /* A signal handler may have interrupted this very thread in there. */
        if (!cca_reentry_inside()) {
            (void)becomes_zero(&finders);
        }
    }
}

void cca_ending_over(void)
{
    struct cca_allocator *allocator = cca_process_allocator();
    count_down(&enders);
    if (allocator == NULL) {
        return;
    }
    /* What has come up meanwhile is found before anything counts as complete again. */
    if (cca_process_is_active() && cca_reentry_enter()) {
        cca_context_find_others();
        cca_reentry_leave();
    }
    cca_allocator_blind(allocator, false);
}

bool cca_ending_look_begins(void)
{
    /* Asked before, too: or else those who look could keep an end waiting by turns. */
    if (atomic_load(&enders) != 0) {
        return false;
    }
    atomic_fetch_add(&finders, 1);
    if (atomic_load(&enders) == 0) {
        return true;
    }
    cca_ending_look_over();
    return false;
}

void cca_ending_look_over(void)
{
    count_down(&finders);
}

struct cca_life cca_ending_life(int device)
{
    const struct cca_cuda_table *table = cca_original_table();
    struct cca_allocator *allocator = cca_process_allocator();
    struct cca_heap *heap = allocator != NULL ? cca_allocator_heap_of_device(allocator, device)
                                              : NULL;
    struct cca_life life = {.context = heap != NULL ? cca_heap_context(heap) : 0};
    CUcontext ctx = (CUcontext)(uintptr_t)life.context;
    life.has_id = ctx != NULL && table != NULL && table->ctx_get_id != NULL &&
                  table->ctx_get_id(ctx, &life.id) == CUDA_SUCCESS;
    return life;
}

bool cca_ending_has_ended(int device, const struct cca_life *life)
{
    if (!cca_context_primary_is_up(device)) {
        return true;
    }
    if (!life->has_id) {
        return false;
    }
    unsigned long long id = 0;
    CUcontext ctx = (CUcontext)(uintptr_t)life->context;
    CUresult result = cca_original_table()->ctx_get_id(ctx, &id);
    /* Other errors are those of earlier work. */
    return result == CUDA_SUCCESS
               ? id != life->id
               : result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static bool is_device(int device)
{
    return device >= 0 && device < CCA_DEVICES_MAX;
}

void cca_ending_hold(int device)
{
    if (is_device(device) && cca_process_is_active()) {
        atomic_fetch_add(&holders[device], 1);
    }
}

void cca_ending_let_go(int device)
{
    if (is_device(device)) {
        count_down(&holders[device]);
    }
}

bool cca_ending_is_held(int device)
{
    return is_device(device) && atomic_load(&holders[device]) != 0;
}

bool cca_ending_wait(int device)
{
    return !cca_ending_is_held(device) || becomes_zero(&holders[device]);
}
