/* SPDX-License-Identifier: MIT */
#include "alloc/expandable.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/expandable_parts.h"
#include "alloc/heap_parts.h"
#include "base/check.h"
#include "base/clock.h"

static struct cca_block *block_of(const struct cca_tree_node *node)
{
    return node == NULL ? NULL : CCA_CONTAINER_OF(node, struct cca_block, node);
}

/* By pool, small or large, and owner: what one request may grow. */
static int compare_groups(const struct cca_segment *a, const struct cca_segment *b)
{
    uint16_t x = cca_segment_pool_number(a), y = cca_segment_pool_number(b);
    if (x != y) {
        return x < y ? -1 : 1;
    }
    if (a->is_small != b->is_small) {
        return a->is_small ? 1 : -1;
    }
    return (a->key > b->key) - (a->key < b->key);
}

static int compare(const struct cca_tree_node *a, const struct cca_tree_node *b)
{
    const struct cca_block *x = block_of(a), *y = block_of(b);
    int groups = compare_groups(x->segment, y->segment);
    return groups != 0 ? groups : (x->addr > y->addr) - (x->addr < y->addr);
}

void cca_expandable_init(struct cca_heap *heap)
{
    cca_tree_init(&heap->unmapped, compare);
}

/* The group of segments that the request may grow. */
static struct cca_segment group_of(const struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded)
{
    return (struct cca_segment){
        .pool = request->pool,
        .is_small = cca_policy_is_small(rounded),
        .key = heap->rekeys ? CCA_KEY_READY : request->key,
    };
}

static bool may_use(const struct cca_block *block, cca_key key)
{
    return block != NULL && block->state == CCA_BLOCK_FREE &&
           (block->key == key || block->key == CCA_KEY_READY);
}

/* Whether free and unmapped blocks from this one on, without a gap, are enough. */
static bool has_room(const struct cca_block *block, cca_key key, size_t rounded)
{
    size_t bytes = 0;
    while (block != NULL && bytes < rounded &&
           (block->state == CCA_BLOCK_UNMAPPED || may_use(block, key))) {
        bytes += block->bytes;
        block = block->next;
    }
    return bytes >= rounded;
}

/* The lowest place in the group that has room: it begins with addresses to map, or with the free
 * block in front of them. */
static struct cca_block *find_room(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded)
{
    struct cca_segment group = group_of(heap, request, rounded);
    struct cca_block wanted = {.segment = &group};
    struct cca_block *hole = block_of(cca_tree_lower_bound(&heap->unmapped, &wanted.node));
    for (; hole != NULL && compare_groups(hole->segment, &group) == 0;
         hole = block_of(cca_tree_next(&hole->node))) {
        struct cca_block *start = may_use(hole->prev, request->key) ? hole->prev : hole;
        if (has_room(start, request->key, rounded)) {
            return start;
        }
    }
    return NULL;
}

void cca_expandable_put_unmapped(struct cca_heap *heap, struct cca_block *block)
{
    struct cca_block *lower = block->prev, *upper = block->next;
    if (upper != NULL && upper->state == CCA_BLOCK_UNMAPPED) {
        cca_tree_erase(&heap->unmapped, &upper->node);
        cca_block_merge(block, upper);
        cca_pool_give(&heap->block_records, upper);
    }
    if (lower != NULL && lower->state == CCA_BLOCK_UNMAPPED) {
        cca_block_merge(lower, block);
        cca_pool_give(&heap->block_records, block);
        return; /* its place in the tree is the same */
    }
    block->state = CCA_BLOCK_UNMAPPED;
    cca_tree_insert(&heap->unmapped, &block->node);
}

void cca_expandable_remove_if_empty(struct cca_heap *heap, struct cca_segment *segment)
{
    struct cca_block *block = segment->first;
    if (block->state != CCA_BLOCK_UNMAPPED || cca_block_is_split(block)) {
        return;
    }
    uint64_t addr = segment->addr, generation = heap->generation;
    size_t bytes = segment->bytes;
    cca_tree_erase(&heap->unmapped, &block->node);
    cca_pool_give(&heap->block_records, block);
    cca_segment_map_remove(&heap->allocator->segments, segment);
    heap->expandables--;
    cca_segment_leave_pool(segment);
    cca_private_pool_sweep(heap);
    cca_list_remove(&segment->link);
    cca_pool_give(&heap->segment_records, segment);
    int depth = cca_heap_step_out(heap);
    if (cca_device_call_begin(heap)) {
        if (atomic_load(&heap->generation) == generation) {
            (void)heap->device.ops->address_free(heap->device.self, addr, bytes);
        }
        cca_device_call_end(heap);
    }
    cca_heap_step_in(heap, depth);
}

static size_t page_bytes(const struct cca_heap *heap, bool is_small)
{
    size_t bytes = is_small ? CCA_SMALL_SEGMENT : heap->allocator->policy.large_segment;
    return cca_round_up(bytes, heap->device.map_granularity);
}

