/* SPDX-License-Identifier: MIT */
/* Contexts come up and go down, each with its heap; and what takes all heaps at once. */
#include "alloc/allocator.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/context_end.h"
#include "alloc/expandable.h"
#include "alloc/fence.h"
#include "base/clock.h"
#include "base/log.h"

#define PENDING_DEFAULT_MAX ((size_t)1 << 30)

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
        idle = heap != accounts && heap->accounts == accounts && !heap->is_withdrawn &&
                       atomic_load(&heap->context) == 0
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
    bool is_ending = heap != NULL && heap->is_withdrawn;
    heap = is_ending ? NULL : heap;
    if (heap != NULL) {
        cca_lock_take(&heap->lock);
        if (heap->state != CCA_HEAP_DOWN && atomic_load(&heap->context) != context) {
            cca_context_end_forget(heap);
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

    if (heap == NULL && !is_ending && cca_allocator_stop(allocator)) {
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

void cca_allocator_blind(struct cca_allocator *allocator, bool is_blind)
{
    unsigned count = atomic_load(&allocator->blind);
    if (is_blind) {
        atomic_fetch_add(&allocator->blind, 1);
        return;
    }
    /* What began before there was an allocator was not counted. */
    while (count > 0 && !atomic_compare_exchange_weak(&allocator->blind, &count, count - 1)) {
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
