/* SPDX-License-Identifier: MIT */
/* Pages of expandable segments lose their memory. */
#include "alloc/expandable.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/expandable_parts.h"
#include "alloc/heap_parts.h"
#include "base/clock.h"

/* Cuts [first, last) out of a FREE block that is in no pool; what is left around it is free. */
static struct cca_block *cut_out(struct cca_block *block, uint64_t first, uint64_t last,
                                 struct cca_block *records[2])
{
    struct cca_block_pool *pool = block->segment->blocks;
    if (last < block->addr + block->bytes) {
        struct cca_block *rest = records[1];
        records[1] = NULL;
        cca_block_split(block, rest, (size_t)(last - block->addr));
        rest->key = block->key;
        rest->freed_seq = block->freed_seq;
        cca_block_pool_insert(pool, rest);
    }
    if (first > block->addr) {
        struct cca_block *pages = records[0];
        records[0] = NULL;
        cca_block_split(block, pages, (size_t)(first - block->addr));
        cca_block_pool_insert(pool, block);
        return pages;
    }
    return block;
}

bool cca_expandable_detach(struct cca_heap *heap, struct cca_block *block, size_t most_bytes,
                           uint64_t now_ns, struct cca_list *out)
{
    struct cca_segment *segment = block->segment;
    size_t page = segment->page_bytes, bytes = cca_block_releasable_bytes(block);
    if (bytes == 0) {
        return false;
    }
    struct cca_block *records[2] = {cca_pool_take(&heap->block_records),
                                    cca_pool_take(&heap->block_records)};
    if (records[0] != NULL && records[1] != NULL) {
        size_t end = (size_t)(block->addr + block->bytes - segment->addr) / page * page;
        if (most_bytes < bytes) {
            bytes = cca_round_up(most_bytes, page);
        }
        cca_block_pool_remove(segment->blocks, block);
        block = cut_out(block, segment->addr + end - bytes, segment->addr + end, records);
        block->state = CCA_BLOCK_MOVING;
        cca_list_push_back(out, &block->wait);
        segment->mapped_bytes -= bytes;
        heap->reserved_bytes -= bytes;
        heap->releases_in_flight++;
        cca_heap_report_range(heap, CCA_EVENT_SEGMENT_UNMAP, segment, block->addr, bytes, now_ns);
    } else {
        bytes = 0;
    }
    cca_pool_give(&heap->block_records, records[0]);
    cca_pool_give(&heap->block_records, records[1]);
    return bytes != 0;
}

/* Unlike the driver's free, unmapping waits for nothing; a core driven in stream order relies on
 * the wait. */
static struct cca_status call_unmap(struct cca_heap *heap, uint64_t addr, size_t page, size_t pages,
                                    bool waits, uint64_t generation)
{
    struct cca_status status = cca_status_ok();
    int depth = cca_heap_step_out(heap);
    if (cca_device_call_begin(heap)) {
        if (atomic_load(&heap->generation) == generation) {
            if (waits) {
                (void)heap->device.ops->synchronize(heap->device.self);
            }
            status = heap->device.ops->unmap(heap->device.self, addr, page, pages);
        }
        cca_device_call_end(heap);
    }
    cca_heap_step_in(heap, depth);
    return status;
}

size_t cca_expandable_unmap(struct cca_heap *heap, struct cca_list *detached)
{
    uint64_t generation = heap->generation;
    size_t total = 0;
    while (!cca_list_is_empty(detached)) {
        struct cca_block *block = CCA_LIST_ENTRY(detached->next, struct cca_block, wait);
        struct cca_segment *segment = block->segment;
        uint64_t began_ns = cca_clock_ns();
        struct cca_status status = cca_status_ok();
        if (heap->generation == generation) {
            size_t page = segment->page_bytes;
            status = call_unmap(heap, block->addr, page, block->bytes / page, !heap->rekeys,
                                generation);
        }
        heap->releases_in_flight--;
        cca_list_remove(&block->wait);
        total += block->bytes;
        if (heap->generation != generation) {
            cca_pool_give(&heap->block_records, block);
            continue;
        }
        cca_heap_report_released(heap, segment, cca_clock_ns() - began_ns);
        if (status.kind == CCA_FATAL) {
            heap->state = CCA_HEAP_DEAD;
        } else if (status.kind == CCA_OK) {
            cca_expandable_put_unmapped(heap, block);
            cca_expandable_remove_if_empty(heap, segment);
        } /* else it stays out of the books, and the addresses unused */
    }
    return total;
}

bool cca_expandable_drop_block(struct cca_heap *heap, struct cca_block *block)
{
    if (block->state == CCA_BLOCK_UNMAPPED) {
        cca_tree_erase(&heap->unmapped, &block->node);
        return true;
    }
    block->segment = NULL;
    return false;
}

/* Pages from the block on that have memory, or may have: up to the next UNMAPPED one. */
static struct cca_block *abandon_run(struct cca_heap *heap, struct cca_block *block)
{
    const struct cca_device *device = &heap->device;
    const struct cca_segment *segment = block->segment;
    uint64_t begin = block->addr, end = begin;
    for (; block != NULL && block->state != CCA_BLOCK_UNMAPPED; block = block->next) {
        end = block->addr + block->bytes;
    }
    (void)device->ops->unmap(device->self, begin, segment->page_bytes,
                             (size_t)(end - begin) / segment->page_bytes);
    return block;
}

void cca_expandable_abandon(struct cca_heap *heap)
{
    CCA_LIST_EACH (link, &heap->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        struct cca_block *block = cca_segment_is_expandable(segment) ? segment->first : NULL;
        if (block == NULL) {
            continue;
        }
        while (block != NULL) {
            block = block->state == CCA_BLOCK_UNMAPPED ? block->next : abandon_run(heap, block);
        }
        (void)heap->device.ops->address_free(heap->device.self, segment->addr, segment->bytes);
    }
}
