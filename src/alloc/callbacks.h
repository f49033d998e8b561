/* SPDX-License-Identifier: MIT */
/* Who wants to help or to know when memory is short. Guarded by a leaf lock; callbacks are called
 * with no lock held and may use the allocator. */
#ifndef CCA_ALLOC_CALLBACKS_H
#define CCA_ALLOC_CALLBACKS_H

#include <stdatomic.h>

#include "alloc/allocator.h"
#include "base/lock.h"
#include "observe/observer.h"

enum { CCA_CALLBACKS_MAX = 8 };

struct cca_callbacks {
    struct cca_lock lock;
    atomic_int free_count; /* lets a miss pass by without the lock */
    struct {
        cca_free_memory_fn fn;
        void *user;
    } frees[CCA_CALLBACKS_MAX];
    struct {
        cca_oom_fn fn;
        void *user;
    } observers[CCA_CALLBACKS_MAX];
    int observer_count;
    /* Guarded by the allocator's lock, as each new heap is given them. */
    struct {
        cca_tracker_fn fn;
        void *user;
    } trackers[CCA_TRACKERS_MAX];
    int tracker_count;
};

void cca_callbacks_init(struct cca_callbacks *callbacks);

/* A new observer is given the trackers there are; the allocator's lock is held. */
void cca_callbacks_give_trackers(struct cca_callbacks *callbacks, struct cca_observer *observer);

/* Asks everybody for memory; true when somebody gave some. No lock held. */
bool cca_callbacks_free_memory(struct cca_callbacks *callbacks, int ordinal, size_t bytes);

/* Tells every observer. No lock held. */
void cca_callbacks_tell_oom(struct cca_callbacks *callbacks, const struct cca_oom_info *info);

#endif
