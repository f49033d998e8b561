/* SPDX-License-Identifier: MIT */
#include "alloc/verify.h"

#include "alloc/fence.h"
#include "alloc/private_pool.h"
#include "alloc/stream_use.h"

/* What a walk over segments and pools adds up; held against the heap's own figures. */
struct sums {
    size_t reserved, allocated, active, requested, pending;
    size_t use_events; /* that PENDING blocks wait for */
    size_t aside;
    size_t live_blocks, active_blocks, free_blocks, segments;
    size_t split_blocks, split_bytes, private_segments;
    size_t expandables, unmapped_blocks;
};

static const char *verify_pages(const struct cca_segment *segment, const struct cca_block *block)
{
    if (!cca_segment_is_expandable(segment)) {
        return "a part of an ordinary segment has no memory";
    }
    if ((block->addr - segment->addr) % segment->page_bytes != 0 ||
        block->bytes % segment->page_bytes != 0) {
        return "what has no memory is not whole pages";
    }
    return NULL;
}

static const char *verify_block(struct cca_heap *heap, const struct cca_segment *segment,
                                struct cca_block *block, struct sums *sums)
{
    if (block->segment != segment) {
        return "a block names another segment";
    }
    if (block->next != NULL &&
        (block->next->prev != block || block->next->addr != block->addr + block->bytes)) {
        return "neighbours of a segment do not meet";
    }
    switch (block->state) {
    case CCA_BLOCK_LIVE:
        if (cca_block_map_find(&heap->live, block->addr) != block) {
            return "a live block is not in the address map";
        }
        if (block->requested_bytes > block->bytes) {
            return "a live block is smaller than its request";
        }
        sums->allocated += block->bytes;
        sums->live_blocks++;
        break;
    case CCA_BLOCK_PENDING:
        sums->pending += block->bytes;
        sums->use_events += block->use_events;
        break;
    case CCA_BLOCK_FREE:
        if (block->next != NULL && block->next->state == CCA_BLOCK_FREE &&
            block->next->key == block->key) {
            return "two free neighbours of one key were not joined";
        }
        sums->free_blocks++;
        if (cca_block_is_part(block)) {
            sums->split_blocks++;
            sums->split_bytes += block->bytes;
        }
        return NULL;
    case CCA_BLOCK_UNMAPPED:
        sums->unmapped_blocks++;
        if (block->next != NULL && block->next->state == CCA_BLOCK_UNMAPPED) {
            return "two neighbours without memory were not joined";
        }
        /* fall through */
        __attribute__((fallthrough));
    case CCA_BLOCK_MOVING: return verify_pages(segment, block);
    case CCA_BLOCK_CLAIMED:
        return cca_segment_is_expandable(segment) ? NULL
                                                  : "a block of an ordinary segment is "
                                                    "claimed";
    default: return "a block has no state";
    }
    sums->active += block->bytes;
    sums->requested += block->requested_bytes;
    sums->active_blocks++;
    return NULL;
}

static const char *verify_segment(struct cca_heap *heap, struct cca_segment *segment,
                                  struct sums *sums)
{
    uint64_t end = segment->addr;
    size_t mapped = 0;
    if (segment->first == NULL || segment->first->prev != NULL) {
        return "a segment has no first block";
    }
    for (struct cca_block *block = segment->first; block != NULL; block = block->next) {
        if (block->addr != end || block->bytes == 0) {
            return "blocks do not tile their segment";
        }
        end += block->bytes;
        mapped += cca_block_is_mapped(block) ? block->bytes : 0;
        const char *broken = verify_block(heap, segment, block, sums);
        if (broken != NULL) {
            return broken;
        }
    }
    if (end != segment->addr + segment->bytes) {
        return "blocks do not fill their segment";
    }
    if (cca_segment_is_expandable(segment) && mapped != segment->mapped_bytes) {
        return "mapped_bytes is not the sum of the blocks with memory";
    }
    sums->aside += segment->aside_bytes;
    sums->segments += !cca_segment_is_expandable(segment);
    sums->expandables += cca_segment_is_expandable(segment);
    sums->private_segments += segment->pool != NULL;
    sums->reserved += cca_segment_held_bytes(segment);
    return NULL;
}

