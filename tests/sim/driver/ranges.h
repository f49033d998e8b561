/* SPDX-License-Identifier: MIT */
/* A set of free address ranges: best fit, lowest address first among equals, neighbours joined. */
#ifndef SIM_RANGES_H
#define SIM_RANGES_H

#include "tree.h"

#include <stdbool.h>

struct sim_ranges {
    struct sim_node *by_address;
    struct sim_node *by_size;
};

bool sim_ranges_take(struct sim_ranges *ranges, uint64_t size, uint64_t *start_out);
/* Joins with the neighbours that lie in the same boundary-sized piece (0: no pieces) and tells the
 * free range that came of it. */
void sim_ranges_give(struct sim_ranges *ranges, uint64_t start, uint64_t size, uint64_t boundary,
                     uint64_t *start_out, uint64_t *size_out);
/* Takes [start, start + size) out, which must lie within one free range. */
void sim_ranges_cut(struct sim_ranges *ranges, uint64_t start, uint64_t size);
/* The first free range at or after an address; false when there is none. */
bool sim_ranges_next(const struct sim_ranges *ranges, uint64_t from, uint64_t *start_out,
                     uint64_t *size_out);

#endif
