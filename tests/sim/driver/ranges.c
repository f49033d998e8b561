/* SPDX-License-Identifier: MIT */
#include "ranges.h"

#include <stddef.h>
#include <stdlib.h>

/* by_size has the size as key and the start as tie. */
struct range {
    struct sim_node by_address;
    struct sim_node by_size;
};

static struct range *of_address(struct sim_node *node)
{
    return (struct range *)((char *)node - offsetof(struct range, by_address));
}

static struct range *of_size(struct sim_node *node)
{
    return (struct range *)((char *)node - offsetof(struct range, by_size));
}

static void add(struct sim_ranges *ranges, uint64_t start, uint64_t size)
{
    struct range *range = calloc(1, sizeof(*range));

    range->by_address.key = start;
    range->by_address.end = start + size;
    range->by_size.key = size;
    range->by_size.tie = start;
    sim_tree_insert(&ranges->by_address, &range->by_address);
    sim_tree_insert(&ranges->by_size, &range->by_size);
}

static void drop(struct sim_ranges *ranges, struct range *range)
{
    sim_tree_remove(&ranges->by_address, &range->by_address);
    sim_tree_remove(&ranges->by_size, &range->by_size);
    free(range);
}

bool sim_ranges_take(struct sim_ranges *ranges, uint64_t size, uint64_t *start_out)
{
    struct sim_node *found = sim_tree_ceiling(ranges->by_size, size, 0);

    if (found == NULL) {
        return false;
    }
    uint64_t start = found->tie;
    uint64_t left = found->key - size;
    drop(ranges, of_size(found));
    if (left != 0) {
        add(ranges, start + size, left);
    }
    *start_out = start;
    return true;
}

void sim_ranges_give(struct sim_ranges *ranges, uint64_t start, uint64_t size, uint64_t boundary,
                     uint64_t *start_out, uint64_t *size_out)
{
    uint64_t end = start + size;
    struct sim_node *before = sim_tree_floor(ranges->by_address, start);
    struct sim_node *after = sim_tree_ceiling(ranges->by_address, end, 0);

    if (before != NULL && before->end == start && (boundary == 0 || start % boundary != 0)) {
        start = before->key;
        drop(ranges, of_address(before));
    }
    if (after != NULL && after->key == end && (boundary == 0 || end % boundary != 0)) {
        end = after->end;
        drop(ranges, of_address(after));
    }
    add(ranges, start, end - start);
    *start_out = start;
    *size_out = end - start;
}

void sim_ranges_cut(struct sim_ranges *ranges, uint64_t start, uint64_t size)
{
    struct sim_node *found = sim_tree_floor(ranges->by_address, start);
    uint64_t low = found->key;
    uint64_t high = found->end;

    drop(ranges, of_address(found));
    if (low < start) {
        add(ranges, low, start - low);
    }
    if (start + size < high) {
        add(ranges, start + size, high - start - size);
    }
}

bool sim_ranges_next(const struct sim_ranges *ranges, uint64_t from, uint64_t *start_out,
                     uint64_t *size_out)
{
    struct sim_node *found = sim_tree_ceiling(ranges->by_address, from, 0);

    if (found == NULL) {
        return false;
    }
    *start_out = found->key;
    *size_out = found->end - found->key;
    return true;
}