/* The small and the large blocks of one pool; NULL: the default one. */
static const char *verify_pool(struct cca_heap *heap, struct cca_private_pool *private_pool,
                               size_t *count)
{
    for (int small = 0; small < 2; small++) {
        const struct cca_block_pool *pool = cca_heap_pool(heap, private_pool, small == 1);
        size_t whole_bytes = 0;
        struct cca_block *block = cca_block_pool_first(pool);
        for (; block != NULL; block = cca_block_pool_next(pool, block)) {
            if (block->state != CCA_BLOCK_FREE || block->segment->is_small != (small == 1) ||
                block->segment->pool != private_pool) {
                return "a pool holds a block that is not free or of another pool";
            }
            if (block->bin != cca_block_pool_shelf(block->key) + cca_block_pool_bin(block->bytes)) {
                return "a free block is in a bin of other keys or sizes";
            }
            whole_bytes += cca_block_releasable_bytes(block);
            ++*count;
        }
        if (pool->whole_bytes != whole_bytes) {
            return "what a pool could give back is not the sum over its blocks";
        }
    }
    return NULL;
}

/* The pool's figures and its row. */
static const char *verify_pool_row(const struct cca_heap *heap, const struct cca_private_pool *pool)
{
    const struct cca_pool_row *row = cca_pool_table_row(&heap->observer.pools, pool->number);
    size_t bytes = 0, count = 0;
    if (heap->accounts != heap) {
        return NULL; /* the rows are under another lock */
    }
    if (row == NULL || !row->is_live || row->id[0] != pool->id.capture ||
        row->id[1] != pool->id.handle) {
        return "a private pool has no row of its own";
    }
    CCA_LIST_EACH (link, &heap->segments) {
        const struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        bytes += segment->pool == pool ? cca_segment_held_bytes(segment) : 0;
        count += segment->pool == pool;
    }
    if (count != pool->segments ||
        (int64_t)bytes != row->stats.reserved_bytes_by_private_pools[CCA_STAT_ALL].current) {
        return "the figures of a private pool differ from its segments";
    }
    return NULL;
}

static const char *verify_pools(struct cca_heap *heap, const struct sums *sums)
{
    size_t count = 0, segments = 0;
    const char *broken = verify_pool(heap, NULL, &count);
    CCA_LIST_EACH (link, &heap->private_pools) {
        struct cca_private_pool *pool = CCA_LIST_ENTRY(link, struct cca_private_pool, link);
        broken = broken != NULL ? broken : verify_pool(heap, pool, &count);
        broken = broken != NULL ? broken : verify_pool_row(heap, pool);
        segments += pool->segments;
        if (broken == NULL && pool->uses + pool->segments + pool->holders == 0) {
            broken = "a private pool is there that nobody needs";
        }
    }
    if (broken == NULL && segments != sums->private_segments) {
        broken = "the segments of private pools do not add up";
    }
    return broken != NULL || count == sums->free_blocks ? broken : "a free block is in no pool";
}

static bool stat_is(const struct cca_stat *stat, size_t value)
{
    return stat->current == (int64_t)value && stat->peak >= stat->current;
}

static const char *verify_stats(const struct cca_heap *heap, const struct sums *sums)
{
    const struct cca_stats *stats = &heap->observer.stats;
    if (heap->accounts != heap || heap->has_guests) {
        return NULL; /* the sums of several heaps */
    }
    if (!stat_is(&stats->reserved_bytes[0], sums->reserved) ||
        !stat_is(&stats->segment[0], sums->segments)) {
        return "reserved_bytes or segment differs from the segments";
    }
    if (!stat_is(&stats->allocated_bytes[0], sums->allocated) ||
        !stat_is(&stats->allocation[0], sums->live_blocks)) {
        return "allocated_bytes or allocation differs from the blocks";
    }
    if (!stat_is(&stats->active_bytes[0], sums->active) ||
        !stat_is(&stats->active[0], sums->active_blocks) ||
        !stat_is(&stats->requested_bytes[0], sums->requested)) {
        return "active_bytes, active or requested_bytes differs from the blocks";
    }
    if (!stat_is(&stats->inactive_split_bytes[0], sums->split_bytes) ||
        !stat_is(&stats->inactive_split[0], sums->split_blocks)) {
        return "inactive_split or its bytes differ from the blocks";
    }
    return sums->pending == heap->pending_bytes ? NULL : "pending_bytes differs from the blocks";
}

