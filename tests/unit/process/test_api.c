/* SPDX-License-Identifier: MIT */
/* The public header with the library in the process: this program exports its table. */
#include "support/test.h"

#include <errno.h>
#include <unistd.h>

#include "base/reentry.h"
#include "cca/cca.h"
#include "process/process.h"
#include "scenario.h"

extern const struct cca_api_1_table cca_api_1;

static void ask_before_context(void)
{
    int64_t value = 7;

    cca_process_load();
    CHECK(cca_loaded() == 1);
    CHECK(cca_memory_allocated(0) == 0 && cca_max_memory_reserved(0) == 0);
    CHECK(cca_stat_value(0, "num_ooms", &value) == -ENODEV && value == 7);
    CHECK(cca_reset_peak_memory_stats(0) == -ENODEV);
    CHECK(cca_empty_cache() == -ENODEV);
    CHECK(cca_dump_snapshot(NULL) == -ENODEV);
}

static void before_the_first_context_there_is_no_device(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(ask_before_context, NULL).status, 0);
}

static void ask_for_figures(void)
{
    struct cca_heap *heap = load_with_context();
    uint64_t first = hook_alloc(heap, 1000), second = hook_alloc(heap, 3000);
    int64_t value = 7;

    hook_free(second);
    CHECK(strcmp(cca_version(), CCA_VERSION_STRING) == 0);
    CHECK(first != 0 && cca_memory_allocated(0) == 1024);
    CHECK(cca_max_memory_allocated(0) == 1024 + 3072);
    CHECK(cca_memory_reserved(0) == 2 << 20 && cca_max_memory_reserved(0) == 2 << 20);
    CHECK(cca_stat_value(0, "allocation.all.allocated", &value) == 0 && value == 2);
    CHECK(cca_stat_value(0, "no such key", &value) == -ENOENT && value == 2);
    CHECK(cca_stat_value(0, NULL, &value) == -EINVAL);
    CHECK(cca_stat_value(0, "num_ooms", NULL) == -EINVAL);
    CHECK(cca_stat_value(-1, "num_ooms", &value) == -EINVAL);
    CHECK(cca_stat_value(63, "num_ooms", &value) == -ENODEV);
    CHECK(cca_stat_value(1000, "num_ooms", &value) == -ENODEV);
    CHECK(cca_memory_allocated(-1) == 0 && cca_memory_allocated(63) == 0);
    CHECK(cca_reset_peak_memory_stats(0) == 0 && cca_max_memory_allocated(0) == 1024);
    CHECK(cca_reset_accumulated_memory_stats(0) == 0);
    CHECK(cca_stat_value(0, "allocation.all.allocated", &value) == 0 && value == 0);
    hook_free(first);
    errno = ENOTTY;
    CHECK(cca_empty_cache() == 0 && cca_memory_reserved(0) == 0);
    CHECK(errno == ENOTTY);
}

static void figures_follow_the_allocator(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(ask_for_figures, NULL).status, 0);
}

static void ask_for_snapshots(void)
{
    struct cca_heap *heap = load_with_context();

    CHECK(hook_alloc(heap, 1000) != 0);
    errno = ENOTTY;
    CHECK(cca_dump_snapshot(NULL) == 0);
    CHECK(cca_dump_snapshot("mine") == 0);
    CHECK(cca_dump_snapshot("mine") == 0);
    CHECK(errno == ENOTTY);
    CHECK(access("mine.pickle", R_OK) == 0 && access("mine-1.pickle", R_OK) == 0);
    CHECK(count_files() == 3);
}

static void a_snapshot_is_there_when_the_call_returns(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};

    (void)state;
    assert_int_equal(run_scenario(ask_for_snapshots, variables).status, 0);
}

static void ask_inside(void)
{
    struct cca_heap *heap = load_with_context();
    int64_t value = 7;

    CHECK(hook_alloc(heap, 1000) != 0);
    /* As in a signal handler of the program that interrupted a hook, under the heap's lock. */
    CHECK(cca_reentry_enter());
    CHECK(cca_memory_allocated(0) == 0);
    CHECK(cca_stat_value(0, "num_ooms", &value) == -EBUSY && value == 7);
    CHECK(cca_reset_peak_memory_stats(0) == -EBUSY);
    CHECK(cca_reset_accumulated_memory_stats(0) == -EBUSY);
    cca_reentry_leave();
    CHECK(cca_memory_allocated(0) == 1024);
    CHECK(!cca_reentry_inside());
}

