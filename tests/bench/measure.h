/* SPDX-License-Identifier: MIT */
/* How the benchmarks measure: in batches, each between two runs of a calibration loop. A batch
 * counts as quiet when both loops ran at nearly their best speed, that is, when nothing else had
 * the core. One figure is one JSON line. */
#ifndef CCA_BENCH_MEASURE_H
#define CCA_BENCH_MEASURE_H

#include <stdint.h>

enum { MEASURE_BATCHES = 400, MEASURE_QUIET_MIN = 20 };

struct measure {
    double ns[MEASURE_BATCHES];       /* per operation, a batch each */
    uint64_t around[MEASURE_BATCHES]; /* the slower calibration loop beside it, ns */
    int count;
};

struct figure {
    double min, median,
        max; /* ns per operation, over the quiet batches (over all: fewer than 20) */
    double quiet_share;
};

typedef void (*batch_fn)(void *ctx, long ops);

/* Keeps this thread on one core. */
void measure_pin(int core);

/* Runs `batches` batches of `ops` operations; `units` is how many units the figure is divided by
 * in each operation (1, or the work items in one). The first batch warms and is dropped. */
struct figure measure_batches(batch_fn batch, void *ctx, long ops, int batches);

/* {"bench": NAME, "what": DETAIL, "unit": "ns", "min": .., "median": .., "max": .., "quiet": ..,
 *  "load": ..} */
void measure_print(const char *name, const char *detail, const struct figure *figure);
/* The same for a figure without spread. */
void measure_print_value(const char *name, const char *detail, const char *unit, double value);

/* What nothing can undercut here, measured now: an uncontended mutex, a clock read. Printed. */
void measure_print_floors(void);

#endif
