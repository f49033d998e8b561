/* SPDX-License-Identifier: MIT */
/* Settings that change while the program runs. */
#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/verify.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/conf.h"

void cca_heap_set_fraction(struct cca_heap *heap, double fraction, size_t total_bytes)
{
    size_t limit = heap->allocator->settings.memory_limit;
    if (fraction < 1 && total_bytes != 0) {
        /* To the nearest byte: the product meant, whatever the last bit of the fraction is. */
        size_t part = (size_t)(fraction * (double)total_bytes + 0.5);
        limit = part < limit ? part : limit;
    }
    heap->memory_fraction = fraction;
    heap->total_bytes = total_bytes;
    heap->limit_bytes = limit;
}

void cca_heap_set_expands(struct cca_heap *heap)
{
    heap->expands = heap->allocator->settings.expandable_segments &&
                    heap->device.map_granularity != 0;
}

void cca_settings_say_unmappable(bool wants_mapping, const struct cca_device *device)
{
    static int said;
    if (wants_mapping && device->map_granularity == 0) {
        cca_log_once(&said, CCA_LOG_WARN,
                     "expandable segments need a driver and a device that can map memory; ordinary "
                     "segments serve instead");
    }
}

int cca_allocator_set_memory_fraction(struct cca_allocator *allocator, int ordinal, double fraction)
{
    if (!(fraction >= 0 && fraction <= 1)) {
        return -EINVAL;
    }
    struct cca_heap *heap = ordinal < 0 || ordinal >= CCA_DEVICES_MAX
                                ? NULL
                                : atomic_load(&allocator->heaps[ordinal]);
    if (heap == NULL) {
        return -ENODEV;
    }
    size_t free_bytes = 0, total_bytes = 0;
    cca_lock_take(&heap->lock);
    struct cca_device device = heap->device;
    total_bytes = heap->total_bytes;
    bool is_up = heap->state == CCA_HEAP_UP;
    cca_lock_drop(&heap->lock);
    if (is_up) {
        device.ops->mem_info(device.self, &free_bytes, &total_bytes);
    }
    CCA_EACH_HEAP (one, allocator) {
        if (one->accounts == heap) {
            cca_lock_take(&one->lock);
            cca_heap_set_fraction(one, fraction, total_bytes);
            cca_verify_if_wanted(one);
            cca_lock_drop(&one->lock);
        }
    }
    return 0;
}

double cca_allocator_memory_fraction(struct cca_allocator *allocator, int ordinal)
{
    double fraction = 1;
    struct cca_heap *heap = ordinal < 0 || ordinal >= CCA_DEVICES_MAX
                                ? NULL
                                : atomic_load(&allocator->heaps[ordinal]);
    if (heap != NULL) {
        cca_lock_take(&heap->lock);
        fraction = heap->memory_fraction;
        cca_lock_drop(&heap->lock);
    }
    return fraction;
}

/* Every heap's lock, in rank order, and back. */
static void lock_heaps(struct cca_allocator *allocator)
{
    CCA_EACH_HEAP (heap, allocator) {
        cca_lock_take(&heap->lock);
    }
}

static void unlock_heaps(struct cca_allocator *allocator)
{
    CCA_EACH_HEAP (heap, allocator) {
        cca_lock_drop(&heap->lock);
    }
}

bool cca_allocator_copy_settings(struct cca_allocator *allocator, unsigned wait_ms,
                                 struct cca_config *out)
{
    for (unsigned waited = 0; !cca_lock_try(&allocator->lock); waited++) {
        if (waited == wait_ms) {
            return false;
        }
        cca_clock_sleep_us(1000);
    }
    *out = allocator->settings;
    cca_lock_drop(&allocator->lock);
    return true;
}

int cca_allocator_set_conf(struct cca_allocator *allocator, const char *text,
                           cca_config_complaint_fn complain, void *user)
{
    cca_lock_take(&allocator->lock);
    struct cca_config next = allocator->settings;
    int rc = cca_conf_change(&next, text, complain, user);
    if (rc == 0) {
        bool is_new_fraction = next.memory_fraction != allocator->settings.memory_fraction;
        lock_heaps(allocator);
        allocator->settings = next;
        cca_policy_init(&allocator->policy, &next);
        CCA_EACH_HEAP (heap, allocator) {
            cca_heap_set_expands(heap);
            if (is_new_fraction) {
                cca_heap_set_fraction(heap, next.memory_fraction, heap->total_bytes);
            }
        }
        unlock_heaps(allocator);
    }
    cca_lock_drop(&allocator->lock);
    CCA_EACH_HEAP (heap, allocator) {
        if (rc == 0 && atomic_load(&heap->context) != 0) {
            cca_settings_say_unmappable(next.expandable_segments, &heap->device);
        }
    }
    return rc;
}
