/* SPDX-License-Identifier: MIT */
#include "alloc/callbacks.h"

#include <errno.h>

#include "alloc/allocator_internal.h"

void cca_callbacks_init(struct cca_callbacks *callbacks)
{
    cca_lock_init(&callbacks->lock, CCA_RANK_LEAF);
}

bool cca_callbacks_free_memory(struct cca_callbacks *callbacks, int ordinal, size_t bytes)
{
    bool has_freed = false;
    if (atomic_load(&callbacks->free_count) == 0) {
        return false;
    }
    cca_lock_take(&callbacks->lock);
    struct cca_callbacks copy = *callbacks;
    cca_lock_drop(&callbacks->lock);
    for (int i = 0; i < atomic_load(&copy.free_count); i++) {
        has_freed |= copy.frees[i].fn(copy.frees[i].user, ordinal, bytes);
    }
    return has_freed;
}

void cca_callbacks_tell_oom(struct cca_callbacks *callbacks, const struct cca_oom_info *info)
{
    cca_lock_take(&callbacks->lock);
    struct cca_callbacks copy = *callbacks;
    cca_lock_drop(&callbacks->lock);
    for (int i = 0; i < copy.observer_count; i++) {
        copy.observers[i].fn(copy.observers[i].user, info);
    }
}

void cca_callbacks_give_trackers(struct cca_callbacks *callbacks, struct cca_observer *observer)
{
    for (int i = 0; i < callbacks->tracker_count; i++) {
        (void)cca_observer_add_tracker(observer, callbacks->trackers[i].fn,
                                       callbacks->trackers[i].user);
    }
}

int cca_allocator_add_tracker(struct cca_allocator *allocator, cca_tracker_fn fn, void *user)
{
    struct cca_callbacks *callbacks = &allocator->callbacks;
    cca_lock_take(&allocator->lock);
    int count = callbacks->tracker_count;
    bool has_room = count < CCA_TRACKERS_MAX;
    if (has_room) {
        callbacks->trackers[count].fn = fn;
        callbacks->trackers[count].user = user;
        callbacks->tracker_count = count + 1;
        CCA_EACH_HEAP (heap, allocator) {
            cca_lock_take(&heap->lock);
            if (heap->accounts == heap) {
                (void)cca_observer_add_tracker(&heap->observer, fn, user);
            }
            cca_lock_drop(&heap->lock);
        }
    }
    cca_lock_drop(&allocator->lock);
    return has_room ? 0 : -ENOSPC;
}

int cca_allocator_add_free_callback(struct cca_allocator *allocator, cca_free_memory_fn fn,
                                    void *user)
{
    struct cca_callbacks *callbacks = &allocator->callbacks;
    cca_lock_take(&callbacks->lock);
    int count = atomic_load(&callbacks->free_count);
    bool has_room = count < CCA_CALLBACKS_MAX;
    if (has_room) {
        callbacks->frees[count].fn = fn;
        callbacks->frees[count].user = user;
        atomic_store(&callbacks->free_count, count + 1);
    }
    cca_lock_drop(&callbacks->lock);
    return has_room ? 0 : -ENOSPC;
}

int cca_allocator_add_oom_observer(struct cca_allocator *allocator, cca_oom_fn fn, void *user)
{
    struct cca_callbacks *callbacks = &allocator->callbacks;
    cca_lock_take(&callbacks->lock);
    bool has_room = callbacks->observer_count < CCA_CALLBACKS_MAX;
    if (has_room) {
        callbacks->observers[callbacks->observer_count].fn = fn;
        callbacks->observers[callbacks->observer_count++].user = user;
    }
    cca_lock_drop(&callbacks->lock);
    return has_room ? 0 : -ENOSPC;
}
