/* SPDX-License-Identifier: MIT */
/* Contexts come up and go down, each with its heap; and what takes all heaps at once. */
#include "alloc/allocator.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/expandable.h"
#include "alloc/fence.h"
#include "base/clock.h"
#include "base/log.h"

#define PENDING_DEFAULT_MAX ((size_t)1 << 30)
#define DETACH_WAIT_NS      (2000ull * 1000 * 1000)

static struct cca_heap *heap_of_device(struct cca_allocator *allocator, int ordinal)
{
    struct cca_heap *heap = atomic_load(&allocator->heaps[ordinal]);
    if (heap == NULL) {
        heap = cca_pool_take(&allocator->heap_records);
        if (heap == NULL) {
            return NULL;
        }
        cca_heap_init(heap, allocator, ordinal, &allocator->settings);
        cca_callbacks_give_trackers(&allocator->callbacks, &heap->observer);
        atomic_store(&allocator->heaps[ordinal], heap);
    }
    return heap;
}

/* Nothing is served or asked any more; heap lock held. */
static void close_down(struct cca_allocator *allocator, struct cca_heap *heap)
{
    atomic_fetch_and(&allocator->up_mask, ~(1ull << heap->device.ordinal));
    heap->state = CCA_HEAP_DOWN;
    atomic_store(&heap->context, 0);
}

/* Forgets the context's memory; heap lock held. */
static void take_down(struct cca_allocator *allocator, struct cca_heap *heap)
{
    close_down(allocator, heap);
    heap->peers = 0;
    cca_heap_drop(heap, cca_clock_ns());
}

static size_t pending_cap(const struct cca_config *config, size_t total_bytes)
{
    if (config->pending_max != 0) {
        return config->pending_max;
    }
    size_t tenth = total_bytes / 10;
    return tenth == 0 || tenth > PENDING_DEFAULT_MAX ? PENDING_DEFAULT_MAX : tenth;
}

struct cca_heap *cca_allocator_attach(struct cca_allocator *allocator,
                                      const struct cca_device *device, uint64_t context)
{
    if (device->ordinal < 0 || device->ordinal >= CCA_DEVICES_MAX) {
        return NULL;
    }
    size_t free_bytes = 0, total_bytes = 0;
    device->ops->mem_info(device->self, &free_bytes, &total_bytes);

    cca_lock_take(&allocator->lock);
    struct cca_heap *heap = heap_of_device(allocator, device->ordinal);
    if (heap != NULL) {
        cca_lock_take(&heap->lock);
        if (heap->state != CCA_HEAP_DOWN && atomic_load(&heap->context) != context) {
            take_down(allocator, heap);
        }
        if (heap->state == CCA_HEAP_DOWN) {
            heap->device = *device;
            heap->device_bytes = total_bytes;
            heap->pending_max_bytes = pending_cap(allocator->config, total_bytes);
            cca_heap_set_fraction(heap, heap->memory_fraction, total_bytes);
            cca_heap_set_expands(heap);
            heap->state = CCA_HEAP_UP;
            atomic_fetch_add(&heap->generation, 1); /* no event made before belongs to it */
            atomic_store(&heap->context, context);
            atomic_fetch_or(&allocator->up_mask, 1ull << device->ordinal);
        }
        cca_lock_drop(&heap->lock);
    }
    uint64_t up = atomic_load(&allocator->up_mask);
    bool wants_mapping = allocator->settings.expandable_segments;
    cca_lock_drop(&allocator->lock);
    cca_settings_say_unmappable(wants_mapping, device);

    if (!device->has_context_events && (up & (up - 1)) != 0 && cca_allocator_stop(allocator)) {
        cca_log(CCA_LOG_WARN,
                "caching ends: a second device is in use and the driver (before 12.5) "
                "cannot tell when both are done with memory");
    }
    return heap;
}

int cca_allocator_ordinal(const struct cca_heap *heap)
{
    return heap->lock.rank - CCA_RANK_HEAP;
}

struct cca_heap *cca_allocator_heap(struct cca_allocator *allocator, uint64_t context)
{
    uint64_t todo = atomic_load(&allocator->up_mask);
    for (; todo != 0; todo &= todo - 1) {
        struct cca_heap *heap = atomic_load(&allocator->heaps[__builtin_ctzll(todo)]);
        if (atomic_load(&heap->context) == context) {
            return heap;
        }
    }
    return NULL;
}

struct cca_heap *cca_allocator_heap_of_device(struct cca_allocator *allocator, int ordinal)
{
    bool is_up = ordinal >= 0 && ordinal < CCA_DEVICES_MAX &&
                 (atomic_load(&allocator->up_mask) >> ordinal & 1) != 0;
    return is_up ? atomic_load(&allocator->heaps[ordinal]) : NULL;
}

int cca_heap_ordinal(const struct cca_heap *heap)
{
    return heap->device.ordinal;
}

uint64_t cca_heap_context(const struct cca_heap *heap)
{
    return atomic_load(&heap->context);
}

/* Calls of other threads that are inside the context's driver functions end before it goes. They
 * are short; one that is not (a free behind endless work) does not hold the program up for ever. */
static void wait_for_device_calls(struct cca_heap *heap)
{
    uint64_t deadline_ns = cca_clock_ns() + DETACH_WAIT_NS;
    while (atomic_load(&heap->device_calls) != 0 && cca_clock_ns() < deadline_ns) {
        cca_clock_sleep_us(20);
    }
}

