/* SPDX-License-Identifier: MIT */
#include "process/timers.h"

#include "base/clock.h"
#include "observe/observer.h"
#include "process/dump.h"
#include "process/metrics.h"

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static bool wants_dumps(const struct cca_process *process)
{
    return (process->config.dump_on & CCA_DUMP_ON_INTERVAL) != 0;
}

static bool wants_metrics(const struct cca_process *process)
{
    return process->config.metrics_file[0] != '\0';
}

bool cca_timers_are_wanted(const struct cca_process *process)
{
    return wants_dumps(process) || wants_metrics(process) || process->config.trim_idle_ms != 0;
}

void cca_timers_start(struct cca_process *process)
{
    struct cca_timers *timers = &process->timers;
    uint64_t now_ns = cca_clock_ns();

    *timers = (struct cca_timers){.quiet_since_ns = now_ns};
    if (wants_dumps(process)) {
        timers->next_dump_ns = now_ns + process->config.dump_interval_s * NS_PER_S;
    }
    if (wants_metrics(process)) {
        timers->next_metrics_ns = now_ns + process->config.metrics_interval_s * NS_PER_S;
    }
    if (process->config.trim_idle_ms != 0) {
        timers->next_trim_ns = now_ns + process->config.trim_idle_ms * NS_PER_MS;
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

uint64_t cca_timers_next_ns(const struct cca_process *process)
{
    const struct cca_timers *timers = &process->timers;

    return earlier(timers->next_trim_ns, earlier(timers->next_dump_ns, timers->next_metrics_ns));
}

/* Whether the time has come. The next one is counted from the end of this, so that what takes
 * longer than its interval does not fill all time. */
static bool is_due(uint64_t *next_ns, uint64_t now_ns)
{
    return *next_ns != 0 && now_ns >= *next_ns;
}

void cca_timers_write(struct cca_process *process)
{
    struct cca_timers *timers = &process->timers;
    uint64_t now_ns = cca_clock_ns();

    if (is_due(&timers->next_dump_ns, now_ns)) {
        (void)cca_dump_write(process, "interval", NULL);
        timers->next_dump_ns = cca_clock_ns() + process->config.dump_interval_s * NS_PER_S;
    }
    if (is_due(&timers->next_metrics_ns, now_ns)) {
        cca_metrics_write(process);
        timers->next_metrics_ns = cca_clock_ns() + process->config.metrics_interval_s * NS_PER_S;
    }
}

static void add_allocs(void *user, struct cca_observer *observer)
{
    *(int64_t *)user += observer->counters.allocs;
}

static int64_t count_allocs(struct cca_allocator *allocator)
{
    int64_t allocs = 0;

    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        (void)cca_allocator_with_observer(allocator, i, add_allocs, &allocs);
    }
    return allocs;
}

/* An allocation is noticed at the next look; so the looks come four times in the idle time, and the
 * cache goes at most a quarter later than asked for. */
void cca_timers_trim(struct cca_process *process)
{
    struct cca_timers *timers = &process->timers;
    struct cca_allocator *allocator = cca_process_allocator();
    uint64_t idle_ns = process->config.trim_idle_ms * NS_PER_MS, now_ns = cca_clock_ns();
    int64_t allocs;

    if (!is_due(&timers->next_trim_ns, now_ns) || allocator == NULL) {
        return;
    }
    timers->next_trim_ns = now_ns + (idle_ns / 4 > NS_PER_MS ? idle_ns / 4 : NS_PER_MS);
    allocs = count_allocs(allocator);
    if (allocs != timers->allocs) {
        timers->allocs = allocs;
        timers->quiet_since_ns = now_ns;
    } else if (timers->quiet_since_ns != 0 && now_ns - timers->quiet_since_ns >= idle_ns) {
        timers->quiet_since_ns = 0; /* once for each quiet time */
        cca_allocator_empty_cache(allocator);
    }
}
