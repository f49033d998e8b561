/* SPDX-License-Identifier: MIT */
/* What the program does besides allocating and freeing, as far as it matters here: waits, captures,
 * streams that end, questions about addresses and free memory, and what ends caching. */
#include "alloc/allocator.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/capture.h"
#include "alloc/collect.h"
#include "alloc/device_call.h"
#include "alloc/expandable.h"
#include "alloc/fence.h"
#include "alloc/look_up.h"
#include "alloc/release.h"
#include "alloc/siblings.h"
#include "alloc/stream_use.h"
#include "alloc/verify.h"

bool cca_allocator_stop(struct cca_allocator *allocator)
{
    bool is_first = !atomic_exchange(&allocator->is_stopped, true);
    if (is_first) {
        /* What streams hold becomes READY behind this moment. Nothing is given back here: the
         * driver's free may wait, and the call that ended caching does not. */
        CCA_EACH_HEAP (heap, allocator) {
            cca_lock_take(&heap->lock);
            if (heap->state == CCA_HEAP_UP) {
                cca_fence_rekey(heap, CCA_KEY_READY);
            }
            cca_lock_drop(&heap->lock);
        }
    }
    return is_first;
}

void cca_allocator_capture_begins(struct cca_allocator *allocator)
{
    cca_gate_close(&allocator->gate);
}

void cca_allocator_capture_ends(struct cca_allocator *allocator)
{
    cca_gate_open(&allocator->gate);
}

bool cca_allocator_is_stopped(const struct cca_allocator *allocator)
{
    return atomic_load(&allocator->is_stopped);
}

void cca_allocator_record_stream(struct cca_allocator *allocator, uint64_t addr, cca_key stream)
{
    struct cca_heap *heap;
    struct cca_block *block = cca_look_up_block(allocator, addr, &heap);
    if (block == NULL) {
        return;
    }
    /* Only graph memory: other blocks may be used by work that runs while another stream is being
     * captured. */
    bool in_capture = heap->captures > 0 && block->segment->pool != NULL;
    if (in_capture) {
        in_capture = cca_capture_takes_part(heap, stream);
    }
    bool is_cached = block->state == CCA_BLOCK_LIVE && !block->segment->is_passed;
    if (block->addr == addr && is_cached) { /* asking drops the lock */
        cca_stream_use_record(heap, block, stream, in_capture);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}

void cca_allocator_stream_ends(struct cca_allocator *allocator, struct cca_heap *heap,
                               cca_key stream)
{
    (void)allocator;
    if (heap->device.ops->stream_ends != NULL) {
        heap->device.ops->stream_ends(heap->device.self, stream);
    }
    cca_lock_take(&heap->lock);
    if (heap->state == CCA_HEAP_UP && cca_heap_holds_key(heap, stream)) {
        cca_fence_rekey(heap, stream);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}

uint64_t cca_allocator_sync_mark(struct cca_allocator *allocator, struct cca_heap *heap)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    uint64_t mark = heap->frees + 1;
    cca_lock_drop(&heap->lock);
    return mark;
}

void cca_allocator_synchronized(struct cca_allocator *allocator, struct cca_heap *heap, cca_key key,
                                uint64_t mark)
{
    cca_lock_take(&heap->lock);
    uint64_t generation = heap->generation;
    if (heap->state == CCA_HEAP_UP) {
        cca_fence_synchronized(heap, key, mark);
        cca_fence_poll(heap, CCA_FENCE_ALL);
        cca_stream_use_poll(heap);
    }
    /* What other threads have submitted since is not over, and the driver's free would wait. */
    if (heap->generation != generation) {
        /* nothing is left */
    } else if (cca_allocator_is_serving(allocator)) {
        cca_collect_over_limit(heap, false);
    } else if (key == CCA_KEY_READY && cca_release_is_idle(heap)) {
        cca_release_ready(heap);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}

void cca_allocator_make_room(struct cca_allocator *allocator, struct cca_heap *heap, size_t bytes)
{
    size_t free_bytes = 0, total_bytes = 0;
    cca_lock_take(&heap->lock);
    size_t idle_bytes = heap->pools[0].whole_bytes + heap->pools[1].whole_bytes;
    bool has_pending = cca_fence_is_awaited(heap);
    struct cca_device device = heap->device;
    cca_lock_drop(&heap->lock);
    if ((idle_bytes == 0 && !has_pending) ||
        device.ops->mem_info(device.self, &free_bytes, &total_bytes).kind != CCA_OK) {
        return;
    }
    /* What is free may be cut up. Where the driver's free waits only what would surely fail does.
     */
    size_t enough = device.has_context_events && bytes < SIZE_MAX / 2 ? 2 * bytes : bytes;
    if (free_bytes < enough) {
        (void)cca_allocator_release_idle(allocator, heap);
    }
}

void cca_allocator_poll(struct cca_allocator *allocator, struct cca_heap *heap)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    cca_fence_poll(heap, CCA_FENCE_ALL);
    cca_stream_use_poll(heap);
    cca_collect_over_limit(heap, false);
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}

void cca_allocator_adjust_mem_info(struct cca_allocator *allocator, struct cca_heap *heap,
                                   size_t *free_bytes, size_t total_bytes)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    cca_fence_poll(heap, CCA_FENCE_ALL); /* what is over counts as free */
    const struct cca_stats *stats = &cca_heap_open_accounts(heap)->stats;
    size_t allocated = (size_t)stats->allocated_bytes[CCA_STAT_ALL].current;
    cca_heap_close_accounts(heap);
    size_t limit = heap->limit_bytes;
    cca_lock_drop(&heap->lock);
    size_t cached = cca_siblings_releasable(heap);
    size_t most = total_bytes;
    if (limit != CCA_NO_LIMIT) {
        size_t left = limit > allocated ? limit - allocated : 0;
        most = left < most ? left : most;
    }
    size_t sum = *free_bytes + cached;
    *free_bytes = sum < most ? sum : most;
}

