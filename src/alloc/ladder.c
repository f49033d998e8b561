/* SPDX-License-Identifier: MIT */
#include "alloc/ladder.h"

#include "alloc/allocator_internal.h"
#include "alloc/collect.h"
#include "alloc/device_call.h"
#include "alloc/fence.h"
#include "alloc/growth.h"
#include "alloc/release.h"
#include "alloc/siblings.h"
#include "alloc/stream_use.h"
#include "base/clock.h"

/* Polls, within the time allowed, until a fence gives back a block that fits, which is returned, or
 * everything freed so far is over. */
static struct cca_block *wait_for_block(struct cca_heap *heap, const struct cca_request *request,
                                        size_t rounded, const struct cca_proof *proof)
{
    const struct cca_policy *policy = &heap->allocator->policy;
    uint64_t generation = heap->generation, pause_us = 0;
    uint64_t deadline_ns = cca_clock_ns() + heap->allocator->config->oom_wait_ms * 1000000;
    for (;;) {
        cca_release_poll(heap);
        if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
            return NULL;
        }
        /* In stream order what became free goes back before it is looked at, as in PyTorch. */
        struct cca_block *block = heap->rekeys ? cca_heap_take_cached(heap, policy, request,
                                                                      rounded, cca_clock_ns())
                                               : NULL;
        bool is_over = (cca_fence_is_proven(heap, proof) ||
                        (proof->id == 0 && cca_list_is_empty(&heap->fences))) &&
                       cca_stream_use_is_idle(heap);
        if (block != NULL || (is_over && heap->releases_in_flight == 0) ||
            cca_clock_ns() >= deadline_ns) {
            return block;
        }
        if (is_over) {
            /* Another thread is giving memory back: what we ask for may be there in a moment. */
            cca_release_proven(heap, NULL, proof);
        }
        cca_fence_pause(heap, &pause_us);
        if (heap->generation != generation) {
            return NULL;
        }
    }
}

/* Waits for what was freed, then releases all that is free and looks once more. */
static struct cca_block *wait_and_release(struct cca_heap *heap, const struct cca_request *request,
                                          size_t rounded)
{
    uint64_t generation = heap->generation;
    bool is_beside_capture = heap->rekeys && cca_gate_is_closed(&heap->allocator->gate);
    cca_heap_report_plain(heap, CCA_EVENT_SYNC);
    struct cca_proof proof = cca_fence_prove(heap);
    if (heap->generation != generation) {
        return NULL;
    }
    heap->queries_beside_capture += is_beside_capture;
    struct cca_block *block = wait_for_block(heap, request, rounded, &proof);
    heap->queries_beside_capture -= is_beside_capture;
    if (block != NULL || heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return block;
    }
    if (is_beside_capture) {
        cca_release_beside_capture(heap);
    } else {
        cca_release_proven(heap, NULL, &proof);
    }
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return NULL;
    }
    return cca_heap_take_cached(heap, &heap->allocator->policy, request, rounded, cca_clock_ns());
}

/* With the lock dropped. */
static void tell_observers(struct cca_heap *heap, size_t rounded, size_t free_bytes,
                           bool is_rejection)
{
    struct cca_oom_info info = {
        .ordinal = heap->device.ordinal,
        .is_rejection = is_rejection,
        .bytes = cca_policy_segment_bytes(&heap->allocator->policy, rounded),
        .limit_bytes = heap->limit_bytes != CCA_NO_LIMIT ? heap->limit_bytes : heap->total_bytes,
        .reserved_bytes = heap->reserved_bytes,
        .free_bytes = free_bytes,
        .total_bytes = heap->total_bytes,
    };
    int depth = cca_heap_step_out(heap);
    cca_callbacks_tell_oom(&heap->allocator->callbacks, &info);
    cca_heap_step_in(heap, depth);
}

