/* SPDX-License-Identifier: MIT */
#include "process/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h> /* rename */
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/format.h"
#include "base/log.h"
#include "base/sysmem.h"
#include "cca/cca_version.h"
#include "observe/unwind.h"
#include "observe/observer.h"
#include "process/dump.h"
#include "snapshot/file.h"

enum { FILE_MODE = 0644 };

/* What one device has to tell. */
struct figures {
    int device;
    uint64_t lost_entries;
    struct cca_stats stats;
    struct cca_counters counters;
};

struct all_figures {
    struct figures list[CCA_DEVICES_MAX];
    int count;
};

static void copy_figures(void *user, struct cca_observer *observer)
{
    struct all_figures *all = user;

    all->list[all->count++] = (struct figures){
        .device = observer->device,
        .lost_entries = cca_trace_ring_lost(&observer->ring),
        .stats = observer->stats,
        .counters = observer->counters,
    };
}

enum field { FIELD_CURRENT, FIELD_PEAK, FIELD_ALLOCATED };

/* A metric of each device and pool, out of an array of the statistics. */
static const struct {
    const char *name, *type, *help;
    size_t offset; /* in struct cca_stats */
    enum field field;
} pool_metrics[] = {
#define POOL(name, type, stat, field, help) \
    {#name, type, help, offsetof(struct cca_stats, stat), FIELD_##field},
#include "process/metrics.def"
};

/* A metric of each device: a count, or a time kept in nanoseconds. */
static const struct {
    const char *name, *type, *help;
    size_t offset;    /* of an int64_t in struct figures */
    bool is_duration; /* in nanoseconds, printed in seconds */
} device_metrics[] = {
#define STAT(name, field, help) \
    {#name, "counter", help, offsetof(struct figures, stats.field), false},
#define COUNT(name, field, help) \
    {#name, "counter", help, offsetof(struct figures, counters.field), false},
#define TIME(name, field, help) \
    {#name, "counter", help, offsetof(struct figures, counters.field), true},
#include "process/metrics.def"
};

static void put_head(struct cca_sink *sink, const char *name, const char *type, const char *help)
{
    cca_sink_str(sink, "# HELP ");
    cca_sink_str(sink, name);
    cca_sink_byte(sink, ' ');
    cca_sink_str(sink, help);
    cca_sink_str(sink, "\n# TYPE ");
    cca_sink_str(sink, name);
    cca_sink_byte(sink, ' ');
    cca_sink_str(sink, type);
    cca_sink_byte(sink, '\n');
}

static void put_device(struct cca_sink *sink, const char *name, int device)
{
    cca_sink_str(sink, name);
    cca_sink_str(sink, "{device=\"");
    cca_sink_i64(sink, device);
    cca_sink_byte(sink, '"');
}

static int64_t field_of(const struct cca_stat *stat, enum field field)
{
    return field == FIELD_CURRENT ? stat->current
           : field == FIELD_PEAK  ? stat->peak
                                  : stat->allocated;
}

static void put_pool_metric(struct cca_sink *sink, const struct all_figures *all, size_t row)
{
    static const char *const pools[CCA_STAT_POOLS] = {
        [CCA_STAT_ALL] = "all", [CCA_STAT_SMALL] = "small", [CCA_STAT_LARGE] = "large"};

    put_head(sink, pool_metrics[row].name, pool_metrics[row].type, pool_metrics[row].help);
    for (int i = 0; i < all->count; i++) {
        const struct cca_stat *stats = (const void *)((const char *)&all->list[i].stats +
                                                      pool_metrics[row].offset);

        for (int pool = 0; pool < CCA_STAT_POOLS; pool++) {
            put_device(sink, pool_metrics[row].name, all->list[i].device);
            cca_sink_str(sink, ",pool=\"");
            cca_sink_str(sink, pools[pool]);
            cca_sink_str(sink, "\"} ");
            cca_sink_i64(sink, field_of(&stats[pool], pool_metrics[row].field));
            cca_sink_byte(sink, '\n');
        }
    }
}

static void put_seconds(struct cca_sink *sink, int64_t ns)
{
    char buf[32];
    struct cca_text text;

    cca_text_init(&text, buf, sizeof(buf));
    cca_text_double(&text, (double)ns / 1e9, 9);
    cca_sink_str(sink, buf);
}

static void put_device_metric(struct cca_sink *sink, const struct all_figures *all, size_t row)
{
    put_head(sink, device_metrics[row].name, device_metrics[row].type, device_metrics[row].help);
    for (int i = 0; i < all->count; i++) {
        int64_t value;

        memcpy(&value, (const char *)&all->list[i] + device_metrics[row].offset, sizeof(value));
        put_device(sink, device_metrics[row].name, all->list[i].device);
        cca_sink_str(sink, "} ");
        if (device_metrics[row].is_duration) {
            put_seconds(sink, value);
        } else {
            cca_sink_i64(sink, value);
        }
        cca_sink_byte(sink, '\n');
    }
}

static void put_process(const struct cca_process *process, struct cca_sink *sink)
{
    struct cca_unwind_counts unwind = cca_unwind_counts();

    put_head(sink, "cca_info", "gauge", "The library's version.");
    cca_sink_str(sink, "cca_info{version=\"" CCA_VERSION_STRING "\"} 1\n");
    put_head(sink, "cca_start_time_seconds", "gauge", "Unix time when the process started.");
    cca_sink_str(sink, "cca_start_time_seconds ");
    put_seconds(sink, process->identity.start_time_us * 1000);
    cca_sink_byte(sink, '\n');
    put_head(sink, "cca_stacks_total", "counter", "Call stacks taken.");
    cca_sink_str(sink, "cca_stacks_total ");
    cca_sink_u64(sink, unwind.captures);
    cca_sink_byte(sink, '\n');
    put_head(sink, "cca_stacks_missing_total", "counter", "Call stacks that had no frame.");
    cca_sink_str(sink, "cca_stacks_missing_total ");
    cca_sink_u64(sink, unwind.missing);
    cca_sink_byte(sink, '\n');
}

static void put_lost(const struct all_figures *all, struct cca_sink *sink)
{
    put_head(sink, "cca_history_lost_entries", "gauge", "Events that the history no longer holds.");
    for (int i = 0; i < all->count; i++) {
        put_device(sink, "cca_history_lost_entries", all->list[i].device);
        cca_sink_str(sink, "} ");
        cca_sink_u64(sink, all->list[i].lost_entries);
        cca_sink_byte(sink, '\n');
    }
}

void cca_metrics_put(struct cca_process *process, struct cca_sink *sink)
{
    struct cca_allocator *allocator = cca_process_allocator();
    struct all_figures *all = cca_sysmem_map(sizeof(*all));

    if (all == NULL) {
        return;
    }
    for (int i = 0; allocator != NULL && i < CCA_DEVICES_MAX; i++) {
        (void)cca_allocator_with_observer(allocator, i, copy_figures, all);
    }
    put_process(process, sink);
    if (all->count > 0) {
        for (size_t i = 0; i < CCA_ARRAY_LEN(pool_metrics); i++) {
            put_pool_metric(sink, all, i);
        }
        for (size_t i = 0; i < CCA_ARRAY_LEN(device_metrics); i++) {
            put_device_metric(sink, all, i);
        }
        put_lost(all, sink);
    }
    cca_sysmem_unmap(all, sizeof(*all));
}

/* The path by the settings' pattern; false when it is too long. */
static bool expand_path(const struct cca_process *process, char *path, size_t cap)
{
    struct utsname system;
    const struct cca_model who = {
        .host = uname(&system) == 0 ? system.nodename : "",
        .program = process->identity.program,
        .pid = (int)process->identity.pid,
        .rank = process->identity.rank,
    };
    const struct cca_dump_request request = {
        .pattern = process->config.metrics_file,
        .directory = process->identity.directory,
    };

    return cca_dump_file_expand(&who, &request, path, cap);
}

static int write_file(struct cca_process *process, struct cca_sink *sink, const char *temporary,
                      const char *path)
{
    struct stat there;
    int rc, fd;

    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) {
        return -EEXIST; /* a device, a pipe: not to be replaced */
    }
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, FILE_MODE);

    if (fd < 0) {
        return -errno;
    }
    fd = cca_dump_file_lift(fd);
    if (fd < 0) {
        return fd;
    }
    cca_sink_init_fd(sink, fd);
    cca_metrics_put(process, sink);
    rc = cca_sink_finish(sink);
    if (close(fd) != 0 && errno != EINTR && rc == 0) {
        rc = -errno;
    }
    if (rc == 0 && rename(temporary, path) != 0) {
        rc = -errno;
    }
    if (rc != 0) {
        unlink(temporary);
    }
    return rc;
}

/* Too large for the dump thread's stack. */
struct work {
    struct cca_sink sink;
    char path[PATH_MAX], temporary[PATH_MAX];
};

void cca_metrics_write(struct cca_process *process)
{
    static int said;
    struct work *work = cca_sysmem_map(sizeof(*work));
    int saved_errno = errno, rc = -ENOMEM;
    struct cca_text text;

    if (work != NULL) {
        bool fits = expand_path(process, work->path, sizeof(work->path));

        cca_text_init(&text, work->temporary, sizeof(work->temporary));
        cca_text_str(&text, work->path);
        cca_text_str(&text, ".tmp");
        cca_text_i64(&text, process->identity.pid);
        rc = fits && !text.truncated ? write_file(process, &work->sink, work->temporary, work->path)
                                     : -ENAMETOOLONG;
    }
    if (rc != 0) {
        char reason[128];

        cca_log_once(&said, CCA_LOG_WARN, "no metrics in %s: %s",
                     work != NULL ? work->path : process->config.metrics_file,
                     strerror_r(-rc, reason, sizeof(reason)));
    }
    cca_sysmem_unmap(work, sizeof(*work));
    errno = saved_errno;
}
