/* SPDX-License-Identifier: MIT */
/* Blocks and segments: the records, their neighbours, and how blocks are cut and joined. All of it
 * is guarded by the lock of the heap that owns the segment. */
#ifndef CCA_ALLOC_BLOCK_H
#define CCA_ALLOC_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/allocator.h"
#include "base/check.h"
#include "base/list.h"
#include "base/tree.h"
#include "observe/event.h"

struct cca_segment;
struct cca_stream_use;

enum cca_block_state {
    CCA_BLOCK_FREE,    /* in a block pool */
    CCA_BLOCK_LIVE,    /* handed out */
    CCA_BLOCK_PENDING, /* freed by the program; not reusable before its fence is done, if ever */
    /* Of segments that grow by mapping, see expandable.h: */
    CCA_BLOCK_UNMAPPED, /* addresses without memory; in heap->unmapped */
    CCA_BLOCK_CLAIMED,  /* was FREE; of the thread that maps memory beside it */
    CCA_BLOCK_MOVING    /* memory comes or goes; of the thread that makes the calls */
};

/* A part of a segment. Identity: the blocks of a segment, followed by `next`, tile it from its
 * start to its end; addr + bytes == next->addr. */
struct cca_block {
    union {
        struct {
            struct cca_block *left, *right; /* FREE: in its pool */
        };
        /* PENDING: in its fence, or unlinked while the free is under way; CLAIMED and MOVING: in
         * the list of their thread. */
        struct cca_list wait;
    };
    uint64_t addr;
    size_t bytes;
    cca_key key; /* FREE: who may take it; else: the stream it was handed out for */
    struct cca_block *prev, *next;
    struct cca_segment *segment;
    union {
        struct {
            size_t requested_bytes; /* of the last hand-out; FREE: 0 */
            uint64_t alloc_time_ns;
            uint32_t stack, thread; /* of the allocation */
        };
        struct cca_tree_node node; /* UNMAPPED: in heap->unmapped */
    };
    union {
        uint64_t freed_seq; /* FREE: position in the order of frees of its heap; alloc/fence.h */
        struct cca_stream_use *uses; /* LIVE: on other streams; alloc/stream_use.h */
    };
    union {
        uint32_t free_stack; /* PENDING: of the free, or the allocation's */
        uint32_t born;       /* FREE: the searches its pool had seen when it came in */
    };
    union {
        uint16_t use_events; /* PENDING: that it waits for, in the queues of alloc/stream_use.h */
        uint16_t bin;        /* FREE: of its pool */
    };
    uint8_t state;
    bool was_oversize; /* at hand-out, so that the free counts the same */
};
_Static_assert(sizeof(struct cca_block) <= 104, "host memory per block is a promise: tests/bench");

/* Memory as the driver gave it; or addresses that get memory page by page, in which case it begins
 * and ends with pages, and so does everything of it that is UNMAPPED or MOVING. */
struct cca_segment {
    struct cca_tree_node node; /* in the segment map, by address */
    struct cca_list link;      /* in its heap */
    struct cca_heap *heap;
    struct cca_block *first; /* block at its start */
    uint64_t addr;
    size_t bytes;                  /* of memory; or of addresses, where it is expandable */
    size_t page_bytes;             /* expandable: what is mapped and unmapped at a time; else 0 */
    size_t mapped_bytes;           /* expandable: blocks that are not UNMAPPED or MOVING */
    size_t aside_bytes;            /* of its blocks, those in heap->aside_plain */
    cca_key key;                   /* what it was obtained for */
    struct cca_private_pool *pool; /* NULL: the default one */
    struct cca_block_pool *blocks; /* where its free blocks are */
    uint64_t alloc_time_ns;
    uint32_t stack;
    uint8_t event_flags; /* what the events of the segment and of its blocks share */
    bool is_small;
    bool is_passed; /* the program's own driver allocation: one block, accounted for only */
    bool was_oversize;
};

/* Whether the block has a neighbour, i.e. is a part of a split segment. */
static inline bool cca_block_is_split(const struct cca_block *block)
{
    return block->prev != NULL || block->next != NULL;
}

static inline bool cca_segment_is_expandable(const struct cca_segment *segment)
{
    return segment->page_bytes != 0;
}

/* What it holds of the device's memory. */
static inline size_t cca_segment_held_bytes(const struct cca_segment *segment)
{
    return cca_segment_is_expandable(segment) ? segment->mapped_bytes : segment->bytes;
}

/* Whether there is memory behind the block, as far as the books go. */
static inline bool cca_block_is_mapped(const struct cca_block *block)
{
    return block->state != CCA_BLOCK_UNMAPPED && block->state != CCA_BLOCK_MOVING;
}

/* Whether the block counts as inactive_split when it is free: parts of expandable segments do not,
 * as in PyTorch. */
static inline bool cca_block_is_part(const struct cca_block *block)
{
    return cca_block_is_split(block) && !cca_segment_is_expandable(block->segment);
}

/* Whether the block is all of a segment that goes back to the driver as one. */
static inline bool cca_block_is_whole(const struct cca_block *block)
{
    return !cca_block_is_split(block) && !cca_segment_is_expandable(block->segment);
}

/* Of a part of an expandable segment: the whole pages in it. */
size_t cca_block_whole_page_bytes(const struct cca_block *block);

/* What of a FREE block could go back to the driver: all of it or nothing, or whole pages. */
static inline size_t cca_block_releasable_bytes(const struct cca_block *block)
{
    if (CCA_UNLIKELY(cca_segment_is_expandable(block->segment))) {
        return cca_block_whole_page_bytes(block);
    }
    return cca_block_is_split(block) ? 0 : block->bytes;
}

/* The later place in the order of frees of two FREE blocks that become one. What is READY was over
 * before it was free, so its place says nothing. */
static inline uint64_t cca_block_last_use(const struct cca_block *a, const struct cca_block *b)
{
    uint64_t x = a->key == CCA_KEY_READY ? 0 : a->freed_seq;
    uint64_t y = b->key == CCA_KEY_READY ? 0 : b->freed_seq;
    return x > y ? x : y;
}

/* Cuts `block` after `bytes`: `rest`, a record with any content, becomes the upper part. State,
 * pool and key of `rest` are the caller's to set; it inherits segment and neighbours. */
static inline void cca_block_split(struct cca_block *block, struct cca_block *rest, size_t bytes)
{
    CCA_ASSERT(bytes > 0 && bytes < block->bytes);
    rest->segment = block->segment;
    rest->addr = block->addr + bytes;
    rest->bytes = block->bytes - bytes;
    rest->prev = block;
    rest->next = block->next;
    rest->requested_bytes = 0;
    rest->alloc_time_ns = 0;
    rest->stack = rest->thread = 0;
    rest->freed_seq = 0;
    rest->use_events = 0;
    rest->was_oversize = false;
    if (rest->next != NULL) {
        rest->next->prev = rest;
    }
    block->next = rest;
    block->bytes = bytes;
}

/* Joins `upper` into its lower neighbour `lower`; the record of `upper` is free afterwards. */
static inline void cca_block_merge(struct cca_block *lower, struct cca_block *upper)
{
    CCA_ASSERT(lower->next == upper && lower->addr + lower->bytes == upper->addr);
    lower->bytes += upper->bytes;
    lower->next = upper->next;
    if (lower->next != NULL) {
        lower->next->prev = lower;
    }
}

#endif