/* All work submitted so far is seen to be over, within the time allowed; heap lock held. */
static bool is_over_soon(struct cca_heap *heap)
{
    uint64_t generation = heap->generation, pause_us = 0;
    uint64_t deadline_ns = cca_clock_ns() + DETACH_WAIT_NS;
    struct cca_proof proof = cca_fence_prove(heap);
    while (proof.id != 0 && heap->generation == generation && heap->state == CCA_HEAP_UP) {
        cca_fence_poll(heap, CCA_FENCE_ALL);
        if (heap->generation != generation || cca_fence_is_proven(heap, &proof) ||
            cca_clock_ns() >= deadline_ns) {
            break;
        }
        cca_fence_pause(heap, &pause_us);
    }
    return heap->generation == generation && cca_fence_is_proven(heap, &proof);
}

/* Mapped memory belongs to the process, so a reset of the context alone would not give it back. It
 * goes where that can be done in time; in front of work without end it stays. The allocator's lock
 * is held. */
static void abandon_mapped(struct cca_allocator *allocator, struct cca_heap *heap)
{
    cca_lock_take(&heap->lock);
    bool is_idle = heap->state == CCA_HEAP_UP && heap->expandables != 0 && is_over_soon(heap);
    if (is_idle) {
        close_down(allocator, heap);
        atomic_fetch_add(&heap->generation, 1);
    }
    cca_lock_drop(&heap->lock);
    if (is_idle) {
        wait_for_device_calls(heap);
        cca_expandable_abandon(heap);
    }
}

void cca_allocator_detach(struct cca_allocator *allocator, int ordinal)
{
    if (ordinal < 0 || ordinal >= CCA_DEVICES_MAX) {
        return;
    }
    cca_lock_take(&allocator->lock);
    struct cca_heap *heap = atomic_load(&allocator->heaps[ordinal]);
    if (heap != NULL) {
        abandon_mapped(allocator, heap);
        cca_lock_take(&heap->lock);
        if (heap->state != CCA_HEAP_DOWN || heap->expandables != 0) {
            take_down(allocator, heap);
        }
        cca_lock_drop(&heap->lock);
    }
    CCA_EACH_HEAP (other, allocator) {
        cca_lock_take(&other->lock);
        other->peers &= ~(1ull << ordinal);
        cca_lock_drop(&other->lock);
    }
    cca_lock_drop(&allocator->lock);
    if (heap != NULL) {
        wait_for_device_calls(heap);
    }
}

void cca_allocator_peer_access(struct cca_allocator *allocator, int owner, int accessor,
                               bool is_allowed)
{
    struct cca_heap *heap = owner < 0 || owner >= CCA_DEVICES_MAX || accessor < 0 ||
                                    accessor >= CCA_DEVICES_MAX
                                ? NULL
                                : atomic_load(&allocator->heaps[owner]);
    if (heap != NULL) {
        cca_lock_take(&heap->lock);
        cca_expandable_set_peer(heap, accessor, is_allowed);
        cca_lock_drop(&heap->lock);
    }
}

int cca_allocator_with_observer(struct cca_allocator *allocator, int ordinal, cca_observer_fn fn,
                                void *user)
{
    struct cca_heap *heap = ordinal < 0 || ordinal >= CCA_DEVICES_MAX
                                ? NULL
                                : atomic_load(&allocator->heaps[ordinal]);
    if (heap == NULL) {
        return -ENODEV;
    }
    cca_lock_take(&heap->lock);
    fn(user, &heap->observer);
    cca_lock_drop(&heap->lock);
    return 0;
}

uint64_t cca_allocator_device_mask(const struct cca_allocator *allocator)
{
    uint64_t mask = 0;
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        mask |= atomic_load(&allocator->heaps[i]) != NULL ? 1ull << i : 0;
    }
    return mask;
}

uint64_t cca_allocator_up_mask(const struct cca_allocator *allocator)
{
    return atomic_load(&allocator->up_mask);
}

void cca_allocator_fork_prepare(struct cca_allocator *allocator)
{
    cca_lock_take(&allocator->lock);
    CCA_EACH_HEAP (heap, allocator) {
        cca_lock_take_urgent(&heap->lock);
    }
    cca_lock_take(&allocator->segments.lock);
    cca_ptrmap_lock_all(&allocator->blocks);
}

void cca_allocator_fork_parent(struct cca_allocator *allocator)
{
    cca_ptrmap_unlock_all(&allocator->blocks);
    cca_lock_drop(&allocator->segments.lock);
    for (int i = CCA_DEVICES_MAX - 1; i >= 0; i--) {
        struct cca_heap *heap = atomic_load(&allocator->heaps[i]);
        if (heap != NULL) {
            cca_lock_drop(&heap->lock);
        }
    }
    cca_lock_drop(&allocator->lock);
}

void cca_allocator_fork_child(struct cca_allocator *allocator)
{
    cca_allocator_fork_parent(allocator);
    atomic_store(&allocator->is_stopped, true);
    /* Another thread of the parent may have held the gate, which no lock order covers. */
    cca_gate_init(&allocator->gate);
    atomic_store(&allocator->gate.captures, 1);
}