/* A reservation becomes a segment of the group with one UNMAPPED block. */
static void add_segment(struct cca_heap *heap, struct cca_segment *segment,
                        const struct cca_segment *group, uint64_t addr, size_t bytes, size_t page)
{
    struct cca_block *block = segment->first;
    segment->heap = heap;
    segment->addr = block->addr = addr;
    segment->bytes = block->bytes = bytes;
    segment->page_bytes = page;
    segment->key = group->key;
    cca_segment_settle(heap, segment, group->pool, group->is_small);
    if (segment->pool != NULL) {
        segment->pool->segments++;
    }
    block->segment = segment;
    heap->expandables++;
    cca_list_push_back(&heap->segments, &segment->link);
    cca_segment_map_insert(&heap->allocator->segments, segment);
    cca_expandable_put_unmapped(heap, block);
}

/* Addresses for an eighth more than the device's memory, so that holes do not matter much. */
static struct cca_status reserve(struct cca_heap *heap, const struct cca_request *request,
                                 size_t rounded)
{
    struct cca_segment group = group_of(heap, request, rounded);
    size_t page = page_bytes(heap, group.is_small);
    size_t bytes = cca_round_up(heap->device_bytes / 8 * 9, page);
    if (rounded > bytes) {
        return (struct cca_status){heap->device_bytes == 0 ? CCA_UNSUPPORTED : CCA_NO_MEMORY, 0};
    }
    struct cca_segment *records = cca_heap_take_records(heap);
    if (records == NULL) {
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    uint64_t generation = heap->generation, addr = 0;
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    int depth = cca_heap_step_out(heap);
    if (cca_device_call_begin(heap)) {
        status = heap->device.ops->address_reserve(heap->device.self, bytes, &addr);
        cca_device_call_end(heap);
    }
    cca_heap_step_in(heap, depth);
    if (status.kind != CCA_OK || heap->generation != generation) {
        cca_heap_give_records(heap, records);
        /* Want of addresses is not want of memory. */
        return (struct cca_status){status.kind == CCA_FATAL ? CCA_FATAL : CCA_UNSUPPORTED,
                                   status.raw};
    }
    add_segment(heap, records, &group, addr, bytes, page);
    return cca_status_ok();
}

/* Blocks in the order of their addresses, without a gap, of which the MOVING ones get memory. */
struct claim {
    struct cca_list blocks; /* linked by `wait` */
    struct cca_segment *segment;
    size_t missing_bytes; /* of the MOVING ones */
};

/* False when memory for a record is refused. */
static bool claim_from(struct cca_heap *heap, struct cca_block *block, size_t rounded,
                       struct claim *claim)
{
    size_t bytes = 0, page = block->segment->page_bytes;
    struct cca_block *rest = cca_pool_take(&heap->block_records);
    if (rest == NULL) {
        return false;
    }
    *claim = (struct claim){.segment = block->segment};
    cca_list_init(&claim->blocks);
    for (; bytes < rounded; block = block->next) {
        if (block->state == CCA_BLOCK_FREE) {
            cca_block_pool_remove(block->segment->blocks, block);
            block->state = CCA_BLOCK_CLAIMED;
        } else {
            size_t needed = cca_round_up(rounded - bytes, page);
            cca_tree_erase(&heap->unmapped, &block->node);
            block->state = CCA_BLOCK_MOVING; /* so that the rest does not join it again */
            if (needed < block->bytes) {
                cca_block_split(block, rest, needed);
                cca_expandable_put_unmapped(heap, rest);
                rest = NULL;
            }
            block->freed_seq = 0;
            block->key = block->segment->key;
            claim->missing_bytes += block->bytes;
        }
        bytes += block->bytes;
        cca_list_push_back(&claim->blocks, &block->wait);
    }
    cca_pool_give(&heap->block_records, rest);
    return true;
}

/* The heap was dropped: the records are all that is left. */
static void forget(struct cca_heap *heap, struct cca_list *blocks)
{
    CCA_LIST_EACH (link, blocks) {
        cca_list_remove(link);
        cca_pool_give(&heap->block_records, CCA_LIST_ENTRY(link, struct cca_block, wait));
    }
}

/* What got its memory is free, the rest without memory as before. */
static void give_up_claim(struct cca_heap *heap, struct claim *claim)
{
    CCA_LIST_EACH (link, &claim->blocks) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        cca_list_remove(link);
        if (block->state == CCA_BLOCK_MOVING) {
            cca_expandable_put_unmapped(heap, block);
        } else {
            (void)cca_heap_join(heap, block, false);
        }
    }
    cca_expandable_remove_if_empty(heap, claim->segment);
}

/* Everything claimed has memory now: one free block, of the key of its used parts. */
static struct cca_block *fulfil(struct cca_heap *heap, struct claim *claim)
{
    struct cca_block *whole = NULL;
    CCA_LIST_EACH (link, &claim->blocks) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        cca_list_remove(link);
        if (whole == NULL) {
            whole = block;
            continue;
        }
        whole->freed_seq = cca_block_last_use(whole, block);
        whole->key = whole->key != CCA_KEY_READY ? whole->key : block->key;
        cca_block_merge(whole, block);
        cca_pool_give(&heap->block_records, block);
    }
    /* Not with what another stream may still use: it is for the request at hand. */
    return cca_heap_join(heap, whole, true).block;
}