static void a_handler_that_interrupted_a_call_of_ours_gets_no_figures(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(ask_inside, NULL).status, 0);
}

/* Streams 1 to 9 of device 0 are their own keys. */
static int plain_place(const void *caller, int device, void *stream, struct cca_heap **heap_out,
                       cca_key *key_out)
{
    struct cca_heap *heap = cca_allocator_heap_of_device(cca_process_allocator(), 0);

    (void)caller;
    if (heap == NULL || device > 0) {
        return -ENODEV;
    }
    if ((uintptr_t)stream > 9) {
        return -EINVAL;
    }
    *heap_out = heap;
    *key_out = (uintptr_t)stream;
    return 0;
}

static void *const first_stream = (void *)4, *const second_stream = (void *)5;

static int64_t value_of(const char *key)
{
    int64_t value = INT64_MIN;

    CHECK(cca_stat_value(0, key, &value) == 0);
    return value;
}

static void allocate_in_stream_order(void)
{
    struct cca_sums_info sums = {.struct_bytes = sizeof(sums)};
    uint64_t largest = 7;
    char mine = 0;

    cca_process_set_place(plain_place);
    CHECK(cca_my_malloc(100, 0, first_stream) == NULL); /* no device is up */
    load_with_context();
    errno = ENOTTY;
    void *a = cca_my_malloc(3 << 20, 0, first_stream);
    CHECK(cca_stream_stats(0, first_stream, &sums) == 0);
    CHECK(sums.segments == 1 && sums.reserved_bytes == 20 << 20 && sums.live_blocks == 1);
    CHECK(sums.live_bytes == 3 << 20 && sums.free_blocks == 1 && sums.free_bytes == 17 << 20);
    void *b = cca_my_malloc(1, 0, second_stream);
    CHECK(a != NULL && b != NULL && errno == ENOTTY);
    CHECK(cca_my_malloc(0, 0, first_stream) == NULL && cca_my_malloc(-1, 0, first_stream) == NULL);
    CHECK(cca_my_malloc(1, 1, first_stream) == NULL && cca_my_malloc(1, -1, first_stream) == NULL);
    CHECK(cca_my_malloc(1, 0, (void *)99) == NULL);
    CHECK(value_of("requested_bytes.all.current") == (3 << 20) + 1);
    CHECK(cca_largest_free_block(0, &largest) == 0 && largest == 17 << 20);
    CHECK(cca_stream_stats(0, (void *)9, &sums) == 0 && sums.live_bytes == 0);
    CHECK(cca_stream_stats(0, (void *)99, &sums) == -EINVAL);
    sums.struct_bytes = 4;
    CHECK(cca_stream_stats(0, first_stream, &sums) == -EINVAL);

    cca_my_free(a, 3 << 20, 0, first_stream);
    CHECK(cca_my_malloc(3 << 20, 0, first_stream) == a);
    cca_my_free(&mine, 1, 0, first_stream);
    cca_my_free(NULL, 1, 0, first_stream);
    CHECK(cca_record_stream(&mine, first_stream) == 0);
    CHECK(cca_record_stream(NULL, first_stream) == -EINVAL);
    CHECK(cca_record_stream(b, (void *)99) == -EINVAL);
    CHECK(cca_record_stream(b, second_stream) == 0);
    CHECK(errno == ENOTTY);
}

static void own_memory_is_served_in_stream_order(void **state)
{
    (void)state;
    struct outcome outcome = run_scenario(allocate_in_stream_order, NULL);
    assert_int_equal(outcome.status, 0);
    assert_int_equal(count_occurrences(outcome.messages, "not a live block"), 1);
}

