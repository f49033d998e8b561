/* SPDX-License-Identifier: MIT */
/* What the library did for the program, one line per device, at exit. No CUDA call. */
#include <stdint.h>

#include "base/format.h"
#include "base/log.h"
#include "observe/observer.h"
#include "process/leaks.h"
#include "process/state.h"

enum {
    LINE_BYTES = 1024,
    HINT_MIN_NS = 1000000 /* a shorter wait is not worth another setting */
};

struct figures {
    struct cca_stats stats;
    struct cca_counters counters;
    struct cca_estimate_figures estimate;
};

static void copy_figures(void *user, struct cca_observer *observer)
{
    struct figures *figures = user;

    figures->stats = observer->stats;
    figures->counters = observer->counters;
}

static void put_seconds(struct cca_text *line, uint64_t ns)
{
    if (ns < 1000000000u) {
        cca_text_double(line, (double)ns / 1e6, 1);
        cca_text_str(line, " ms");
    } else {
        cca_text_double(line, (double)ns / 1e9, 2);
        cca_text_str(line, " s");
    }
}

static void put_count(struct cca_text *line, int64_t count, const char *one, const char *many)
{
    cca_text_i64(line, count);
    cca_text_char(line, ' ');
    cca_text_str(line, count == 1 ? one : many);
}

static void put_memory(struct cca_text *line, const struct cca_stats *stats)
{
    cca_text_str(line, "peak ");
    cca_text_size(line, (uint64_t)stats->allocated_bytes[CCA_STAT_ALL].peak);
    cca_text_str(line, " allocated, ");
    cca_text_size(line, (uint64_t)stats->reserved_bytes[CCA_STAT_ALL].peak);
    cca_text_str(line, " reserved");
}

static double hit_percent(const struct cca_counters *counters)
{
    return counters->allocs > 0 ? 100.0 * (double)counters->hits / (double)counters->allocs : 0;
}

/* "12 driver calls saved (about 3.4 ms)". */
static void put_saved(struct cca_text *line, int64_t calls, uint64_t ns)
{
    put_count(line, calls, "driver call", "driver calls");
    cca_text_str(line, " saved");
    if (ns > 0) {
        cca_text_str(line, " (about ");
        put_seconds(line, ns);
        cca_text_char(line, ')');
    }
}

/* What was passed, and what caching would have made of it. */
static void put_estimate(struct cca_text *line, const struct cca_estimate_figures *estimate)
{
    int64_t saved = estimate->allocs - estimate->driver_allocs + estimate->frees -
                    estimate->driver_frees;

    cca_text_str(line, " in ");
    put_seconds(line, (uint64_t)estimate->alloc_ns);
    cca_text_str(line, ", and ");
    put_count(line, estimate->frees, "free", "frees");
    cca_text_str(line, " in ");
    put_seconds(line, (uint64_t)estimate->free_ns);
    cca_text_str(line, "; with caching ");
    cca_text_double(line, 100.0 * (double)estimate->hits / (double)estimate->allocs, 1);
    cca_text_str(line, " % from the cache, ");
    put_saved(line, saved > 0 ? saved : 0, (uint64_t)estimate->hits * estimate->alloc_median_ns);
    cca_text_str(line, ", peak ");
    cca_text_size(line, (uint64_t)estimate->reserved_peak);
    cca_text_str(line, " reserved");
}

static void put_cache(struct cca_text *line, const struct cca_counters *counters,
                      const struct cca_estimate_figures *estimate)
{
    uint64_t saved_ns = (uint64_t)counters->hits * cca_counters_driver_alloc_median_ns(counters);

    cca_text_str(line, "; ");
    if (counters->allocs > 0 && counters->passed == counters->allocs) {
        put_count(line, counters->allocs, "allocation, passed", "allocations, all passed");
        cca_text_str(line, " to the driver");
        if (estimate->allocs > 0) {
            put_estimate(line, estimate);
        }
        return;
    }
    cca_text_double(line, hit_percent(counters), 1);
    cca_text_str(line, " % of ");
    put_count(line, counters->allocs, "allocation", "allocations");
    cca_text_str(line, " from the cache");
    if (counters->hits > 0) {
        cca_text_str(line, ", ");
        put_saved(line, counters->hits, saved_ns);
    }
}

static void put_waits(struct cca_text *line, const struct cca_counters *counters, int free_sync)
{
    if (counters->free_waits == 0) {
        return;
    }
    cca_text_str(line, "; frees waited ");
    put_seconds(line, (uint64_t)counters->free_wait_ns);
    if (free_sync == CCA_FREE_STRICT && counters->free_wait_ns >= HINT_MIN_NS) {
        cca_text_str(line, " (CCA_FREE_SYNC=fence would remove that)");
    }
}

static void put_trouble(struct cca_text *line, const struct cca_stats *stats)
{
    const struct cca_stat *live = &stats->allocation[CCA_STAT_ALL];

    cca_text_str(line, "; ");
    put_count(line, stats->num_alloc_retries, "retry", "retries");
    cca_text_str(line, ", ");
    put_count(line, stats->num_ooms, "OOM", "OOMs");
    cca_text_str(line, ", ");
    put_count(line, live->current, "block leaked", "blocks leaked");
    if (live->current > 0) {
        cca_text_str(line, " (");
        cca_text_size(line, (uint64_t)stats->allocated_bytes[CCA_STAT_ALL].current);
        cca_text_char(line, ')');
    }
}

static void print_device(const struct cca_process *process, int ordinal,
                         const struct figures *figures)
{
    char buf[LINE_BYTES];
    struct cca_text line;

    cca_text_init(&line, buf, sizeof(buf) - 1);
    cca_text_str(&line, "cca: device ");
    cca_text_i64(&line, ordinal);
    cca_text_str(&line, ": ");
    put_memory(&line, &figures->stats);
    put_cache(&line, &figures->counters, &figures->estimate);
    put_waits(&line, &figures->counters, process->config.free_sync);
    put_trouble(&line, &figures->stats);
    buf[line.len] = '\n';
    buf[line.len + 1] = '\0';
    cca_log_text(buf);
}

static void print_rest(const struct cca_process *process, bool names_snapshot)
{
    char buf[CCA_IDENTITY_BYTES + 32];

    if (names_snapshot && process->dumps.last_path[0] != '\0') {
        cca_format(buf, sizeof(buf), "cca: snapshot %s\n", process->dumps.last_path);
        cca_log_text(buf);
    }
    if (!cca_signals_are_ours(process)) {
        cca_log_text("cca: the program replaced the handler of the dump signal\n");
    }
}

void cca_summary_print(const struct cca_process *process, bool names_snapshot,
                       struct cca_model *model)
{
    struct cca_allocator *allocator = cca_process_allocator();
    struct cca_estimate *estimate = atomic_load(&process->estimate);
    uint64_t mask = allocator != NULL ? cca_allocator_device_mask(allocator) : 0;

    for (int ordinal = 0; ordinal < CCA_DEVICES_MAX; ordinal++) {
        struct figures figures;

        if ((mask >> ordinal & 1) == 0 ||
            cca_allocator_with_observer(allocator, ordinal, copy_figures, &figures) != 0) {
            continue;
        }
        figures.estimate = (struct cca_estimate_figures){0};
        if (estimate != NULL) {
            cca_estimate_read(estimate, ordinal, &figures.estimate);
        }
        if (figures.counters.allocs > 0 || figures.stats.num_ooms > 0) {
            print_device(process, ordinal, &figures);
        }
    }
    if (model != NULL) {
        cca_leaks_print(model);
    }
    print_rest(process, names_snapshot);
}