static void report_oom(struct cca_heap *heap, const struct cca_request *request, size_t rounded)
{
    uint64_t generation = heap->generation;
    size_t free_bytes = 0, total_bytes = 0;
    int depth = cca_heap_step_out(heap);
    heap->device.ops->mem_info(heap->device.self, &free_bytes, &total_bytes);
    cca_heap_step_in(heap, depth);
    if (heap->generation != generation) {
        return;
    }
    struct cca_event event = cca_heap_event(CCA_EVENT_OOM, request, cca_clock_ns());
    event.addr = free_bytes;
    event.requested_bytes = event.block_bytes = rounded;
    cca_heap_report(heap, &event);
    tell_observers(heap, rounded, free_bytes, false);
}

static struct cca_status give_up(struct cca_heap *heap, const struct cca_request *request,
                                 size_t rounded, struct cca_status status)
{
    if (heap->state == CCA_HEAP_DEAD) {
        return (struct cca_status){CCA_FATAL, status.raw};
    }
    if (heap->state != CCA_HEAP_UP || status.kind != CCA_NO_MEMORY) {
        return status.kind == CCA_FATAL ? status : (struct cca_status){CCA_UNSUPPORTED, status.raw};
    }
    report_oom(heap, request, rounded);
    return status;
}

struct cca_status cca_ladder_climb(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded, struct cca_block **block_out)
{
    uint64_t generation = heap->generation;
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    if (cca_fence_reclaim(heap)) {
        *block_out = cca_heap_take_cached(heap, &heap->allocator->policy, request, rounded,
                                          cca_clock_ns());
        if (*block_out != NULL) {
            return cca_status_ok();
        }
    }
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return give_up(heap, request, rounded, status);
    }
    cca_collect_old(heap);
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return give_up(heap, request, rounded, status);
    }
    if (heap->allocator->settings.oom_reject &&
        cca_growth_is_over_limit(heap,
                                 cca_policy_segment_bytes(&heap->allocator->policy, rounded))) {
        cca_heap_report_plain(heap, CCA_EVENT_REJECT);
        tell_observers(heap, rounded, 0, true);
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    status = cca_growth_usual(heap, request, rounded, block_out);
    if (status.kind != CCA_NO_MEMORY || heap->generation != generation) {
        return status.kind == CCA_OK ? status : give_up(heap, request, rounded, status);
    }
    if (request->pool == NULL) {
        *block_out = cca_heap_borrow(heap, &heap->allocator->policy, request, rounded,
                                     cca_clock_ns());
        if (*block_out != NULL) {
            return cca_status_ok();
        }
    }
    if (heap->captures > 0) {
        return give_up(heap, request, rounded, status);
    }
    if (heap->rekeys && heap->device_bytes != 0 && rounded > heap->device_bytes) {
        return give_up(heap, request, rounded, status); /* nothing given back could make room */
    }
    if (cca_collect_oversize(heap, request, rounded) && heap->generation == generation) {
        status = cca_growth_usual(heap, request, rounded, block_out);
        if (status.kind != CCA_NO_MEMORY || heap->generation != generation) {
            return status.kind == CCA_OK ? status : give_up(heap, request, rounded, status);
        }
    }
    *block_out = wait_and_release(heap, request, rounded);
    if (*block_out != NULL) {
        return cca_status_ok();
    }
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return give_up(heap, request, rounded, (struct cca_status){CCA_UNSUPPORTED, 0});
    }
    cca_siblings_release_unlocked(heap);
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return give_up(heap, request, rounded, (struct cca_status){CCA_UNSUPPORTED, 0});
    }
    cca_heap_report_plain(heap, CCA_EVENT_RETRY);
    status = cca_growth_usual(heap, request, rounded, block_out);
    if (status.kind == CCA_NO_MEMORY && heap->generation == generation) {
        status = cca_growth_exact(heap, request, rounded, block_out);
    }
    return status.kind == CCA_OK ? status : give_up(heap, request, rounded, status);
}