static void allocate_without_a_cache(void)
{
    cca_process_set_place(plain_place);
    struct cca_heap *heap = load_with_context();
    void *a = cca_my_malloc(1000, 0, first_stream), *b;

    CHECK(a != NULL && cca_memory_reserved(0) == 1000 && cca_memory_allocated(0) == 1000);
    cca_my_free(a, 1000, 0, first_stream);
    CHECK(cca_memory_reserved(0) == 0);
    (void)heap;
    b = cca_my_malloc(1000, 0, first_stream);
    CHECK(b != NULL && b != a);
    fail_device_allocations();
    CHECK(cca_my_malloc(1000, 0, first_stream) == NULL);
}

static void without_a_cache_own_memory_is_the_drivers(void **state)
{
    static const char *const variables[] = {"CCA_MODE=count", NULL};

    (void)state;
    assert_int_equal(run_scenario(allocate_without_a_cache, variables).status, 0);
}

static void allocate_after_the_end(void)
{
    cca_process_set_place(plain_place);
    struct cca_heap *heap = load_with_context();
    void *a = cca_my_malloc(3 << 20, 0, first_stream);

    cca_process_stop_caching("cudaSomething");
    CHECK(hook_alloc(heap, 1000) != 0);
    cca_my_free(a, 0, 0, first_stream);
    CHECK(cca_my_malloc(3 << 20, 0, first_stream) == a);
}

static void own_memory_is_served_after_caching_has_ended(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(allocate_after_the_end, NULL).status, 0);
}

static void use_pools(void)
{
    struct cca_pool_options options = {.struct_bytes = sizeof(options), .no_split = 1};
    struct cca_sums_info sums = {.struct_bytes = sizeof(sums)};
    struct cca_figures reserved = {0};
    uint64_t plain = 0, whole = 0, none = 7;

    cca_process_set_place(plain_place);
    struct cca_heap *heap = load_with_context();
    CHECK(cca_pool_create(0, NULL, &plain) == 0 && cca_pool_create(0, &options, &whole) == 0);
    CHECK(plain == 1 && whole == 2);
    options.struct_bytes = 4;
    CHECK(cca_pool_create(0, &options, &none) == -EINVAL && none == 7);
    CHECK(cca_pool_create(1, NULL, &none) == -ENODEV &&
          cca_pool_create(-1, NULL, &none) == -EINVAL);
    CHECK(cca_pool_use_begin(0, 3, CCA_POOL_USE_THREAD, NULL) == -ENOENT);
    CHECK(cca_pool_use_begin(0, plain, (enum cca_pool_use)9, NULL) == -EINVAL);
    CHECK(cca_pool_use_begin(0, plain, CCA_POOL_USE_STREAM, (void *)99) == -EINVAL);
    CHECK(cca_pool_use_begin(0, plain, CCA_POOL_USE_STREAM, first_stream) == 0);
    CHECK(cca_pool_use_begin(0, plain, CCA_POOL_USE_THREAD, NULL) == -EEXIST);
    CHECK(cca_pool_destroy(0, plain) == 0); /* the use keeps it */
    CHECK(cca_pool_destroy(0, plain) == -EBUSY);
    void *inside = cca_my_malloc(3 << 20, 0, first_stream);
    void *outside = cca_my_malloc(3 << 20, 0, second_stream);
    CHECK(cca_pool_stats(0, plain, &sums, &reserved) == 0);
    CHECK(sums.live_bytes == 3 << 20 && sums.segments == 1 && sums.free_bytes == 17 << 20);
    CHECK(reserved.all.current == 20 << 20 && reserved.small_pool.current == 0);
    CHECK(value_of("reserved_bytes_by_private_pools.0_1.all.current") == 20 << 20);
    CHECK(cca_pool_use_end(0, plain) == 0 && cca_pool_use_end(0, plain) == -ENOENT);
    CHECK(cca_pool_destroy(0, plain) == -ENOENT);
    cca_my_free(inside, 0, 0, first_stream);
    CHECK(cca_my_malloc(3 << 20, 0, first_stream) != inside);
    CHECK(cca_empty_cache() == 0);
    CHECK(cca_pool_stats(0, plain, NULL, NULL) == -ENOENT);
    CHECK(cca_memory_reserved(0) == 20 << 20);

    CHECK(cca_pool_use_begin(0, whole, CCA_POOL_USE_THREAD, NULL) == 0);
    uint64_t by_hook = hook_alloc(heap, 3 << 20);
    CHECK(by_hook != 0 && cca_pool_stats(0, whole, &sums, NULL) == 0);
    CHECK(sums.live_bytes == 20 << 20);
    CHECK(cca_pool_use_end(0, whole) == 0);
    CHECK(cca_pool_stats(0, 99, &sums, NULL) == -ENOENT);
    sums.struct_bytes = 0;
    CHECK(cca_pool_stats(0, whole, &sums, NULL) == -EINVAL);
    CHECK(outside != NULL);
}

