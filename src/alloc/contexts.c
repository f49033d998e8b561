/* SPDX-License-Identifier: MIT */
/* Contexts come up and go down, each with its heap; and what takes all heaps at once. */
#include "alloc/allocator.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/expandable.h"
#include "alloc/fence.h"
#include "base/clock.h"
#include "base/defect.h"
#include "base/log.h"

#define PENDING_DEFAULT_MAX ((size_t)1 << 30)
#define DETACH_WAIT_NS      (2000ull * 1000 * 1000)

/* The heap in a slot, a new one when it is empty; NULL when memory is refused. */
static struct cca_heap *heap_in_slot(struct cca_allocator *allocator, int slot,
                                     struct cca_heap *accounts)
{
    struct cca_heap *heap = atomic_load(&allocator->heaps[slot]);
    if (heap == NULL) {
        heap = cca_pool_take(&allocator->heap_records);
        if (heap == NULL) {
            return NULL;
        }
        cca_heap_init(heap, allocator, slot, accounts, &allocator->settings);
        cca_callbacks_give_trackers(&allocator->callbacks, &heap->observer);
        atomic_store(&allocator->heaps[slot], heap);
        atomic_fetch_or(&allocator->heap_mask, 1ull << slot);
    }
    return heap;
}

/* Whether it is a device's own heap, for its primary context. */
static bool is_of_device(const struct cca_heap *heap)
{
    return heap->accounts == heap;
}

/* The heap of the device, which keeps the accounts of all its contexts; NULL also when the slot is
 * taken by a context of the program's own. */
static struct cca_heap *heap_of_device(struct cca_allocator *allocator, int ordinal)
{
    struct cca_heap *heap = heap_in_slot(allocator, ordinal, NULL);
    return heap != NULL && is_of_device(heap) ? heap : NULL;
}

/* The heap of a context that the program made, else one of the device that is idle, else a new one
 * from the top slot down. */
static struct cca_heap *heap_of_own(struct cca_allocator *allocator, int ordinal, uint64_t context)
{
    struct cca_heap *accounts = heap_of_device(allocator, ordinal), *idle = NULL;
    int empty = -1;
    if (accounts == NULL) {
        return NULL;
    }
    CCA_EACH_HEAP (heap, allocator) {
        if (!is_of_device(heap) && atomic_load(&heap->context) == context) {
            return heap;
        }
        idle = heap != accounts && heap->accounts == accounts && atomic_load(&heap->context) == 0
                   ? heap
                   : idle;
    }
    for (int slot = CCA_HEAPS_MAX - 1; slot >= 0 && empty < 0; slot--) {
        empty = atomic_load(&allocator->heaps[slot]) == NULL ? slot : empty;
    }
    return idle == NULL && empty >= 0 ? heap_in_slot(allocator, empty, accounts) : idle;
}

/* Heap lock held. */
static void note_guest(struct cca_heap *heap)
{
    struct cca_heap *accounts = heap->accounts;
    if (accounts != heap) {
        cca_lock_take(&accounts->lock);
        accounts->has_guests = true;
        if (accounts->device_bytes == 0) {
            accounts->device_bytes = accounts->total_bytes = heap->device_bytes;
        }
        cca_lock_drop(&accounts->lock);
    }
}

/* Nothing is served or asked any more; heap lock held. */
static void close_down(struct cca_allocator *allocator, struct cca_heap *heap)
{
    atomic_fetch_and(&allocator->up_mask, ~(1ull << heap->slot));
    heap->state = CCA_HEAP_DOWN;
    atomic_store(&heap->context, 0);
}

