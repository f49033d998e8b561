/* SPDX-License-Identifier: MIT */
/* Statistics for the public interface. What is copied under a heap's lock is laid out outside it.
 */
#include <errno.h>
#include <string.h>

#include "base/format.h"
#include "base/reentry.h"
#include "base/sysmem.h"
#include "observe/observer.h"
#include "process/api.h"
#include "process/process.h"

static void copy_allocated(void *user, struct cca_observer *observer)
{
    *(struct cca_stat *)user = observer->stats.allocated_bytes[CCA_STAT_ALL];
}

static void copy_reserved(void *user, struct cca_observer *observer)
{
    *(struct cca_stat *)user = observer->stats.reserved_bytes[CCA_STAT_ALL];
}

/* All zero for a device that has not been used. */
static struct cca_stat stat_of(int device, cca_observer_fn copy)
{
    struct cca_stat stat = {0};

    return cca_api_with_observer(device, copy, &stat) == 0 ? stat : (struct cca_stat){0};
}

uint64_t cca_api_memory_allocated(int device)
{
    return (uint64_t)stat_of(device, copy_allocated).current;
}

uint64_t cca_api_max_memory_allocated(int device)
{
    return (uint64_t)stat_of(device, copy_allocated).peak;
}

uint64_t cca_api_memory_reserved(int device)
{
    return (uint64_t)stat_of(device, copy_reserved).current;
}

uint64_t cca_api_max_memory_reserved(int device)
{
    return (uint64_t)stat_of(device, copy_reserved).peak;
}

/* A device's statistics with those of its pools, for which there must be room beforehand. */
struct stats_copy {
    struct cca_stats stats;
    struct cca_pool_row *rows;
    size_t capacity, count; /* count above capacity: too many */
};

static void copy_stats(void *user, struct cca_observer *observer)
{
    struct stats_copy *copy = user;
    struct cca_pool_rows pools = cca_pool_table_rows(&observer->pools);

    copy->stats = observer->stats;
    copy->count = pools.count;
    if (pools.count != 0 && pools.count <= copy->capacity) {
        memcpy(copy->rows, pools.rows, pools.count * sizeof(*pools.rows));
    }
}

static void drop_copy(struct stats_copy *copy)
{
    cca_sysmem_unmap(copy->rows, copy->capacity * sizeof(*copy->rows));
    *copy = (struct stats_copy){0};
}

/* Undone by drop_copy, only after 0. */
static int take_copy(int device, struct stats_copy *copy)
{
    *copy = (struct stats_copy){0};
    for (;;) {
        int rc = cca_api_with_observer(device, copy_stats, copy);
        size_t wanted = copy->count;

        if (rc == 0 && wanted <= copy->capacity) {
            return 0;
        }
        drop_copy(copy);
        if (rc != 0) {
            return rc;
        }
        copy->rows = cca_sysmem_map((wanted + 16) * sizeof(*copy->rows));
        if (copy->rows == NULL) {
            return -ENOMEM;
        }
        copy->capacity = wanted + 16;
    }
}

int cca_api_stat_value(int device, const char *key, int64_t *value_out)
{
    struct stats_copy copy;
    int rc;

    if (key == NULL || value_out == NULL) {
        return -EINVAL;
    }
    rc = take_copy(device, &copy);
    if (rc == 0) {
        struct cca_pool_rows rows = {copy.rows, copy.count};

        rc = cca_stats_value(&copy.stats, rows, key, value_out);
        drop_copy(&copy);
    }
    return rc;
}

int cca_api_each_stat(int device, cca_stat_fn fn, void *user)
{
    struct stats_copy copy;
    int rc;

    if (fn == NULL) {
        return -EINVAL;
    }
    rc = take_copy(device, &copy);
    if (rc == 0) {
        struct cca_pool_rows rows = {copy.rows, copy.count};

        cca_stats_each(&copy.stats, rows, fn, user);
        drop_copy(&copy);
    }
    return rc;
}

struct name_search {
    unsigned index, at;
    struct cca_text text;
    bool is_found;
};

static void pick_name(void *user, const char *key, int64_t value)
{
    struct name_search *search = user;

    (void)value;
    if (search->at++ == search->index) {
        search->is_found = true;
        cca_text_str(&search->text, key);
    }
}