static void pools_take_what_is_routed_to_them(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(use_pools, NULL).status, 0);
}

static void write_a_pool(void)
{
    uint64_t pool = 0;

    cca_process_set_place(plain_place);
    load_with_context();
    CHECK(cca_pool_create(0, NULL, &pool) == 0);
    CHECK(cca_pool_use_begin(0, pool, CCA_POOL_USE_STREAM, first_stream) == 0);
    CHECK(cca_my_malloc(3 << 20, 0, first_stream) != NULL);
    CHECK(cca_my_malloc(3 << 20, 0, second_stream) != NULL);
    CHECK(cca_pool_snapshot(0, pool, "pool") == 0);
    CHECK(cca_pool_snapshot(0, pool + 1, "pool") == -ENOENT);
    CHECK(access("pool.json", R_OK) == 0);
    char text[65536] = "";
    FILE *file = fopen("pool.json", "r");
    CHECK(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    CHECK(count_occurrences(text, "\"segment_type\"") == 1);
    CHECK(count_occurrences(text, "\"action\"") == 2);
    CHECK(count_occurrences(text, "\"only_pool\"") == 1);
}

static void a_snapshot_of_a_pool_holds_that_pool(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", "CCA_DUMP_FORMAT=json", NULL};

    (void)state;
    assert_int_equal(run_scenario(write_a_pool, variables).status, 0);
}

static struct {
    int ooms, traces, misses, order_breaks, inner;
    struct cca_oom_notice oom;
    struct cca_trace_notice last;
    void *spare;
    uint64_t missed_bytes;
} heard;

static void hear_oom(void *user, const struct cca_oom_notice *notice)
{
    int64_t value = 0;

    CHECK(user == &heard);
    heard.ooms++;
    heard.oom = *notice;
    CHECK(cca_stat_value(0, "num_ooms", &value) == 0); /* no lock is held */
}

static void hear_trace(void *user, const struct cca_trace_notice *notice)
{
    CHECK(user == &heard && notice->struct_bytes == sizeof(*notice));
    heard.order_breaks += notice->time_us < heard.last.time_us;
    heard.traces++;
    heard.last = *notice;
    heard.inner += cca_memory_allocated(0) != 0; /* under the lock there is no answer */
    CHECK(cca_empty_cache() == -EBUSY);
}

static int hear_miss(void *user, int device, uint64_t bytes)
{
    CHECK(user == &heard && device == 0);
    heard.misses++;
    heard.missed_bytes = bytes;
    if (heard.spare == NULL) {
        return 0;
    }
    cca_my_free(heard.spare, 0, 0, first_stream);
    heard.spare = NULL;
    return 1;
}

static void listen(void)
{
    cca_process_set_place(plain_place);
    cca_process_load();
    CHECK(cca_attach_oom_observer(NULL, NULL) == -EINVAL);
    /* Before the first context, and after it. */
    CHECK(cca_attach_oom_observer(hear_oom, &heard) == 0);
    CHECK(cca_attach_trace_tracker(hear_trace, &heard) == 0);
    load_with_context();
    CHECK(cca_attach_free_memory_callback(hear_miss, &heard) == 0);
    void *a = cca_my_malloc(3 << 20, 0, first_stream);
    CHECK(a != NULL && heard.misses == 1 && heard.traces == 2 && heard.missed_bytes == 3 << 20);
    CHECK(strcmp(heard.last.action, "alloc") == 0 && heard.last.addr == (uintptr_t)a);
    CHECK(heard.last.size == 3 << 20 && heard.last.stream == 4);
    CHECK(strcmp(heard.last.api, "cca_my_malloc") == 0);
    heard.spare = cca_my_malloc(17 << 20, 0, first_stream);
    CHECK(heard.spare != NULL && heard.misses == 1);
    CHECK(cca_my_malloc(3 << 20, 0, first_stream) != NULL && heard.misses == 2);
    CHECK(heard.spare == NULL && cca_memory_reserved(0) == 20 << 20);
    fail_device_allocations();
    CHECK(heard.ooms == 0 && cca_my_malloc((ptrdiff_t)100 << 20, 0, second_stream) == NULL);
    CHECK(heard.ooms == 1 && heard.oom.bytes == 100 << 20 && heard.oom.reserved_bytes == 20 << 20);
    CHECK(heard.oom.total_bytes == (uint64_t)16 << 30 && !heard.oom.is_rejection);
    CHECK(heard.order_breaks == 0 && heard.inner == 0);
    for (int i = 1; i < 4; i++) {
        CHECK(cca_attach_oom_observer(hear_oom, &heard) == 0);
    }
    CHECK(cca_attach_oom_observer(hear_oom, &heard) == -ENOSPC);
}

static void those_who_attach_are_told(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};

    (void)state;
    assert_int_equal(run_scenario(listen, variables).status, 0);
}

