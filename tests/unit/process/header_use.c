/* SPDX-License-Identifier: MIT */
/* The public header in a program that is not linked with the library; C11 and C++17. Argument:
 * whether the library is `present` in the process or `absent`. Exit status: the number of the first
 * answer that is not as documented. */
#include "cca/cca.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static void on_stat(void *user, const char *key, int64_t value)
{
    (void)user, (void)key, (void)value;
}

static void on_oom(void *user, const struct cca_oom_notice *notice)
{
    (void)user, (void)notice;
}

static void on_trace(void *user, const struct cca_trace_notice *notice)
{
    (void)user, (void)notice;
}

static int on_miss(void *user, int device, uint64_t bytes)
{
    (void)user, (void)device, (void)bytes;
    return 0;
}

static void on_report(void *user, const struct cca_memory_report *report)
{
    (void)user;
    (void)report;
}

static int check_figures(int is_present, int error)
{
    struct cca_memory_figures figures;
    struct cca_sums_info sums;
    uint64_t bytes = 7;
    int64_t value = 7;
    char name[64] = "";

    memset(&figures, 0, sizeof(figures));
    figures.struct_bytes = sizeof(figures);
    memset(&sums, 0, sizeof(sums));
    sums.struct_bytes = sizeof(sums);
    if (cca_memory_allocated(0) != 0 || cca_max_memory_allocated(0) != 0) {
        return 3;
    }
    if (cca_memory_reserved(0) != 0 || cca_max_memory_reserved(0) != 0) {
        return 4;
    }
    if (cca_stat_value(0, "num_ooms", &value) != error || value != 7) {
        return 5;
    }
    if (cca_reset_peak_memory_stats(0) != error || cca_reset_accumulated_memory_stats(0) != error) {
        return 6;
    }
    if (cca_memory_stats(0, &figures) != error || cca_each_stat(0, on_stat, NULL) != error) {
        return 9;
    }
    if (cca_largest_free_block(0, &bytes) != error || bytes != 7) {
        return 10;
    }
    if (cca_stream_stats(0, NULL, &sums) != error) {
        return 11;
    }
    if (cca_stat_name(0, name, sizeof(name)) != (is_present ? 0 : -ENOSYS) ||
        strcmp(name, is_present ? "active.all.allocated" : "") != 0) {
        return 12;
    }
    return 0;
}

static int check_pools(int error)
{
    uint64_t pool = 7;

    if (cca_pool_create(0, NULL, &pool) != error || pool != 7) {
        return 20;
    }
    if (cca_pool_destroy(0, 1) != error || cca_pool_use_end(0, 1) != error) {
        return 21;
    }
    if (cca_pool_use_begin(0, 1, CCA_POOL_USE_THREAD, NULL) != error) {
        return 22;
    }
    if (cca_pool_stats(0, 1, NULL, NULL) != error || cca_pool_snapshot(0, 1, NULL) != error) {
        return 23;
    }
    return 0;
}

static int check(int is_present)
{
    const int error = is_present ? -ENODEV : -ENOSYS, done = is_present ? 0 : -ENOSYS;
    char mine = 0;
    int rc;

    if (cca_loaded() != is_present || (cca_version() != NULL) != is_present) {
        return 1;
    }
    if (is_present && strcmp(cca_version(), CCA_VERSION_STRING) != 0) {
        return 2;
    }
    rc = check_figures(is_present, error);
    if (rc == 0) {
        rc = check_pools(error);
    }
    if (rc != 0) {
        return rc;
    }
    if (cca_empty_cache() != error || cca_dump_snapshot(NULL) != error) {
        return 7;
    }
    if (cca_set_settings("") != done || cca_set_memory_fraction(0, 0.5) != error) {
        return 30;
    }
    if (cca_get_memory_fraction(0) != 1 || cca_record_stream(&mine, NULL) != error) {
        return 31;
    }
    if (cca_my_malloc(512, 0, NULL) != NULL) {
        return 32;
    }
    cca_my_free(&mine, 1, 0, NULL);
    if (cca_attach_oom_observer(on_oom, NULL) != done ||
        cca_attach_trace_tracker(on_trace, NULL) != done ||
        cca_attach_free_memory_callback(on_miss, NULL) != done ||
        cca_set_memory_reporter(on_report, NULL) != done) {
        return 33;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int rc;

    if (argc != 2) {
        return 64;
    }
    errno = ENOTTY;
    rc = check(strcmp(argv[1], "present") == 0);
    return rc == 0 && errno != ENOTTY ? 8 : rc;
}