static struct cca_status call_map(struct cca_heap *heap, uint64_t addr, size_t page, size_t pages,
                                  uint64_t peers)
{
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    int depth = cca_heap_step_out(heap);
    if (cca_device_call_begin(heap)) {
        status = heap->device.ops->map(heap->device.self, addr, page, pages, peers);
        cca_device_call_end(heap);
    }
    cca_heap_step_in(heap, depth);
    return status;
}

static void report_map(struct cca_heap *heap, const struct cca_block *block,
                       const struct cca_request *request, uint64_t took_ns, bool is_contended)
{
    struct cca_segment *segment = block->segment;
    uint64_t now_ns = cca_clock_ns();
    segment->stack = segment->stack != 0 ? segment->stack : request->stack;
    segment->alloc_time_ns = segment->alloc_time_ns != 0 ? segment->alloc_time_ns : now_ns;
    struct cca_event event = cca_heap_segment_event(CCA_EVENT_SEGMENT_MAP, segment, request,
                                                    took_ns, now_ns);
    event.addr = block->addr;
    event.requested_bytes = event.block_bytes = block->bytes;
    event.flags |= is_contended ? CCA_EVENT_CONTENDED : 0;
    cca_heap_report(heap, &event);
}

/* One MOVING block gets memory, and is opened to peers that came meanwhile. */
static struct cca_status map_block(struct cca_heap *heap, struct cca_block *block,
                                   const struct cca_request *request)
{
    uint64_t generation = heap->generation, began_ns = cca_clock_ns(),
             peers = cca_expandable_peers(heap);
    size_t bytes = block->bytes, page = block->segment->page_bytes;
    bool is_contended = heap->in_flight++ != 0;
    unsigned growths = ++heap->growths;
    struct cca_status status = call_map(heap, block->addr, page, bytes / page, peers);
    while (status.kind == CCA_OK && heap->generation == generation &&
           cca_expandable_peers(heap) != peers) {
        uint64_t more = cca_expandable_peers(heap) & ~peers;
        peers |= more;
        cca_expandable_allow(heap, block->addr, page, bytes / page, more);
    }
    heap->in_flight--;
    if (heap->generation == generation && status.kind == CCA_OK) {
        block->state = CCA_BLOCK_CLAIMED;
        block->segment->mapped_bytes += bytes;
        heap->in_flight_bytes -= bytes;
        report_map(heap, block, request, cca_clock_ns() - began_ns,
                   is_contended || heap->growths != growths);
    }
    return status;
}

/* The MOVING blocks of a claim, one after the other. Nothing of it is left when the heap was
 * dropped meanwhile. */
static struct cca_status map_claim(struct cca_heap *heap, struct claim *claim,
                                   const struct cca_request *request)
{
    uint64_t generation = heap->generation;
    struct cca_status status = cca_status_ok();
    size_t missing = claim->missing_bytes;
    heap->reserved_bytes += missing;
    heap->in_flight_bytes += missing;
    CCA_LIST_EACH (link, &claim->blocks) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        if (block->state != CCA_BLOCK_MOVING) {
            continue;
        }
        size_t bytes = block->bytes;
        status = map_block(heap, block, request);
        if (status.kind != CCA_OK || heap->generation != generation) {
            break;
        }
        missing -= bytes;
    }
    heap->reserved_bytes -= missing;
    heap->in_flight_bytes -= missing;
    if (heap->generation != generation) {
        forget(heap, &claim->blocks);
        return (struct cca_status){CCA_UNSUPPORTED, 0};
    }
    return status;
}

struct cca_status cca_expandable_grow(struct cca_heap *heap, const struct cca_request *request,
                                      size_t rounded, struct cca_block **block_out)
{
    struct cca_block *start = find_room(heap, request, rounded);
    uint64_t generation = heap->generation;
    struct claim claim;
    if (start == NULL) {
        struct cca_status status = reserve(heap, request, rounded);
        if (status.kind != CCA_OK) {
            return status;
        }
        start = find_room(heap, request, rounded);
        CCA_ASSERT(start != NULL);
    }
    if (!claim_from(heap, start, rounded, &claim)) {
        cca_expandable_remove_if_empty(heap, start->segment);
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    struct cca_status status = map_claim(heap, &claim, request);
    if (heap->generation != generation) {
        return status;
    }
    if (status.kind != CCA_OK) {
        if (status.kind == CCA_FATAL) {
            heap->state = CCA_HEAP_DEAD;
        }
        give_up_claim(heap, &claim);
        return status;
    }
    struct cca_block *block = fulfil(heap, &claim);
    *block_out = cca_heap_take_block(heap, block, request, rounded, cca_clock_ns());
    return status;
}
