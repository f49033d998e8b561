/* SPDX-License-Identifier: MIT */
#include "alloc/look_up.h"

/* In one heap, which stays locked where the block is found. */
static CCA_ALWAYS_INLINE struct cca_block *look_in(struct cca_heap *heap, uint64_t addr, bool takes,
                                                   struct cca_heap **heap_out)
{
    cca_lock_take(&heap->lock);
    struct cca_block *block = takes ? cca_block_map_remove(&heap->live, addr)
                                    : cca_block_map_find(&heap->live, addr);
    if (block == NULL) {
        cca_lock_drop(&heap->lock);
        return NULL;
    }
    *heap_out = heap;
    return block;
}

/* Starts with the heap of the hint. */
static CCA_NOINLINE struct cca_block *look_in_all(struct cca_allocator *allocator, uint64_t addr,
                                                  bool takes, struct cca_heap **heap_out)
{
    uint64_t todo = atomic_load(&allocator->heap_mask);
    unsigned next = atomic_load_explicit(cca_look_up_hint(allocator, addr), memory_order_relaxed);
    struct cca_block *block = NULL;
    while (todo != 0 && block == NULL) {
        next = (todo >> next & 1) != 0 ? next : (unsigned)__builtin_ctzll(todo);
        block = look_in(atomic_load(&allocator->heaps[next]), addr, takes, heap_out);
        todo &= ~(1ull << next);
    }
    return block;
}

static CCA_ALWAYS_INLINE struct cca_block *look(struct cca_allocator *allocator, uint64_t addr,
                                                bool takes, struct cca_heap **heap_out)
{
    uint64_t mask = atomic_load_explicit(&allocator->heap_mask, memory_order_acquire);
    if ((mask & (mask - 1)) == 0 && mask != 0) {
        int slot = __builtin_ctzll(mask);
        return look_in(atomic_load(&allocator->heaps[slot]), addr, takes, heap_out);
    }
    return look_in_all(allocator, addr, takes, heap_out);
}

struct cca_block *cca_look_up_block(struct cca_allocator *allocator, uint64_t addr,
                                    struct cca_heap **heap_out)
{
    return look(allocator, addr, false, heap_out);
}

struct cca_block *cca_look_up_take(struct cca_allocator *allocator, uint64_t addr,
                                   struct cca_heap **heap_out)
{
    return look(allocator, addr, true, heap_out);
}

int cca_allocator_device_of(struct cca_allocator *allocator, uint64_t addr)
{
    struct cca_heap *heap;
    if (cca_look_up_block(allocator, addr, &heap) == NULL) {
        return -1;
    }
    cca_lock_drop(&heap->lock);
    return cca_allocator_ordinal(heap);
}

struct cca_address_info cca_allocator_look_up(struct cca_allocator *allocator, uint64_t addr)
{
    struct cca_address_info info = {0};
    struct cca_heap *heap;
    info.is_ours = cca_segment_map_find(&allocator->segments, addr, &info.segment_addr,
                                        &info.segment_bytes);
    struct cca_block *block = info.is_ours ? cca_look_up_block(allocator, addr, &heap) : NULL;
    if (block != NULL) {
        info.is_live_block = true;
        info.alloc_time_ns = block->alloc_time_ns;
        info.fills_segment = cca_block_is_whole(block);
        cca_lock_drop(&heap->lock);
    }
    return info;
}
