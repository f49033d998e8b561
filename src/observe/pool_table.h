/* SPDX-License-Identifier: MIT */
/* The private pools of one device as events name them: a number for each id, and the figures of
 * each, which follow from the events. A row outlives its pool, since the history still names it; a
 * pool that comes back under its id gets its row again. No lock of its own: guarded by the heap
 * lock. */
#ifndef CCA_OBSERVE_POOL_TABLE_H
#define CCA_OBSERVE_POOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "observe/event.h"
#include "observe/stats.h"

/* Pools at once: events keep a number in 16 bits, 0 is the default pool. */
enum { CCA_POOLS_MAX = UINT16_MAX };

struct cca_pool_row {
    uint64_t id[2];
    struct cca_pool_stats stats;
    bool is_live; /* the pool is there */
};

struct cca_pool_table {
    struct cca_pool_row *rows; /* [number]; NULL before the first pool */
    unsigned last;             /* highest number ever given */
};

/* The number of a pool that comes up, from 1 on. 0: all are in use, or memory is refused. */
uint16_t cca_pool_table_add(struct cca_pool_table *table, const uint64_t id[2]) CCA_MUST_CHECK;

/* The pool is gone; its number may be given to another once there is no fresh one. */
void cca_pool_table_drop(struct cca_pool_table *table, uint16_t number);

/* Applies one event to the figures of the pool that it names. */
void cca_pool_table_apply(struct cca_pool_table *table, const struct cca_event *event);

/* As cca_stats_reset_peak and cca_stats_reset_accumulated, for every pool. */
void cca_pool_table_reset_peak(struct cca_pool_table *table);
void cca_pool_table_reset_accumulated(struct cca_pool_table *table);

/* The row of a number that was given; NULL for 0. */
const struct cca_pool_row *cca_pool_table_row(const struct cca_pool_table *table, uint16_t number);

/* The rows from number 1 on, those of pools that are gone included. */
struct cca_pool_rows cca_pool_table_rows(const struct cca_pool_table *table);

void cca_pool_table_fini(struct cca_pool_table *table);

#endif