/* Forgets the context's memory; heap lock held. */
static void take_down(struct cca_allocator *allocator, struct cca_heap *heap)
{
    close_down(allocator, heap);
    if (!CCA_DEFECT(memory_outlives_its_context)) {
        cca_heap_drop(heap, cca_clock_ns());
    }
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
    struct cca_heap *heap = device->is_own ? heap_of_own(allocator, device->ordinal, context)
                                           : heap_of_device(allocator, device->ordinal);
    if (heap != NULL) {
        cca_lock_take(&heap->lock);
        if (heap->state != CCA_HEAP_DOWN && atomic_load(&heap->context) != context) {
            take_down(allocator, heap);
        }
        if (heap->state == CCA_HEAP_DOWN) {
            heap->device = *device;
            atomic_store(&heap->ordinal, device->ordinal);
            heap->device_bytes = total_bytes;
            note_guest(heap);
            heap->pending_max_bytes = pending_cap(allocator->config, total_bytes);
            cca_heap_set_fraction(heap, heap->memory_fraction, total_bytes);
            cca_heap_set_expands(heap);
            heap->state = CCA_HEAP_UP;
            atomic_fetch_add(&heap->generation, 1); /* no event made before belongs to it */
            atomic_store(&heap->context, context);
            atomic_fetch_or(&allocator->up_mask, 1ull << heap->slot);
        }
        cca_lock_drop(&heap->lock);
    }
    uint64_t up = atomic_load(&allocator->up_mask);
    bool wants_mapping = allocator->settings.expandable_segments;
    cca_lock_drop(&allocator->lock);
    cca_settings_say_unmappable(wants_mapping, device);

    if (heap == NULL && cca_allocator_stop(allocator)) {
        cca_log(CCA_LOG_WARN, "caching ends: one more context is in use than can be followed");
    } else if (!device->has_context_events && (up & (up - 1)) != 0 &&
               cca_allocator_stop(allocator)) {
        cca_log(CCA_LOG_WARN,
                "caching ends: a second context is in use and the driver (before 12.5) "
                "cannot tell when both are done with memory");
    }
    return heap;
}

int cca_allocator_ordinal(const struct cca_heap *heap)
{
    return atomic_load_explicit(&heap->ordinal, memory_order_relaxed);
}

int cca_heap_slot(const struct cca_heap *heap)
{
    return heap->slot;
}

bool cca_heap_is_own(const struct cca_heap *heap)
{
    return !is_of_device(heap);
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
    struct cca_heap *heap = is_up ? atomic_load(&allocator->heaps[ordinal]) : NULL;
    return heap != NULL && cca_allocator_ordinal(heap) == ordinal ? heap : NULL;
}

struct cca_heap *cca_allocator_some_heap_of_device(struct cca_allocator *allocator, int ordinal)
{
    struct cca_heap *some = cca_allocator_heap_of_device(allocator, ordinal);
    uint64_t todo = some == NULL ? atomic_load(&allocator->up_mask) : 0;
    for (; todo != 0 && some == NULL; todo &= todo - 1) {
        struct cca_heap *heap = atomic_load(&allocator->heaps[__builtin_ctzll(todo)]);
        some = cca_allocator_ordinal(heap) == ordinal ? heap : NULL;
    }
    return some;
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

/* The allocator's lock is held. */
static void forget(struct cca_allocator *allocator, struct cca_heap *heap)
{
    abandon_mapped(allocator, heap);
    cca_lock_take(&heap->lock);
    if (heap->state != CCA_HEAP_DOWN || heap->expandables != 0) {
        take_down(allocator, heap);
    }
    cca_lock_drop(&heap->lock);
}

void cca_allocator_detach(struct cca_allocator *allocator, int ordinal)
{
    if (ordinal < 0 || ordinal >= CCA_DEVICES_MAX) {
        return;
    }
    cca_lock_take(&allocator->lock);
    struct cca_heap *heap = atomic_load(&allocator->heaps[ordinal]);
    heap = heap != NULL && is_of_device(heap) ? heap : NULL;
    if (heap != NULL) {
        forget(allocator, heap);
    }
    cca_lock_drop(&allocator->lock);
    if (heap != NULL) {
        wait_for_device_calls(heap);
    }
}

void cca_allocator_detach_own(struct cca_allocator *allocator, uint64_t context)
{
    cca_lock_take(&allocator->lock);
    struct cca_heap *heap = context != 0 ? cca_allocator_heap(allocator, context) : NULL;
    heap = heap != NULL && !is_of_device(heap) ? heap : NULL;
    if (heap != NULL) {
        forget(allocator, heap);
    }
    cca_lock_drop(&allocator->lock);
    if (heap != NULL) {
        wait_for_device_calls(heap);
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
        const struct cca_heap *heap = atomic_load(&allocator->heaps[i]);
        mask |= heap != NULL && is_of_device(heap) ? 1ull << i : 0;
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
}

void cca_allocator_fork_parent(struct cca_allocator *allocator)
{
    cca_lock_drop(&allocator->segments.lock);
    CCA_EACH_HEAP (heap, allocator) {
        cca_lock_drop(&heap->lock);
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