static const char *verify_use_queues(const struct cca_heap *heap, const struct sums *sums)
{
    size_t count = 0;
    cca_key last = 0;
    CCA_LIST_EACH (link, &heap->use_queues) {
        const struct cca_use_queue *queue = CCA_LIST_ENTRY(link, struct cca_use_queue, link);
        if (link != heap->use_queues.next && queue->stream <= last) {
            return "the queues of stream uses are not in order";
        }
        last = queue->stream;
        CCA_LIST_EACH (event_link, &queue->events) {
            const struct cca_use_event *event = CCA_LIST_ENTRY(event_link, struct cca_use_event,
                                                               link);
            if (event->block->state != CCA_BLOCK_PENDING || event->block->use_events == 0) {
                return "an event is waited for by a block that does not wait";
            }
            count++;
        }
    }
    return count == sums->use_events ? NULL : "a block waits for an event that is in no queue";
}

static const char *verify_routes(struct cca_heap *heap)
{
    unsigned captures = 0;
    CCA_LIST_EACH (link, &heap->routes) {
        const struct cca_route *route = CCA_LIST_ENTRY(link, struct cca_route, link);
        captures += route->scope.kind == CCA_SCOPE_CAPTURE;
        if (cca_private_pool_find(heap, route->pool->id) != route->pool || route->pool->uses == 0) {
            return "a scope is open on a pool that nobody holds";
        }
    }
    return captures == heap->captures ? NULL : "the open captures do not add up";
}

/* Frees that nothing marks yet. */
static const char *verify_aside(const struct cca_heap *heap, const struct sums *sums)
{
    const struct cca_list *lists[2] = {&heap->aside_plain, &heap->aside_ordered};
    size_t bytes[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        CCA_LIST_EACH (link, lists[i]) {
            const struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
            if (block->state != CCA_BLOCK_PENDING) {
                return "a block was set aside that is not pending";
            }
            bytes[i] += block->bytes;
        }
    }
    /* Those that a thread is about to mark are in a list of its own. */
    return heap->is_polling || bytes[0] == sums->aside
               ? NULL
               : "the bytes that segments have set aside do not add up";
}

/* Frees that wait for the end of a capture. */
static const char *verify_deferred(const struct cca_heap *heap)
{
    size_t markers = 0;
    CCA_LIST_EACH (link, &heap->deferred) {
        const struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        if (block->state != CCA_BLOCK_PENDING || block->use_events != 0 || block->uses == NULL) {
            return "a free was put off without a use";
        }
        markers += block->uses->markers != NULL;
    }
    return markers == heap->marker_records.items_taken ? NULL : "free markers do not add up";
}

const char *cca_verify_heap(struct cca_heap *heap)
{
    struct sums sums = {0};
    size_t passed = 0;
    CCA_LIST_EACH (link, &heap->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        const char *broken = verify_segment(heap, segment, &sums);
        if (broken != NULL) {
            return broken;
        }
        passed += segment->is_passed ? segment->bytes : 0;
    }
    if (sums.expandables != heap->expandables || sums.unmapped_blocks != heap->unmapped.count) {
        return "expandable segments, or blocks without memory, are not counted right";
    }
    if (sums.reserved - passed + heap->in_flight_bytes != heap->reserved_bytes) {
        return "reserved_bytes of the heap is not the sum of its segments";
    }
    const char *broken = verify_pools(heap, &sums);
    broken = broken != NULL ? broken : verify_use_queues(heap, &sums);
    broken = broken != NULL ? broken : verify_routes(heap);
    broken = broken != NULL ? broken : verify_deferred(heap);
    broken = broken != NULL ? broken : verify_aside(heap, &sums);
    return broken != NULL ? broken : verify_stats(heap, &sums);
}
