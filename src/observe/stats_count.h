/* SPDX-License-Identifier: MIT */
/* What an event changes in the statistics: inline, because each place that reports knows the kind
 * of its event, so that only the few cells of that kind are touched. The functions of stats.h do
 * the same for events of any kind. */
#ifndef CCA_OBSERVE_STATS_COUNT_H
#define CCA_OBSERVE_STATS_COUNT_H

#include <stdbool.h>

#include "base/compiler.h"
#include "observe/stats.h"

static CCA_ALWAYS_INLINE void cca_stat_up(struct cca_stat *stat, int64_t amount)
{
    int64_t current = stat->current + amount;
    stat->current = current;
    stat->allocated += amount;
    if (current > stat->peak) {
        stat->peak = current;
    }
}

static CCA_ALWAYS_INLINE void cca_stat_down(struct cca_stat *stat, int64_t amount)
{
    stat->current -= amount;
    stat->freed += amount;
}

static CCA_ALWAYS_INLINE enum cca_stat_pool cca_stat_pool_of(const struct cca_event *event)
{
    return (event->flags & CCA_EVENT_SMALL) != 0 ? CCA_STAT_SMALL : CCA_STAT_LARGE;
}

static CCA_ALWAYS_INLINE void cca_stat_up_array(struct cca_stat stats[CCA_STAT_POOLS],
                                                enum cca_stat_pool pool, int64_t amount)
{
    cca_stat_up(&stats[CCA_STAT_ALL], amount);
    cca_stat_up(&stats[pool], amount);
}

static CCA_ALWAYS_INLINE void cca_stat_down_array(struct cca_stat stats[CCA_STAT_POOLS],
                                                  enum cca_stat_pool pool, int64_t amount)
{
    cca_stat_down(&stats[CCA_STAT_ALL], amount);
    cca_stat_down(&stats[pool], amount);
}

static CCA_ALWAYS_INLINE void cca_stat_change_array(struct cca_stat stats[CCA_STAT_POOLS],
                                                    enum cca_stat_pool pool, int64_t delta)
{
    if (delta >= 0) {
        cca_stat_up_array(stats, pool, delta);
    } else {
        cca_stat_down_array(stats, pool, -delta);
    }
}

static CCA_ALWAYS_INLINE void cca_stats_change_split(struct cca_stats *stats,
                                                     const struct cca_event *event)
{
    enum cca_stat_pool pool = cca_stat_pool_of(event);
    /* A count that stays goes with bytes that change, as when a free part is cut. */
    if (event->split_count_delta != 0) {
        cca_stat_change_array(stats->inactive_split, pool, event->split_count_delta);
    }
    if (event->split_bytes_delta != 0) {
        cca_stat_change_array(stats->inactive_split_bytes, pool, event->split_bytes_delta);
    }
}

static CCA_ALWAYS_INLINE void cca_stats_alloc(struct cca_stats *stats,
                                              const struct cca_event *event)
{
    enum cca_stat_pool pool = cca_stat_pool_of(event);
    int64_t block = (int64_t)event->block_bytes;

    cca_stats_change_split(stats, event);
    cca_stat_up_array(stats->allocation, pool, 1);
    cca_stat_up_array(stats->allocated_bytes, pool, block);
    cca_stat_up_array(stats->requested_bytes, pool, (int64_t)event->requested_bytes);
    cca_stat_up_array(stats->active, pool, 1);
    cca_stat_up_array(stats->active_bytes, pool, block);
    if ((event->flags & CCA_EVENT_OVERSIZE) != 0) {
        cca_stat_up(&stats->oversize_allocations, 1);
    }
}

static CCA_ALWAYS_INLINE void cca_stats_free_requested(struct cca_stats *stats,
                                                       const struct cca_event *event)
{
    enum cca_stat_pool pool = cca_stat_pool_of(event);

    cca_stat_down_array(stats->allocation, pool, 1);
    cca_stat_down_array(stats->allocated_bytes, pool, (int64_t)event->block_bytes);
    if ((event->flags & CCA_EVENT_OVERSIZE) != 0) {
        cca_stat_down(&stats->oversize_allocations, 1);
    }
}

static CCA_ALWAYS_INLINE void cca_stats_free_completed(struct cca_stats *stats,
                                                       const struct cca_event *event)
{
    enum cca_stat_pool pool = cca_stat_pool_of(event);

    cca_stats_change_split(stats, event);
    cca_stat_down_array(stats->active, pool, 1);
    cca_stat_down_array(stats->active_bytes, pool, (int64_t)event->block_bytes);
    cca_stat_down_array(stats->requested_bytes, pool, (int64_t)event->requested_bytes);
}

static CCA_ALWAYS_INLINE void cca_stats_segment(struct cca_stats *stats,
                                                const struct cca_event *event)
{
    bool comes = event->kind == CCA_EVENT_SEGMENT_ALLOC || event->kind == CCA_EVENT_SEGMENT_MAP;
    bool is_mapping = event->kind == CCA_EVENT_SEGMENT_MAP ||
                      event->kind == CCA_EVENT_SEGMENT_UNMAP;
    enum cca_stat_pool pool = cca_stat_pool_of(event);
    int64_t sign = comes ? 1 : -1;

    cca_stat_change_array(stats->reserved_bytes, pool, sign * (int64_t)event->block_bytes);
    if (comes) {
        stats->num_device_alloc += 1;
    } else {
        stats->num_device_free += 1;
    }
    if (!is_mapping) {
        cca_stat_change_array(stats->segment, pool, sign);
        if ((event->flags & CCA_EVENT_OVERSIZE) != 0) {
            comes ? cca_stat_up(&stats->oversize_segments, 1)
                  : cca_stat_down(&stats->oversize_segments, 1);
        }
    }
}

static CCA_ALWAYS_INLINE void cca_stats_count(struct cca_stats *stats,
                                              const struct cca_event *event)
{
    switch (event->kind) {
    case CCA_EVENT_ALLOC: cca_stats_alloc(stats, event); break;
    case CCA_EVENT_FREE_REQUESTED: cca_stats_free_requested(stats, event); break;
    case CCA_EVENT_FREE_COMPLETED: cca_stats_free_completed(stats, event); break;
    case CCA_EVENT_SEGMENT_ALLOC:
    case CCA_EVENT_SEGMENT_FREE:
    case CCA_EVENT_SEGMENT_MAP:
    case CCA_EVENT_SEGMENT_UNMAP: cca_stats_segment(stats, event); break;
    case CCA_EVENT_REKEY: cca_stats_change_split(stats, event); break;
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

/* The rarer part of cca_counters_count. */
void cca_counters_count_driver_alloc(struct cca_counters *counters, const struct cca_event *event);

static CCA_ALWAYS_INLINE void cca_counters_count(struct cca_counters *counters,
                                                 const struct cca_event *event)
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
            cca_counters_count_driver_alloc(counters, event);
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

#endif
