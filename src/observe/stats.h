/* SPDX-License-Identifier: MIT */
/* Statistics of one device as a function of events. No lock of its own: guarded by the heap lock.
 */
#ifndef CCA_OBSERVE_STATS_H
#define CCA_OBSERVE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "observe/event.h"

/* Identity before any accumulated reset: current = allocated - freed; peak >= current. */
struct cca_stat {
    int64_t current, peak, allocated, freed;
};

enum cca_stat_pool { CCA_STAT_ALL, CCA_STAT_SMALL, CCA_STAT_LARGE, CCA_STAT_POOLS };

struct cca_stats {
#define ARRAY(name, unit, what)  struct cca_stat name[CCA_STAT_POOLS];
#define SINGLE(name, unit, what) struct cca_stat name;
#define COUNTER(name, what)      int64_t name;
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
    int64_t max_split_size; /* a setting, not a counter: bytes, -1 = unlimited */
};

/* Of one private pool. */
struct cca_pool_stats {
#define ARRAY(name, unit, what)
#define SINGLE(name, unit, what)
#define COUNTER(name, what)
#define POOL(name, unit, what) struct cca_stat name[CCA_STAT_POOLS];
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
};

/* Of one stream or pool, as it is now. */
struct cca_sums {
#define ARRAY(name, unit, what)
#define SINGLE(name, unit, what)
#define COUNTER(name, what)
#define SUM(name, unit, what) int64_t name;
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
};

/* Rows of a pool table: see pool_table.h. */
struct cca_pool_row;
struct cca_pool_rows {
    const struct cca_pool_row *rows;
    size_t count;
};

/* What is ours alone: how the cache and the fences did. */
struct cca_counters {
    int64_t allocs; /* requests served, by the cache or passed through */
    int64_t hits;   /* of these, with no driver allocation */
    int64_t passed; /* of these, by the driver itself */
    /* Segments of the cache only: what is passed through costs the same without us. */
    int64_t driver_allocs, driver_frees;
    int64_t driver_alloc_ns, driver_free_ns;
    int64_t free_waits, free_wait_ns;
    int64_t fences, fence_joins;
    /* Driver allocations by duration: slot i counts those of 2^i .. 2^(i+1)-1 ns. Contended ones
     * are left out: they took as long as several. */
    uint32_t driver_alloc_histogram[48];
};

/* Applies one event; every counter that follows from it changes. */
void cca_stats_apply(struct cca_stats *stats, const struct cca_event *event);
void cca_counters_apply(struct cca_counters *counters, const struct cca_event *event);
/* The event is one of this pool. */
void cca_pool_stats_apply(struct cca_pool_stats *stats, const struct cca_event *event);

/* torch.cuda.reset_peak_memory_stats: peak = current. */
void cca_stats_reset_peak(struct cca_stats *stats);
void cca_pool_stats_reset_peak(struct cca_pool_stats *stats);

/* torch.cuda.reset_accumulated_memory_stats: allocated = freed = 0 and the counters 0. */
void cca_stats_reset_accumulated(struct cca_stats *stats);
void cca_pool_stats_reset_accumulated(struct cca_pool_stats *stats);

/* Every key of torch.cuda.memory_stats's flat dictionary with its value, sorted by key. Those of a
 * private pool, of the pools that are there: reserved_bytes_by_private_pools.0_1.all.current. */
typedef void (*cca_stats_each_fn)(void *user, const char *key, int64_t value);
void cca_stats_each(const struct cca_stats *stats, struct cca_pool_rows pools,
                    cca_stats_each_fn each, void *user);

/* The value of one key of the flat dictionary; -ENOENT when there is none of that name. */
int cca_stats_value(const struct cca_stats *stats, struct cca_pool_rows pools, const char *key,
                    int64_t *value_out);

/* Median duration of this process's own driver allocations, from the histogram; 0 when none was
 * alone. */
uint64_t cca_counters_driver_alloc_median_ns(const struct cca_counters *counters);

#endif
