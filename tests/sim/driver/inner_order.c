/* SPDX-License-Identifier: MIT */
#include "inner_order.h"

#include "access.h"
#include "block.h"
#include "defect.h"

#include <stdlib.h>

#define BITS 64

/* Row by row: for each node, the nodes that come before it. */
struct paths {
    uint64_t *bits;
    size_t words;
};

static void set_before(const struct paths *paths, size_t node, size_t before)
{
    uint64_t *row = paths->bits + node * paths->words;
    const uint64_t *other = paths->bits + before * paths->words;

    for (size_t i = 0; i < paths->words; i++) {
        row[i] |= other[i];
    }
    row[before / BITS] |= (uint64_t)1 << before % BITS;
}

static bool is_before(const struct paths *paths, size_t before, size_t node)
{
    return (paths->bits[node * paths->words + before / BITS] >> before % BITS & 1) != 0;
}

static struct paths find_paths(struct CUgraphNode_st *const *nodes, size_t count)
{
    struct paths paths = {.words = count / BITS + 1};

    paths.bits = calloc(count * paths.words + 1, sizeof(*paths.bits));
    for (size_t i = 0; i < count; i++) {
        nodes[i]->mark = (unsigned)i;
        for (size_t j = 0; j < nodes[i]->before_count; j++) {
            set_before(&paths, i, nodes[i]->before[j]->mark);
        }
    }
    return paths;
}

/* Does [start, end) meet a row of the range? */
static bool meets_row(const struct sim_range *range, uint64_t start, uint64_t end)
{
    uint64_t first = sim_block_identity(range->block, range->address);
    uint64_t last = first + (range->rows - 1) * range->pitch_bytes;

    if (end <= first || start >= last + range->size_bytes) {
        return false;
    }
    /* The last row that begins before the end is the only one that can reach it. */
    uint64_t row = end - 1 - first;
    row -= range->pitch_bytes != 0 ? row % range->pitch_bytes : 0;
    if (first + row > last) {
        row = last - first;
    }
    return first + row + range->size_bytes > start;
}

static bool do_meet(const struct sim_range *one, const struct sim_range *other)
{
    if ((!one->is_write && !other->is_write) || one->block == NULL || other->block == NULL ||
        one->size_bytes == 0 || other->size_bytes == 0) {
        return false;
    }
    for (size_t row = 0; row < one->rows; row++) {
        uint64_t start = sim_block_identity(one->block, one->address) + row * one->pitch_bytes;
        if (meets_row(other, start, start + one->size_bytes)) {
            return true;
        }
    }
    return false;
}

/* Reports the first bytes in which they meet. */
static void check_pair(const struct sim_op *later, const struct sim_op *earlier)
{
    for (unsigned i = 0; i < later->range_count; i++) {
        for (unsigned j = 0; j < earlier->range_count; j++) {
            if (do_meet(&later->ranges[i], &earlier->ranges[j])) {
                struct sim_party by = sim_op_party(later, &later->ranges[i]);
                struct sim_party with = sim_op_party(earlier, &earlier->ranges[j]);
                sim_violation(later->queue->context, "unordered overlap", &by, &with);
                return;
            }
        }
    }
}

void sim_inner_order_check(struct CUgraphNode_st *const *nodes, size_t count,
                           struct sim_op *const *ops, const unsigned *ends)
{
    struct paths paths = find_paths(nodes, count);

    for (size_t later = 1; later < count; later++) {
        for (size_t earlier = 0; earlier < later; earlier++) {
            if (is_before(&paths, earlier, later) || SIM_DEFECT(bodies_are_not_checked)) {
                continue;
            }
            for (unsigned i = ends[later - 1]; i < ends[later]; i++) {
                for (unsigned j = earlier == 0 ? 0 : ends[earlier - 1]; j < ends[earlier]; j++) {
                    check_pair(ops[i], ops[j]);
                }
            }
        }
    }
    free(paths.bits);
}
