/* SPDX-License-Identifier: MIT */
#include "observe/stats.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/format.h"
#include "observe/pool_table.h"
#include "observe/stats_count.h"

/* Room for the longest key: a name, two numbers of 20 digits, a pool and a metric. */
enum { KEY_BYTES = 128 };

enum row_shape { ROW_ARRAY, ROW_SINGLE, ROW_NUMBER, ROW_POOL };

struct row {
    const char *name;
    size_t offset; /* into struct cca_stats; ROW_POOL: into struct cca_pool_stats */
    enum row_shape shape;
};

static const struct row rows[] = {
#define ARRAY(name, unit, what)  {#name, offsetof(struct cca_stats, name), ROW_ARRAY},
#define SINGLE(name, unit, what) {#name, offsetof(struct cca_stats, name), ROW_SINGLE},
#define COUNTER(name, what)      {#name, offsetof(struct cca_stats, name), ROW_NUMBER},
#define POOL(name, unit, what)   {#name, offsetof(struct cca_pool_stats, name), ROW_POOL},
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
    {"max_split_size", offsetof(struct cca_stats, max_split_size), ROW_NUMBER},
};

void cca_stats_apply(struct cca_stats *stats, const struct cca_event *event)
{
    cca_stats_count(stats, event);
}

void cca_counters_apply(struct cca_counters *counters, const struct cca_event *event)
{
    cca_counters_count(counters, event);
}

void cca_counters_count_driver_alloc(struct cca_counters *counters, const struct cca_event *event)
{
    uint64_t duration_ns = event->duration_ns;
    unsigned slot = duration_ns > 1 ? 63u - (unsigned)__builtin_clzll(duration_ns) : 0;
    unsigned last = CCA_ARRAY_LEN(counters->driver_alloc_histogram) - 1;

    counters->driver_allocs += 1;
    counters->driver_alloc_ns += (int64_t)duration_ns;
    if ((event->flags & CCA_EVENT_CONTENDED) == 0) {
        counters->driver_alloc_histogram[slot < last ? slot : last] += 1;
    }
}

void cca_pool_stats_apply(struct cca_pool_stats *stats, const struct cca_event *event)
{
    int64_t bytes = (int64_t)event->block_bytes;
    enum cca_stat_pool pool = cca_stat_pool_of(event);

    switch (event->kind) {
    case CCA_EVENT_SEGMENT_ALLOC:
    case CCA_EVENT_SEGMENT_MAP:
        cca_stat_up_array(stats->reserved_bytes_by_private_pools, pool, bytes);
        break;
    case CCA_EVENT_SEGMENT_FREE:
    case CCA_EVENT_SEGMENT_UNMAP:
        cca_stat_down_array(stats->reserved_bytes_by_private_pools, pool, bytes);
        break;
    default: break;
    }
}

static void reset_peaks(struct cca_stat *stats, int count)
{
    for (int i = 0; i < count; i++) {
        stats[i].peak = stats[i].current;
    }
}

void cca_stats_reset_peak(struct cca_stats *stats)
{
#define ARRAY(name, unit, what)  reset_peaks(stats->name, CCA_STAT_POOLS);
#define SINGLE(name, unit, what) reset_peaks(&stats->name, 1);
#define COUNTER(name, what)
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
}

void cca_pool_stats_reset_peak(struct cca_pool_stats *stats)
{
#define ARRAY(name, unit, what)
#define SINGLE(name, unit, what)
#define COUNTER(name, what)
#define POOL(name, unit, what) reset_peaks(stats->name, CCA_STAT_POOLS);
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
}

static void reset_accumulated(struct cca_stat *stats, int count)
{
    for (int i = 0; i < count; i++) {
        stats[i].allocated = 0;
        stats[i].freed = 0;
    }
}

void cca_stats_reset_accumulated(struct cca_stats *stats)
{
#define ARRAY(name, unit, what)  reset_accumulated(stats->name, CCA_STAT_POOLS);
#define SINGLE(name, unit, what) reset_accumulated(&stats->name, 1);
#define COUNTER(name, what)      stats->name = 0;
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
}

void cca_pool_stats_reset_accumulated(struct cca_pool_stats *stats)
{
#define ARRAY(name, unit, what)
#define SINGLE(name, unit, what)
#define COUNTER(name, what)
#define POOL(name, unit, what) reset_accumulated(stats->name, CCA_STAT_POOLS);
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
}

/* The row that follows `last` in the order of the keys, or NULL. The names alone decide: '.', which
 * follows a name in its keys, sorts before every character of a name. */
static const struct row *next_row(const struct row *last)
{
    const struct row *next = NULL;

    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        if ((last == NULL || strcmp(row->name, last->name) > 0) &&
            (next == NULL || strcmp(row->name, next->name) < 0)) {
            next = row;
        }
    }
    return next;
}