int cca_allocator_owns_try(struct cca_allocator *allocator, uint64_t addr)
{
    uint64_t start;
    size_t bytes;
    if (!cca_lock_try(&allocator->segments.lock)) {
        return -1;
    }
    bool is_ours = cca_segment_map_find_locked(&allocator->segments, addr, &start, &bytes);
    cca_lock_drop(&allocator->segments.lock);
    return is_ours;
}

void cca_allocator_event_pool(struct cca_allocator *allocator, int ordinal,
                              const struct cca_event *event, uint64_t id_out[2])
{
    struct cca_heap *heap = event->pool == 0 || allocator == NULL
                                ? NULL
                                : atomic_load(&allocator->heaps[ordinal]);
    const struct cca_pool_row *row = heap == NULL
                                         ? NULL
                                         : cca_pool_table_row(&heap->observer.pools, event->pool);
    id_out[0] = row == NULL ? 0 : row->id[0];
    id_out[1] = row == NULL ? 0 : row->id[1];
}

void cca_allocator_event_totals(struct cca_allocator *allocator, int ordinal,
                                uint64_t *allocated_out, uint64_t *reserved_out)
{
    const struct cca_heap *heap = allocator == NULL ? NULL
                                                    : atomic_load(&allocator->heaps[ordinal]);

    if (heap != NULL) {
        const struct cca_stats *stats = &heap->observer.stats;
        *allocated_out = (uint64_t)stats->allocated_bytes[CCA_STAT_ALL].current;
        *reserved_out = (uint64_t)stats->reserved_bytes[CCA_STAT_ALL].current;
    }
}

static void note_peer(struct cca_allocator *allocator, int ordinal, int other)
{
    uint64_t bit = 1ull << other;
    if ((atomic_fetch_or(&allocator->peers[ordinal], bit) & bit) != 0) {
        return;
    }
    CCA_EACH_HEAP (heap, allocator) {
        cca_lock_take(&heap->lock);
        if (heap->state == CCA_HEAP_UP && heap->device.ordinal == ordinal) {
            cca_expandable_open_to(heap, other);
        }
        cca_lock_drop(&heap->lock);
    }
}

void cca_allocator_note_peers(struct cca_allocator *allocator, int ordinal, int other)
{
    if (ordinal >= 0 && ordinal < CCA_DEVICES_MAX && other >= 0 && other < CCA_DEVICES_MAX) {
        note_peer(allocator, ordinal, other);
        note_peer(allocator, other, ordinal);
    }
}

bool cca_allocator_dedicate(struct cca_allocator *allocator)
{
    return !atomic_exchange(&allocator->gives_dedicated, true);
}

size_t cca_allocator_release_idle(struct cca_allocator *allocator, struct cca_heap *heap)
{
    (void)allocator;
    return cca_siblings_release(heap, true);
}

void cca_allocator_empty_cache(struct cca_allocator *allocator)
{
    if (cca_gate_is_closed(&allocator->gate)) {
        return;
    }
    CCA_EACH_HEAP (heap, allocator) {
        if (heap->accounts == heap) {
            (void)cca_siblings_release(heap, true);
        }
    }
}

int cca_allocator_device_memory(struct cca_allocator *allocator, int ordinal, unsigned wait_ms,
                                size_t *free_out, size_t *total_out)
{
    struct cca_heap *heap = cca_allocator_some_heap_of_device(allocator, ordinal);
    if (heap == NULL) {
        return -ENODEV;
    }
    if (!cca_lock_take_urgent_within(&heap->lock, wait_ms)) {
        return -EBUSY;
    }
    int rc = -ENODEV;
    if (heap->state == CCA_HEAP_UP && cca_device_call_begin(heap)) {
        uint64_t generation = heap->generation;
        int depth = cca_heap_step_out(heap);
        struct cca_status status = heap->device.ops->mem_info(heap->device.self, free_out,
                                                              total_out);
        cca_device_call_end(heap);
        cca_heap_step_in(heap, depth);
        rc = status.kind == CCA_OK && heap->generation == generation ? 0 : -EIO;
    }
    cca_lock_drop(&heap->lock);
    return rc;
}