int cca_api_stat_name(unsigned index, char *name_out, size_t name_bytes)
{
    static const struct cca_stats none;
    struct cca_pool_rows no_pools = {NULL, 0};
    struct name_search search = {.index = index};
    char name[128];

    if (name_out == NULL) {
        return -EINVAL;
    }
    cca_text_init(&search.text, name, sizeof(name));
    cca_stats_each(&none, no_pools, pick_name, &search);
    if (!search.is_found) {
        return -ENOENT;
    }
    if (search.text.len >= name_bytes) {
        return -ERANGE;
    }
    memcpy(name_out, name, search.text.len + 1);
    return 0;
}

static struct cca_figure figure_of(const struct cca_stat *stat)
{
    return (struct cca_figure){stat->current, stat->peak, stat->allocated, stat->freed};
}

void cca_api_put_figures(const struct cca_stat *stats, struct cca_figures *figures_out)
{
    figures_out->all = figure_of(&stats[CCA_STAT_ALL]);
    figures_out->large_pool = figure_of(&stats[CCA_STAT_LARGE]);
    figures_out->small_pool = figure_of(&stats[CCA_STAT_SMALL]);
}

/* The part of `from` that the caller knows; the size that it gave stays. */
static int put_known(const void *from, size_t from_bytes, void *to)
{
    size_t known, head = sizeof(size_t);

    memcpy(&known, to, head);
    if (known < head) {
        return -EINVAL;
    }
    known = known < from_bytes ? known : from_bytes;
    memcpy((char *)to + head, (const char *)from + head, known - head);
    return 0;
}

int cca_api_memory_stats(int device, struct cca_memory_figures *figures_out)
{
    struct cca_memory_figures figures = {0};
    struct stats_copy copy;
    int rc;

    if (figures_out == NULL || figures_out->struct_bytes < sizeof(size_t)) {
        return -EINVAL;
    }
    rc = take_copy(device, &copy);
    if (rc != 0) {
        return rc;
    }
#define ARRAY(name, unit, what)  cca_api_put_figures(copy.stats.name, &figures.name);
#define SINGLE(name, unit, what) figures.name = figure_of(&copy.stats.name);
#define COUNTER(name, what)      figures.name = copy.stats.name;
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
    figures.max_split_size = copy.stats.max_split_size;
    drop_copy(&copy);
    return put_known(&figures, sizeof(figures), figures_out);
}

static void reset_peak(void *user, struct cca_observer *observer)
{
    (void)user;
    cca_observer_reset_peak(observer);
}

int cca_api_reset_peak_memory_stats(int device)
{
    return cca_api_with_observer(device, reset_peak, NULL);
}

static void reset_accumulated(void *user, struct cca_observer *observer)
{
    (void)user;
    cca_observer_reset_accumulated(observer);
}

int cca_api_reset_accumulated_memory_stats(int device)
{
    return cca_api_with_observer(device, reset_accumulated, NULL);
}

int cca_api_largest_free_block(int device, uint64_t *bytes_out)
{
    struct cca_api_scope scope;
    int rc;

    if (bytes_out == NULL) {
        return -EINVAL;
    }
    rc = cca_api_enter(&scope, device);
    if (rc == 0) {
        *bytes_out = cca_allocator_largest_free(scope.allocator, scope.heap);
        cca_api_leave(&scope);
    }
    return rc;
}

int cca_api_put_sums(const struct cca_sums *sums, struct cca_sums_info *sums_out)
{
    struct cca_sums_info info = {0};

#define ARRAY(name, unit, what)
#define SINGLE(name, unit, what)
#define COUNTER(name, what)
#define SUM(name, unit, what) info.name = sums->name;
#include "observe/stats.def"
#undef ARRAY
#undef SINGLE
#undef COUNTER
    return put_known(&info, sizeof(info), sums_out);
}

int cca_api_stream_stats(int device, void *stream, struct cca_sums_info *sums_out)
{
    const void *caller = __builtin_return_address(0);
    struct cca_api_scope scope;
    struct cca_sums sums = {0};
    cca_key key = CCA_KEY_READY;
    int rc;

    if (sums_out == NULL) {
        return -EINVAL;
    }
    rc = cca_api_enter(&scope, device);
    if (rc != 0) {
        return rc;
    }
    rc = cca_process_place(caller, device, stream, &scope.heap, &key);
    if (rc == 0) {
        cca_allocator_stream_sums(scope.allocator, scope.heap, key, &sums);
        rc = cca_api_put_sums(&sums, sums_out);
    }
    cca_api_leave(&scope);
    return rc;
}