static void set_at_run_time(void)
{
    cca_process_set_place(plain_place);
    load_with_context();
    CHECK(cca_set_settings("max_split_size_mb:100,per_process_memory_fraction:0.5") == 0);
    CHECK(cca_get_memory_fraction(0) == 0.5);
    CHECK(cca_set_settings("no_such_key:1") == -EINVAL && cca_set_settings(NULL) == -EINVAL);
    CHECK(cca_set_memory_fraction(0, 0.25) == 0 && cca_get_memory_fraction(0) == 0.25);
    CHECK(cca_set_memory_fraction(0, 2) == -EINVAL && cca_set_memory_fraction(5, 0.5) == -ENODEV);
    CHECK(cca_my_malloc((ptrdiff_t)5 << 30, 0, first_stream) == NULL);
    CHECK(cca_my_malloc((ptrdiff_t)3 << 30, 0, first_stream) != NULL);
}

/* Kept for the heaps to come; what was wrong changes nothing. */
static void set_before_the_first_context(void)
{
    uint64_t addr;

    cca_process_set_place(plain_place);
    cca_process_load();
    CHECK(cca_set_settings("roundup_power2_divisions:4,per_process_memory_fraction:0.25") == 0);
    CHECK(cca_set_settings("no_such_key:1,roundup_power2_divisions:2") == -EINVAL);
    bring_context_up();
    addr = hook_alloc(cca_allocator_heap_of_device(cca_process_allocator(), 0), (5 << 20) + 1);
    CHECK(addr != 0 && cca_memory_allocated(0) == 6 << 20);
    CHECK(cca_get_memory_fraction(0) == 0.25);
    CHECK(cca_my_malloc((ptrdiff_t)5 << 30, 0, first_stream) == NULL);
    CHECK(cca_set_settings("") == 0);
    CHECK(hook_alloc(cca_allocator_heap_of_device(cca_process_allocator(), 0), (5 << 20) + 1) != 0);
    CHECK(cca_memory_allocated(0) == (11 << 20) + 512);
}

static void settings_may_be_given_before_the_first_context(void **state)
{
    static const char *const variables[] = {
        "CCA_DUMP_ON=", "CCA_CONF=roundup_power2_divisions:8,expandable_segments:False", NULL};

    (void)state;
    struct outcome outcome = run_scenario(set_before_the_first_context, variables);
    assert_int_equal(outcome.status, 0);
    assert_int_equal(count_occurrences(outcome.messages, "no_such_key:1"), 1);
}

static void settings_may_change_at_run_time(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};

    (void)state;
    struct outcome outcome = run_scenario(set_at_run_time, variables);
    assert_int_equal(outcome.status, 0);
    assert_int_equal(count_occurrences(outcome.messages, "no_such_key:1"), 1);
}

