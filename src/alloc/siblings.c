/* SPDX-License-Identifier: MIT */
#include "alloc/siblings.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/release.h"
#include "alloc/verify.h"

/* Heap lock held. */
static bool has_siblings(const struct cca_heap *heap)
{
    return heap->accounts != heap || heap->has_guests;
}

size_t cca_siblings_reserved(struct cca_heap *heap)
{
    size_t bytes = heap->reserved_bytes;
    if (CCA_UNLIKELY(has_siblings(heap))) {
        const struct cca_stats *stats = &cca_heap_open_accounts(heap)->stats;
        bytes = (size_t)stats->reserved_bytes[CCA_STAT_ALL].current + heap->in_flight_bytes;
        cca_heap_close_accounts(heap);
    }
    return bytes;
}

size_t cca_siblings_release(const struct cca_heap *heap, bool and_itself)
{
    size_t bytes = 0;
    CCA_EACH_HEAP (one, heap->allocator) {
        if (one->accounts != heap->accounts || (one == heap && !and_itself)) {
            continue;
        }
        cca_lock_take(&one->lock);
        if (one->state == CCA_HEAP_UP && cca_gate_is_closed(&one->allocator->gate)) {
            bytes += cca_release_beside_capture(one);
        } else if (one->state == CCA_HEAP_UP) {
            bytes += cca_release_waiting(one, one->allocator->config->oom_wait_ms);
        }
        cca_verify_if_wanted(one);
        cca_lock_drop(&one->lock);
    }
    return bytes;
}

void cca_siblings_release_unlocked(struct cca_heap *heap)
{
    if (CCA_UNLIKELY(has_siblings(heap))) {
        int depth = cca_heap_step_out(heap);
        (void)cca_siblings_release(heap, false);
        cca_heap_step_in(heap, depth);
    }
}

size_t cca_siblings_releasable(const struct cca_heap *heap)
{
    size_t bytes = 0;
    CCA_EACH_HEAP (one, heap->allocator) {
        if (one->accounts == heap->accounts) {
            cca_lock_take(&one->lock);
            bytes += cca_heap_releasable_bytes(one);
            cca_lock_drop(&one->lock);
        }
    }
    return bytes;
}
