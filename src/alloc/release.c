/* SPDX-License-Identifier: MIT */
#include "alloc/release.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/expandable.h"
#include "alloc/private_pool.h"
#include "alloc/stream_use.h"
#include "base/clock.h"

/* Frees memory of one generation; a context that is gone has taken it along. True when the context
 * turns out to have failed. A free that fails otherwise leaves the memory out of our books all the
 * same. The lock is dropped meanwhile. */
static bool free_memory(struct cca_heap *heap, uint64_t addr, uint64_t generation)
{
    struct cca_status status = cca_status_ok();
    int depth = cca_heap_step_out(heap);
    if (cca_device_call_begin(heap)) {
        if (atomic_load(&heap->generation) == generation) {
            status = heap->device.ops->mem_free(heap->device.self, addr);
        }
        cca_device_call_end(heap);
    }
    cca_heap_step_in(heap, depth);
    return status.kind == CCA_FATAL;
}

size_t cca_release_detached(struct cca_heap *heap, struct cca_detached *detached)
{
    size_t bytes = 0;
    uint64_t generation = heap->generation;
    CCA_LIST_EACH (link, &detached->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        uint64_t began_ns = cca_clock_ns();
        bytes += segment->bytes;
        if (free_memory(heap, segment->addr, generation) && heap->generation == generation) {
            heap->state = CCA_HEAP_DEAD;
        }
        cca_heap_forget_segment(heap, segment, cca_clock_ns() - began_ns);
    }
    return bytes + cca_expandable_unmap(heap, &detached->pages);
}

bool cca_release_is_allowed(const struct cca_heap *heap)
{
    return heap->state == CCA_HEAP_UP && heap->captures == 0 &&
           !cca_gate_is_closed(&heap->allocator->gate);
}

/* Of one private pool, or with NULL of all. */
static size_t release_before(struct cca_heap *heap, struct cca_private_pool *only,
                             uint64_t before_seq)
{
    struct cca_detached detached;
    cca_heap_detached_init(&detached);
    if (!cca_release_is_allowed(heap)) {
        return 0;
    }
    if (only != NULL) {
        cca_heap_detach_pool(heap, only, before_seq, cca_clock_ns(), &detached);
    } else {
        cca_heap_detach_releasable(heap, before_seq, cca_clock_ns(), &detached);
    }
    return cca_release_detached(heap, &detached);
}

bool cca_release_is_idle(struct cca_heap *heap)
{
    uint64_t generation = heap->generation;
    if (!heap->rekeys) {
        return true;
    }
    struct cca_proof proof = cca_fence_prove(heap);
    if (proof.id != 0 && heap->generation == generation) {
        cca_fence_poll(heap, CCA_FENCE_ALL);
    }
    return heap->generation == generation && cca_fence_is_proven(heap, &proof);
}

size_t cca_release_ready(struct cca_heap *heap)
{
    return release_before(heap, NULL, 0);
}

size_t cca_release_beside_capture(struct cca_heap *heap)
{
    struct cca_detached detached;
    cca_heap_detached_init(&detached);
    if (heap->state != CCA_HEAP_UP || heap->captures > 0 || !heap->rekeys) {
        return 0;
    }
    cca_fence_detach_set_aside(heap, cca_clock_ns(), &detached);
    cca_heap_detach_releasable(heap, 0, cca_clock_ns(), &detached);
    return cca_release_detached(heap, &detached);
}

void cca_release_over_cap(struct cca_heap *heap)
{
    uint64_t generation = heap->generation;
    size_t left = heap->aside_left_bytes < heap->pending_bytes ? heap->aside_left_bytes : 0;
    if (heap->pending_bytes - left > heap->pending_max_bytes / 4) {
        cca_release_beside_capture(heap);
        if (heap->generation == generation) {
            heap->aside_left_bytes = heap->pending_bytes;
        }
    }
}

void cca_release_poll(struct cca_heap *heap)
{
    cca_fence_poll(heap, CCA_FENCE_ALL);
    cca_stream_use_poll(heap);
}

size_t cca_release_proven(struct cca_heap *heap, struct cca_private_pool *only,
                          const struct cca_proof *proof)
{
    if (!heap->rekeys) {
        return release_before(heap, only, UINT64_MAX);
    }
    if (cca_fence_is_proven(heap, proof)) {
        return release_before(heap, only, proof->before_seq);
    }
    return heap->device.has_context_events ? 0 : release_before(heap, only, 0);
}

/* Waits at most so long for everything freed so far, then releases. */
static size_t release_after_waiting(struct cca_heap *heap, struct cca_private_pool *only,
                                    uint64_t wait_ms)
{
    if (heap->captures > 0) {
        return 0;
    }
    uint64_t generation = heap->generation, pause_us = 0;
    uint64_t deadline_ns = cca_clock_ns() + wait_ms * 1000000;
    cca_heap_report_plain(heap, CCA_EVENT_SYNC);
    struct cca_proof proof = cca_fence_prove(heap);
    while (proof.id != 0 && heap->generation == generation && heap->state == CCA_HEAP_UP) {
        cca_release_poll(heap);
        bool is_over = cca_fence_is_proven(heap, &proof) && cca_stream_use_is_idle(heap);
        if (is_over || cca_clock_ns() >= deadline_ns) {
            break;
        }
        cca_fence_pause(heap, &pause_us);
    }
    return heap->generation == generation ? cca_release_proven(heap, only, &proof) : 0;
}

size_t cca_release_waiting(struct cca_heap *heap, uint64_t wait_ms)
{
    return release_after_waiting(heap, NULL, wait_ms);
}

size_t cca_release_pool(struct cca_heap *heap, struct cca_private_pool *pool, uint64_t wait_ms)
{
    pool->holders++; /* the lock is dropped meanwhile */
    size_t bytes = pool->uses == 0 ? release_after_waiting(heap, pool, wait_ms) : 0;
    pool->holders--;
    cca_private_pool_sweep(heap);
    return bytes;
}
