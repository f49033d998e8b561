/* SPDX-License-Identifier: MIT */
/* Frees that wait, as natively, and pauses between looks at the device. */
#include "alloc/fence.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/fence_marks.h"
#include "alloc/fence_parts.h"
#include "alloc/stream_use.h"
#include "base/clock.h"
#include "base/log.h"

enum { POLL_PAUSE_MIN_US = 20, POLL_PAUSE_MAX_US = 1000 };
#define CAP_WAIT_NS       (100ull * 1000 * 1000)
#define CAP_WINDOW_NS     (10ull * 1000 * 1000 * 1000)
#define CAP_PER_WINDOW_NS (1000ull * 1000 * 1000)

/* Waits for everything on the heap's context: what drivers without context events offer instead.
 * The lock is dropped meanwhile. */
static bool synchronize(struct cca_heap *heap)
{
    uint64_t generation = heap->generation, began_ns = cca_clock_ns();
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    /* The thread stays inside the library: a signal handler that began a capture here would wait
     * for the gate that this very thread holds. */
    cca_lock_drop(&heap->lock);
    if (cca_gate_enter(&heap->allocator->gate)) {
        status = heap->device.ops->synchronize(heap->device.self);
        cca_gate_leave(&heap->allocator->gate);
    }
    cca_lock_take(&heap->lock);
    if (heap->generation != generation) {
        return false;
    }
    cca_fence_report(heap, CCA_EVENT_FREE_WAITED, cca_clock_ns() - began_ns);
    if (status.kind == CCA_FATAL) {
        heap->state = CCA_HEAP_DEAD;
    }
    return status.kind == CCA_OK;
}

void cca_fence_wait_for_context(struct cca_heap *heap, struct cca_block *block)
{
    uint64_t generation = heap->generation, mark;
    cca_fence_set_aside(heap, block, true);
    mark = heap->frees + 1;
    if (synchronize(heap) && heap->generation == generation) {
        cca_fence_synchronized(heap, CCA_KEY_READY, mark);
    }
}

/* No mark could be made. The free still waits, as natively, unless a capture forbids it. */
static void wait_unmarked(struct cca_heap *heap, struct cca_block *block)
{
    uint64_t generation = heap->generation;
    cca_fence_set_aside(heap, block, true);
    uint64_t mark = heap->frees + 1;
    if (!cca_gate_is_closed(&heap->allocator->gate) && heap->state == CCA_HEAP_UP &&
        synchronize(heap) && heap->generation == generation && cca_fence_is_alone(heap)) {
        cca_fence_complete_set_aside(heap, mark);
    }
}

/* As the native free, waits for the heap's own context and for every other that ever had peer
 * access with it. `done_out`: the marks that are over. No lock held. */
static struct cca_status wait_for_marks(struct cca_heap *heap, const struct cca_fence *fence,
                                        uint64_t marks, uint64_t *done_out)
{
    struct cca_allocator *allocator = heap->allocator;
    uint64_t peers = atomic_load(&allocator->peers[cca_allocator_ordinal(heap)]);
    struct cca_status own_status = cca_status_ok();
    for (uint64_t todo = marks; todo != 0; todo &= todo - 1) {
        int slot = __builtin_ctzll(todo);
        struct cca_heap *other = atomic_load(&allocator->heaps[slot]);
        if (other != heap && (peers >> cca_allocator_ordinal(other) & 1) == 0) {
            continue;
        }
        if (!cca_fence_has_event(fence, slot, atomic_load(&other->generation))) {
            continue; /* the context is gone, and its work with it: the query will say so */
        }
        struct cca_status status = other->device.ops->event_wait(other->device.self,
                                                                 fence->events[slot].event);
        *done_out |= status.kind == CCA_OK ? 1ull << slot : 0;
        own_status = other == heap ? status : own_status;
    }
    return own_status;
}

/* A fence of its own for one block: recorded, waited for on the block's own context, and complete
 * when no other context has work left from before. */