static void each_metric(const struct cca_stat *stat, const char *name, const char *pool,
                        cca_stats_each_fn each, void *user)
{
    const struct {
        const char *name;
        int64_t value;
    } metrics[] = {
        {".allocated", stat->allocated},
        {".current", stat->current},
        {".freed", stat->freed},
        {".peak", stat->peak},
    };

    for (size_t i = 0; i < CCA_ARRAY_LEN(metrics); i++) {
        char key[KEY_BYTES];
        struct cca_text text;
        cca_text_init(&text, key, sizeof(key));
        cca_text_str(&text, name);
        cca_text_str(&text, pool);
        cca_text_str(&text, metrics[i].name);
        each(user, key, metrics[i].value);
    }
}

static void each_of_array(const struct cca_stat *stats, const char *name, cca_stats_each_fn each,
                          void *user)
{
    each_metric(&stats[CCA_STAT_ALL], name, ".all", each, user);
    each_metric(&stats[CCA_STAT_LARGE], name, ".large_pool", each, user);
    each_metric(&stats[CCA_STAT_SMALL], name, ".small_pool", each, user);
}

/* As it stands in keys. */
static void put_pool_name(char *out, const struct row *row, const struct cca_pool_row *pool)
{
    struct cca_text text;

    cca_text_init(&text, out, KEY_BYTES);
    cca_text_str(&text, row->name);
    cca_text_char(&text, '.');
    cca_text_u64(&text, pool->id[0]);
    cca_text_char(&text, '_');
    cca_text_u64(&text, pool->id[1]);
}

/* The pool whose name follows `last`, with its name; NULL when there is none. */
static const struct cca_pool_row *next_pool(struct cca_pool_rows pools, const struct row *row,
                                            const char *last, char *name_out)
{
    const struct cca_pool_row *next = NULL;
    char name[KEY_BYTES];

    for (size_t i = 0; i < pools.count; i++) {
        if (!pools.rows[i].is_live) {
            continue;
        }
        put_pool_name(name, row, &pools.rows[i]);
        if (strcmp(name, last) > 0 && (next == NULL || strcmp(name, name_out) < 0)) {
            next = &pools.rows[i];
            memcpy(name_out, name, sizeof(name));
        }
    }
    return next;
}

static void each_pool(struct cca_pool_rows pools, const struct row *row, cca_stats_each_fn each,
                      void *user)
{
    char last[KEY_BYTES] = "", name[KEY_BYTES] = "";
    const struct cca_pool_row *pool;

    while ((pool = next_pool(pools, row, last, name)) != NULL) {
        const void *data = (const char *)&pool->stats + row->offset;
        each_of_array(data, name, each, user);
        memcpy(last, name, sizeof(last));
    }
}

void cca_stats_each(const struct cca_stats *stats, struct cca_pool_rows pools,
                    cca_stats_each_fn each, void *user)
{
    for (const struct row *row = next_row(NULL); row != NULL; row = next_row(row)) {
        const void *data = (const char *)stats + row->offset;
        switch (row->shape) {
        case ROW_ARRAY: each_of_array(data, row->name, each, user); break;
        case ROW_SINGLE: each_metric(data, row->name, "", each, user); break;
        case ROW_NUMBER: each(user, row->name, *(const int64_t *)data); break;
        case ROW_POOL: each_pool(pools, row, each, user); break;
        }
    }
}

struct search {
    const char *key;
    int64_t value;
    bool is_found;
};

static void compare_key(void *user, const char *key, int64_t value)
{
    struct search *search = user;

    if (strcmp(key, search->key) == 0) {
        search->value = value;
        search->is_found = true;
    }
}

int cca_stats_value(const struct cca_stats *stats, struct cca_pool_rows pools, const char *key,
                    int64_t *value_out)
{
    struct search search = {.key = key};

    cca_stats_each(stats, pools, compare_key, &search);
    if (!search.is_found) {
        return -ENOENT;
    }
    *value_out = search.value;
    return 0;
}

uint64_t cca_counters_driver_alloc_median_ns(const struct cca_counters *counters)
{
    uint64_t total = 0;
    uint64_t below = 0;

    for (size_t i = 0; i < CCA_ARRAY_LEN(counters->driver_alloc_histogram); i++) {
        total += counters->driver_alloc_histogram[i];
    }
    for (size_t i = 0; i < CCA_ARRAY_LEN(counters->driver_alloc_histogram); i++) {
        uint64_t here = counters->driver_alloc_histogram[i];
        if (here != 0 && 2 * (below + here) >= total) {
            /* Spread evenly over the slot. */
            double part = ((double)total / 2 - (double)below) / (double)here;
            double low = (double)(UINT64_C(1) << i);
            return (uint64_t)(low + low * part);
        }
        below += here;
    }
    return 0;
}
