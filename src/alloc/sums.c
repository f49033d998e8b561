/* SPDX-License-Identifier: MIT */
/* What of a device's memory belongs to one stream or one pool, added up when somebody asks. */
#include "alloc/allocator.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/private_pool.h"

static void add_block(struct cca_sums *sums, const struct cca_block *block)
{
    switch (block->state) {
    case CCA_BLOCK_LIVE:
        sums->live_blocks++;
        sums->live_bytes += (int64_t)block->bytes;
        break;
    case CCA_BLOCK_PENDING: sums->pending_bytes += (int64_t)block->bytes; break;
    case CCA_BLOCK_FREE:
        sums->free_blocks++;
        sums->free_bytes += (int64_t)block->bytes;
        break;
    default: break;
    }
}

static void add_segment(struct cca_sums *sums, const struct cca_segment *segment)
{
    sums->segments++;
    sums->reserved_bytes += (int64_t)cca_segment_held_bytes(segment);
}

void cca_allocator_stream_sums(struct cca_allocator *allocator, struct cca_heap *heap,
                               cca_key stream, struct cca_sums *sums_out)
{
    struct cca_sums sums = {0};
    (void)allocator;
    cca_lock_take(&heap->lock);
    CCA_LIST_EACH (link, &heap->segments) {
        const struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        if (segment->key == stream) {
            add_segment(&sums, segment);
        }
        for (struct cca_block *block = segment->first; block != NULL; block = block->next) {
            if (block->key == stream) {
                add_block(&sums, block);
            }
        }
    }
    cca_lock_drop(&heap->lock);
    *sums_out = sums;
}

int cca_allocator_pool_sums(struct cca_allocator *allocator, struct cca_heap *heap,
                            struct cca_pool_id id, struct cca_sums *sums_out,
                            struct cca_pool_stats *stats_out)
{
    struct cca_sums sums = {0};
    (void)allocator;
    cca_lock_take(&heap->lock);
    const struct cca_private_pool *pool = cca_private_pool_find(heap, id);
    if (pool == NULL) {
        cca_lock_drop(&heap->lock);
        return -ENOENT;
    }
    CCA_LIST_EACH (link, &heap->segments) {
        const struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        if (segment->pool != pool) {
            continue;
        }
        add_segment(&sums, segment);
        for (struct cca_block *block = segment->first; block != NULL; block = block->next) {
            add_block(&sums, block);
        }
    }
    *stats_out = cca_pool_table_row(&cca_heap_open_accounts(heap)->pools, pool->number)->stats;
    cca_heap_close_accounts(heap);
    cca_lock_drop(&heap->lock);
    *sums_out = sums;
    return 0;
}

size_t cca_allocator_largest_free(struct cca_allocator *allocator, struct cca_heap *heap)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    size_t bytes = cca_heap_largest_free(heap);
    cca_lock_drop(&heap->lock);
    return bytes;
}