void cca_fence_wait_for_block(struct cca_heap *heap, struct cca_block *block)
{
    uint64_t generation = heap->generation, began_ns = cca_clock_ns();
    bool is_blind = cca_fence_is_blind(heap);
    struct cca_fence *fence = cca_fence_take(heap);
    enum cca_fence_record_result result = fence == NULL ? CCA_FENCE_NOT_POSSIBLE
                                                        : cca_fence_record(heap, fence, true);
    if (heap->generation != generation) {
        return;
    }
    if (result != CCA_FENCE_RECORDED) {
        if (fence != NULL) {
            cca_fence_give(heap, fence);
        }
        wait_unmarked(heap, block);
        return;
    }
    uint64_t marks = fence->marks, done = 0;
    fence->recorders++;
    int depth = cca_heap_step_out(heap);
    struct cca_status status = wait_for_marks(heap, fence, marks, &done);
    cca_heap_step_in(heap, depth);
    if (heap->generation != generation) {
        return;
    }
    fence->recorders--;
    cca_fence_report(heap, CCA_EVENT_FREE_WAITED, cca_clock_ns() - began_ns);
    if (is_blind) {
        cca_fence_give(heap, fence);
        cca_fence_set_aside(heap, block, true);
        heap->state = status.kind == CCA_FATAL ? CCA_HEAP_DEAD : heap->state;
        return;
    }
    cca_fence_append(fence, block);
    cca_fence_enqueue(heap, fence);
    fence->marks &= ~done;
    if (status.kind == CCA_FATAL) {
        heap->state = CCA_HEAP_DEAD;
        return;
    }
    fence->recorders++;
    bool is_over = cca_fence_query(heap, fence);
    if (heap->generation != generation) {
        return;
    }
    fence->recorders--;
    if (is_over) {
        cca_fence_complete(heap, fence);
    }
}

void cca_fence_pause(struct cca_heap *heap, uint64_t *pause_us)
{
    *pause_us = *pause_us == 0                      ? POLL_PAUSE_MIN_US
                : *pause_us * 2 > POLL_PAUSE_MAX_US ? POLL_PAUSE_MAX_US
                                                    : *pause_us * 2;
    int depth = cca_heap_step_out(heap);
    cca_clock_sleep_us(*pause_us);
    cca_heap_step_in(heap, depth);
}

/* Writing may block, so not under the lock. */
static void say_over_cap(struct cca_heap *heap)
{
    static int said;
    size_t most = heap->pending_max_bytes;
    int depth = cca_heap_step_out(heap);
    cca_log_once(&said, CCA_LOG_WARN,
                 "more freed memory waits for the device than CCA_PENDING_MAX allows (%zu bytes); "
                 "going on without it",
                 most);
    cca_heap_step_in(heap, depth);
}

void cca_fence_hold_cap(struct cca_heap *heap)
{
    uint64_t now_ns = cca_clock_ns(), generation = heap->generation;
    if (now_ns - heap->cap_window_start_ns > CAP_WINDOW_NS) {
        heap->cap_window_start_ns = now_ns;
        heap->cap_waited_ns = 0;
    }
    uint64_t deadline_ns = now_ns + CAP_WAIT_NS, pause_us = 0;
    while (heap->pending_bytes > heap->pending_max_bytes && now_ns < deadline_ns &&
           heap->cap_waited_ns < CAP_PER_WINDOW_NS) {
        cca_fence_poll(heap, CCA_FENCE_ALL);
        cca_stream_use_poll(heap);
        if (heap->generation != generation || heap->state != CCA_HEAP_UP ||
            heap->pending_bytes <= heap->pending_max_bytes) {
            return;
        }
        cca_fence_pause(heap, &pause_us);
        uint64_t then_ns = now_ns;
        now_ns = cca_clock_ns();
        heap->cap_waited_ns += now_ns - then_ns;
    }
    if (heap->pending_bytes > heap->pending_max_bytes) {
        say_over_cap(heap);
    }
}
