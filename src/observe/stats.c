/* SPDX-License-Identifier: MIT */
#include "observe/stats.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/format.h"
#include "observe/pool_table.h"

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

static void up(struct cca_stat *stat, int64_t amount)
{
    int64_t current = stat->current + amount;
    stat->current = current;
    stat->allocated += amount;
    if (current > stat->peak) {
        stat->peak = current;
    }
}

static void down(struct cca_stat *stat, int64_t amount)
{
    stat->current -= amount;
    stat->freed += amount;
}

static enum cca_stat_pool pool_of(const struct cca_event *event)
{
    return (event->flags & CCA_EVENT_SMALL) != 0 ? CCA_STAT_SMALL : CCA_STAT_LARGE;
}

static void up_array(struct cca_stat stats[CCA_STAT_POOLS], enum cca_stat_pool pool, int64_t amount)
{
    up(&stats[CCA_STAT_ALL], amount);
    up(&stats[pool], amount);
}

static void down_array(struct cca_stat stats[CCA_STAT_POOLS], enum cca_stat_pool pool,
                       int64_t amount)
{
    down(&stats[CCA_STAT_ALL], amount);
    down(&stats[pool], amount);
}

static void change_array(struct cca_stat stats[CCA_STAT_POOLS], enum cca_stat_pool pool,
                         int64_t delta)
{
    if (delta >= 0) {
        up_array(stats, pool, delta);
    } else {
        down_array(stats, pool, -delta);
    }
}

static void change_split(struct cca_stats *stats, const struct cca_event *event)
{
    enum cca_stat_pool pool = pool_of(event);
    /* A count that stays goes with bytes that change, as when a free part is cut. */
    if (event->split_count_delta != 0) {
        change_array(stats->inactive_split, pool, event->split_count_delta);
    }
    if (event->split_bytes_delta != 0) {
        change_array(stats->inactive_split_bytes, pool, event->split_bytes_delta);
    }
}

static void apply_alloc(struct cca_stats *stats, const struct cca_event *event)
{
    enum cca_stat_pool pool = pool_of(event);
    int64_t block = (int64_t)event->block_bytes;

    change_split(stats, event);
    up_array(stats->allocation, pool, 1);
    up_array(stats->allocated_bytes, pool, block);
    up_array(stats->requested_bytes, pool, (int64_t)event->requested_bytes);
    up_array(stats->active, pool, 1);
    up_array(stats->active_bytes, pool, block);
    if ((event->flags & CCA_EVENT_OVERSIZE) != 0) {
        up(&stats->oversize_allocations, 1);
    }
}

static void apply_free_requested(struct cca_stats *stats, const struct cca_event *event)
{
    enum cca_stat_pool pool = pool_of(event);

    down_array(stats->allocation, pool, 1);
    down_array(stats->allocated_bytes, pool, (int64_t)event->block_bytes);
    if ((event->flags & CCA_EVENT_OVERSIZE) != 0) {
        down(&stats->oversize_allocations, 1);
    }
}

static void apply_free_completed(struct cca_stats *stats, const struct cca_event *event)
{
    enum cca_stat_pool pool = pool_of(event);

    change_split(stats, event);
    down_array(stats->active, pool, 1);
    down_array(stats->active_bytes, pool, (int64_t)event->block_bytes);
    down_array(stats->requested_bytes, pool, (int64_t)event->requested_bytes);
}

static void apply_segment(struct cca_stats *stats, const struct cca_event *event)
{
    bool comes = event->kind == CCA_EVENT_SEGMENT_ALLOC || event->kind == CCA_EVENT_SEGMENT_MAP;
    bool is_mapping = event->kind == CCA_EVENT_SEGMENT_MAP ||
                      event->kind == CCA_EVENT_SEGMENT_UNMAP;
    enum cca_stat_pool pool = pool_of(event);
    int64_t sign = comes ? 1 : -1;

    change_array(stats->reserved_bytes, pool, sign * (int64_t)event->block_bytes);
    if (comes) {
        stats->num_device_alloc += 1;
    } else {
        stats->num_device_free += 1;
    }
    if (!is_mapping) {
        change_array(stats->segment, pool, sign);
        if ((event->flags & CCA_EVENT_OVERSIZE) != 0) {
            comes ? up(&stats->oversize_segments, 1) : down(&stats->oversize_segments, 1);
        }
    }
}

void cca_stats_apply(struct cca_stats *stats, const struct cca_event *event)
{
    switch (event->kind) {
    case CCA_EVENT_ALLOC: apply_alloc(stats, event); break;
    case CCA_EVENT_FREE_REQUESTED: apply_free_requested(stats, event); break;
    case CCA_EVENT_FREE_COMPLETED: apply_free_completed(stats, event); break;
    case CCA_EVENT_SEGMENT_ALLOC:
    case CCA_EVENT_SEGMENT_FREE:
    case CCA_EVENT_SEGMENT_MAP:
    case CCA_EVENT_SEGMENT_UNMAP: apply_segment(stats, event); break;
    case CCA_EVENT_REKEY: change_split(stats, event); break;
    case CCA_EVENT_OOM: stats->num_ooms += 1; break;
    case CCA_EVENT_RETRY: stats->num_alloc_retries += 1; break;
    case CCA_EVENT_SYNC: stats->num_sync_all_streams += 1; break;
    case CCA_EVENT_REJECT: stats->num_oom_rejections += 1; break;
    case CCA_EVENT_SNAPSHOT:
    case CCA_EVENT_DRIVER_FREED:
    case CCA_EVENT_FREE_WAITED:
    case CCA_EVENT_FENCE:
    case CCA_EVENT_FENCE_JOIN:
    case CCA_EVENT_ANNOTATE:
    case CCA_EVENT_KIND_COUNT: break;
    }
}

void cca_pool_stats_apply(struct cca_pool_stats *stats, const struct cca_event *event)
{
    int64_t bytes = (int64_t)event->block_bytes;

    switch (event->kind) {
    case CCA_EVENT_SEGMENT_ALLOC:
    case CCA_EVENT_SEGMENT_MAP:
        change_array(stats->reserved_bytes_by_private_pools, pool_of(event), bytes);
        break;
    case CCA_EVENT_SEGMENT_FREE:
    case CCA_EVENT_SEGMENT_UNMAP:
        change_array(stats->reserved_bytes_by_private_pools, pool_of(event), -bytes);
        break;
    default: break;
    }
}

static void count_driver_alloc(struct cca_counters *counters, const struct cca_event *event)
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

void cca_counters_apply(struct cca_counters *counters, const struct cca_event *event)
{
    bool is_passed = (event->flags & CCA_EVENT_PASSED) != 0;

    switch (event->kind) {
    case CCA_EVENT_ALLOC:
        counters->allocs += 1;
        counters->hits += (event->flags & CCA_EVENT_HIT) != 0;
        counters->passed += is_passed;
        break;
    case CCA_EVENT_SEGMENT_ALLOC:
        if (!is_passed) {
            count_driver_alloc(counters, event);
        }
        break;
    case CCA_EVENT_DRIVER_FREED:
        if (!is_passed) {
            counters->driver_frees += 1;
            counters->driver_free_ns += (int64_t)event->duration_ns;
        }
        break;
    case CCA_EVENT_FREE_WAITED:
        counters->free_waits += 1;
        counters->free_wait_ns += (int64_t)event->duration_ns;
        break;
    case CCA_EVENT_FENCE: counters->fences += 1; break;
    case CCA_EVENT_FENCE_JOIN: counters->fence_joins += 1; break;
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