struct flat {
    char last[128];
    int keys, breaks, pools;
    int64_t ooms;
};

static void hear_stat(void *user, const char *key, int64_t value)
{
    struct flat *flat = user;

    flat->keys++;
    flat->breaks += strcmp(flat->last, key) >= 0;
    flat->pools += strncmp(key, "reserved_bytes_by_private_pools.0_1.", 36) == 0;
    flat->ooms = strcmp(key, "num_ooms") == 0 ? value : flat->ooms;
    snprintf(flat->last, sizeof(flat->last), "%s", key);
    CHECK(cca_memory_allocated(0) == 3 << 20); /* no lock is held, the guard is left */
}

static void ask_for_everything(void)
{
    struct cca_memory_figures figures = {.struct_bytes = sizeof(figures)};
    struct flat flat = {.ooms = -1};
    uint64_t pool = 0;
    char name[128], last[128] = "";
    unsigned names = 0;

    cca_process_set_place(plain_place);
    load_with_context();
    CHECK(cca_pool_create(0, NULL, &pool) == 0);
    CHECK(cca_my_malloc(3 << 20, 0, first_stream) != NULL);
    CHECK(cca_memory_stats(0, &figures) == 0);
    CHECK(figures.allocation.all.current == 1 && figures.allocation.large_pool.peak == 1);
    CHECK(figures.allocation.small_pool.allocated == 0 && figures.max_split_size == -1);
    CHECK(figures.inactive_split_bytes.all.current == 17 << 20 && figures.num_device_alloc == 1);
    figures.struct_bytes = offsetof(struct cca_memory_figures, segment);
    figures.segment.all.current = 77;
    CHECK(cca_memory_stats(0, &figures) == 0 && figures.segment.all.current == 77);
    figures.struct_bytes = 0;
    CHECK(cca_memory_stats(0, &figures) == -EINVAL && cca_memory_stats(0, NULL) == -EINVAL);
    CHECK(cca_each_stat(0, hear_stat, &flat) == 0 && cca_each_stat(0, NULL, NULL) == -EINVAL);
    while (cca_stat_name(names, name, sizeof(name)) == 0) {
        int64_t value;

        CHECK(strcmp(last, name) < 0 && cca_stat_value(0, name, &value) == 0);
        snprintf(last, sizeof(last), "%s", name);
        names++;
    }
    CHECK(cca_stat_name(0, name, 5) == -ERANGE && cca_stat_name(0, NULL, 5) == -EINVAL);
    /* Nine arrays of three, two single ones, four metrics each; seven counters. */
    CHECK(names == 9 * 12 + 8 + 7);
    CHECK(flat.keys == (int)names + 12 && flat.breaks == 0 && flat.pools == 12 && flat.ooms == 0);
}

static void every_statistic_has_a_name(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(ask_for_everything, NULL).status, 0);
}

static void the_table_states_its_size(void **state)
{
    (void)state;
    assert_int_equal(cca_api_1.struct_bytes, sizeof(struct cca_api_1_table));
    assert_ptr_equal(cca_api_1_find_(), &cca_api_1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(before_the_first_context_there_is_no_device),
    cmocka_unit_test(figures_follow_the_allocator),
    cmocka_unit_test(a_handler_that_interrupted_a_call_of_ours_gets_no_figures),
    cmocka_unit_test(a_snapshot_is_there_when_the_call_returns),
    cmocka_unit_test(own_memory_is_served_in_stream_order),
    cmocka_unit_test(without_a_cache_own_memory_is_the_drivers),
    cmocka_unit_test(own_memory_is_served_after_caching_has_ended),
    cmocka_unit_test(pools_take_what_is_routed_to_them),
    cmocka_unit_test(a_snapshot_of_a_pool_holds_that_pool),
    cmocka_unit_test(those_who_attach_are_told),
    cmocka_unit_test(settings_may_be_given_before_the_first_context),
    cmocka_unit_test(settings_may_change_at_run_time),
    cmocka_unit_test(every_statistic_has_a_name),
    cmocka_unit_test(the_table_states_its_size),
};

CCA_TEST_MAIN(tests)
