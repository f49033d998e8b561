/* SPDX-License-Identifier: MIT */
/* Which other devices may use what is mapped. */
#include "alloc/expandable.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/expandable_parts.h"

uint64_t cca_expandable_peers(const struct cca_heap *heap)
{
    return atomic_load(&heap->allocator->peers[heap->device.ordinal]);
}

void cca_expandable_allow(struct cca_heap *heap, uint64_t addr, size_t page, size_t pages,
                          uint64_t peers)
{
    int depth = cca_heap_step_out(heap);
    if (cca_device_call_begin(heap)) {
        for (uint64_t todo = peers; todo != 0; todo &= todo - 1) {
            (void)heap->device.ops->allow_access(heap->device.self, addr, page, pages,
                                                 __builtin_ctzll(todo));
        }
        cca_device_call_end(heap);
    }
    cca_heap_step_in(heap, depth);
}

/* The lowest mapped block above `addr`, of any expandable segment, or NULL. */
static struct cca_block *mapped_above(struct cca_heap *heap, uint64_t addr)
{
    struct cca_block *lowest = NULL;
    CCA_LIST_EACH (link, &heap->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        struct cca_block *block = cca_segment_is_expandable(segment) ? segment->first : NULL;
        while (block != NULL &&
               (!cca_block_is_mapped(block) || block->addr + block->bytes <= addr)) {
            block = block->next;
        }
        if (block != NULL && (lowest == NULL || block->addr < lowest->addr)) {
            lowest = block;
        }
    }
    return lowest;
}

void cca_expandable_open_to(struct cca_heap *heap, int accessor)
{
    uint64_t generation = heap->generation, addr = 0;
    while (heap->generation == generation) {
        struct cca_block *block = mapped_above(heap, addr);
        if (block == NULL) {
            break;
        }
        /* Page by page, as what is mapped may change meanwhile. */
        struct cca_segment *segment = block->segment;
        size_t page = segment->page_bytes,
               end = (size_t)(block->addr + block->bytes - segment->addr);
        size_t begin = addr > block->addr ? (size_t)(addr - segment->addr)
                                          : (size_t)(block->addr - segment->addr) / page * page;
        addr = segment->addr + cca_round_up(end, page);
        cca_expandable_allow(heap, segment->addr + begin, page,
                             (cca_round_up(end, page) - begin) / page, 1ull << accessor);
    }
}
