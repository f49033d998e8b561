/* SPDX-License-Identifier: MIT */
/* Which block begins at an address. Each heap has its own map under its own lock; where there are
 * several heaps, a table of hints says whose memory an address was last in, and the others are
 * asked only where it is wrong. */
#ifndef CCA_ALLOC_LOOK_UP_H
#define CCA_ALLOC_LOOK_UP_H

#include "alloc/allocator_internal.h"

static inline _Atomic uint8_t *cca_look_up_hint(struct cca_allocator *allocator, uint64_t addr)
{
    return &allocator->homes[((addr >> 21) * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

/* Whether there is one heap at most. */
static inline bool cca_look_up_is_alone(const struct cca_allocator *allocator)
{
    uint64_t mask = atomic_load_explicit(&allocator->heap_mask, memory_order_acquire);
    return (mask & (mask - 1)) == 0;
}

/* An address of this heap was handed out. */
static inline void cca_look_up_note(struct cca_heap *heap, uint64_t addr)
{
    _Atomic uint8_t *hint = cca_look_up_hint(heap->allocator, addr);
    if (!cca_look_up_is_alone(heap->allocator) &&
        atomic_load_explicit(hint, memory_order_relaxed) != heap->slot) {
        atomic_store_explicit(hint, (uint8_t)heap->slot, memory_order_relaxed);
    }
}

/* The LIVE block that begins at the address, with its heap locked; NULL: there is none, and no lock
 * is held. take removes it from the heap's map: exactly one of several callers gets it. */
struct cca_block *cca_look_up_block(struct cca_allocator *allocator, uint64_t addr,
                                    struct cca_heap **heap_out);
struct cca_block *cca_look_up_take(struct cca_allocator *allocator, uint64_t addr,
                                   struct cca_heap **heap_out);

#endif
