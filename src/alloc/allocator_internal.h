/* SPDX-License-Identifier: MIT */
/* The allocator's state, for the files of this folder, the snapshot's capture and the unit tests.
 */
#ifndef CCA_ALLOC_ALLOCATOR_INTERNAL_H
#define CCA_ALLOC_ALLOCATOR_INTERNAL_H

#include <stdatomic.h>

#include "alloc/allocator.h"
#include "alloc/callbacks.h"
#include "alloc/gate.h"
#include "alloc/heap.h"
#include "alloc/policy.h"
#include "alloc/recording.h"
#include "alloc/segment_map.h"
#include "base/lock.h"

enum { CCA_HOMES = 4096 };

struct cca_allocator {
    const struct cca_config *config; /* as at the start */
    /* The settings that may change, and what follows from them. Written with `lock` and every heap
     * lock held, so that either kind is enough to read. */
    struct cca_config settings;
    struct cca_policy policy;
    struct cca_policy dedicated;                   /* of private pools that are marked so */
    struct cca_lock lock;                          /* attach and detach */
    struct cca_heap *_Atomic heaps[CCA_HEAPS_MAX]; /* by slot; never freed, may be down */
    _Atomic uint64_t peers[CCA_DEVICES_MAX];       /* [i]: ordinals that ever had access with i */
    atomic_uint blind;        /* contexts may be up that have no heap, and fences would not cover */
    _Atomic uint64_t up_mask; /* slots whose context is up */
    _Atomic uint64_t heap_mask;       /* slots that have a heap */
    _Atomic uint8_t homes[CCA_HOMES]; /* see look_up.h */
    struct cca_segment_map segments;
    struct cca_gate gate;
    struct cca_callbacks callbacks;
    atomic_bool is_stopped;
    atomic_bool gives_dedicated; /* larger blocks of calls without a stream have own segments */
    struct cca_recording_state recorded; /* guarded by lock */
    struct cca_pool heap_records;        /* guarded by lock */
};

/* Whether requests are answered from the cache. */
static inline bool cca_allocator_is_serving(const struct cca_allocator *allocator)
{
    return allocator->config->mode == CCA_MODE_CACHE && !atomic_load(&allocator->is_stopped);
}

/* Says once when expandable segments are wanted and the device cannot have them. No lock held. */
void cca_settings_say_unmappable(bool wants_mapping, const struct cca_device *device);

/* Every heap that is or was up, in lock order. */
#define CCA_EACH_HEAP(heap, allocator)                                                         \
    for (int heap##_i = CCA_HEAPS_MAX - 1; heap##_i >= 0; heap##_i--)                          \
        for (struct cca_heap *heap = atomic_load(&(allocator)->heaps[heap##_i]); heap != NULL; \
             heap = NULL)

#endif
