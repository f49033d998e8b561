/* SPDX-License-Identifier: MIT */
/* What the driver of the golden scenarios is made of: its text in and its text out. */
#ifndef CCA_TEST_GOLDEN_H
#define CCA_TEST_GOLDEN_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "alloc/allocator_internal.h"
#include "alloc/heap.h"
#include "support/mixed_workload.h"

enum { OP_WORDS_MAX = 4 };

/* One line, split in place. */
struct op {
    const char *name;
    const char *words[OP_WORDS_MAX]; /* NULL where there are no more */
};

/* False for an empty line. */
bool op_parse(struct op *op, char *line);
uint64_t op_number(const struct op *op, int word, uint64_t otherwise);

/* Names of live blocks. */
enum { NAMES_MAX = 4096, NAME_BYTES = 32 };
struct name_map {
    struct {
        char name[NAME_BYTES];
        uint64_t addr; /* 0: none */
    } entries[NAMES_MAX];
    unsigned count;
};
uint64_t name_get(const struct name_map *map, const char *name);
void name_set(struct name_map *map, const char *name, uint64_t addr);

/* `, "name": value` for every statistic. */
void print_stats_members(const struct cca_stats *stats);
void print_snapshot(struct cca_heap *heap, unsigned at);
void print_trace(const struct cca_trace_ring *ring);

#endif
