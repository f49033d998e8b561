/* SPDX-License-Identifier: MIT */
#include "observe/pool_table.h"

#include <errno.h>

#include "base/sysmem.h"
#include "support/test.h"

static const uint64_t graph[2] = {7, 0}, user[2] = {0, 3}, tenth[2] = {0, 10};

static struct cca_event segment(enum cca_event_kind kind, uint16_t pool, uint64_t bytes,
                                unsigned flags)
{
    return (struct cca_event){.kind = kind, .pool = pool, .block_bytes = bytes, .flags = flags};
}

static void apply(struct cca_pool_table *table, struct cca_event event)
{
    cca_pool_table_apply(table, &event);
}

static const struct cca_stat *reserved(const struct cca_pool_table *table, uint16_t number,
                                       enum cca_stat_pool pool)
{
    return &cca_pool_table_row(table, number)->stats.reserved_bytes_by_private_pools[pool];
}

static void figures_follow_the_events_of_their_pool(void **state)
{
    struct cca_pool_table table = {0};
    (void)state;
    uint16_t one = cca_pool_table_add(&table, graph), two = cca_pool_table_add(&table, user);
    assert_int_equal(one, 1);
    assert_int_equal(two, 2);
    apply(&table, segment(CCA_EVENT_SEGMENT_ALLOC, one, 2 << 20, CCA_EVENT_SMALL));
    apply(&table, segment(CCA_EVENT_SEGMENT_MAP, one, 20 << 20, 0));
    apply(&table, segment(CCA_EVENT_SEGMENT_ALLOC, 0, 100, 0));
    apply(&table, segment(CCA_EVENT_ALLOC, one, 512, 0));
    apply(&table, segment(CCA_EVENT_SEGMENT_UNMAP, one, 20 << 20, 0));
    assert_int_equal(reserved(&table, one, CCA_STAT_ALL)->current, 2 << 20);
    assert_int_equal(reserved(&table, one, CCA_STAT_ALL)->peak, 22 << 20);
    assert_int_equal(reserved(&table, one, CCA_STAT_SMALL)->current, 2 << 20);
    assert_int_equal(reserved(&table, one, CCA_STAT_LARGE)->freed, 20 << 20);
    assert_int_equal(reserved(&table, two, CCA_STAT_ALL)->peak, 0);
    cca_pool_table_reset_peak(&table);
    assert_int_equal(reserved(&table, one, CCA_STAT_ALL)->peak, 2 << 20);
    cca_pool_table_reset_accumulated(&table);
    assert_int_equal(reserved(&table, one, CCA_STAT_ALL)->allocated, 0);
    assert_int_equal(reserved(&table, one, CCA_STAT_ALL)->current, 2 << 20);
    assert_null(cca_pool_table_row(&table, 0));
    assert_null(cca_pool_table_row(&table, 3));
    cca_pool_table_fini(&table);
}

struct keys {
    char text[64][128];
    int64_t values[64];
    size_t count;
};

static void collect(void *user_, const char *key, int64_t value)
{
    struct keys *keys = user_;
    if (strncmp(key, "reserved_bytes_by_private_pools.", 32) == 0) {
        snprintf(keys->text[keys->count], sizeof(keys->text[0]), "%s", key);
        keys->values[keys->count++] = value;
    }
}

static void pools_that_are_there_have_keys_in_order(void **state)
{
    static const struct cca_stats stats;
    static struct keys keys;
    struct cca_pool_table table = {0};
    int64_t value = 0;
    (void)state;
    uint16_t last = cca_pool_table_add(&table, tenth), first = cca_pool_table_add(&table, user);
    uint16_t gone = cca_pool_table_add(&table, graph);
    apply(&table, segment(CCA_EVENT_SEGMENT_ALLOC, first, 2 << 20, CCA_EVENT_SMALL));
    apply(&table, segment(CCA_EVENT_SEGMENT_ALLOC, last, 20 << 20, 0));
    cca_pool_table_drop(&table, gone);
    struct cca_pool_rows rows = cca_pool_table_rows(&table);
    cca_stats_each(&stats, rows, collect, &keys);
    assert_int_equal(keys.count, 24);
    for (size_t i = 1; i < keys.count; i++) {
        assert_true(strcmp(keys.text[i - 1], keys.text[i]) < 0);
    }
    assert_string_equal(keys.text[0], "reserved_bytes_by_private_pools.0_10.all.allocated");
    assert_string_equal(keys.text[23], "reserved_bytes_by_private_pools.0_3.small_pool.peak");
    assert_int_equal(cca_stats_value(&stats, rows, keys.text[0], &value), 0);
    assert_int_equal(value, 20 << 20);
    assert_int_equal(cca_stats_value(&stats, rows, keys.text[23], &value), 0);
    assert_int_equal(value, 2 << 20);
    assert_int_equal(
        cca_stats_value(&stats, rows, "reserved_bytes_by_private_pools.7_0.all.current", &value),
        -ENOENT);
    cca_pool_table_fini(&table);
}

static void a_pool_that_comes_back_gets_its_number_again(void **state)
{
    struct cca_pool_table table = {0};
    (void)state;
    assert_int_equal(cca_pool_table_add(&table, graph), 1);
    cca_pool_table_drop(&table, 1);
    assert_int_equal(cca_pool_table_add(&table, user), 2);
    assert_int_equal(cca_pool_table_add(&table, graph), 1);
    cca_pool_table_fini(&table);
}

static void numbers_of_pools_that_are_gone_are_given_again_at_the_end(void **state)
{
    struct cca_pool_table table = {0};
    uint64_t id[2] = {0, 0};
    (void)state;
    table.last = 0;
    for (unsigned i = 1; i <= 8; i++) {
        id[1] = i;
        assert_int_equal(cca_pool_table_add(&table, id), i);
    }
    /* As if all others had been given, too. */
    table.last = CCA_POOLS_MAX;
    for (unsigned i = 9; i <= CCA_POOLS_MAX; i++) {
        table.rows[i].id[1] = i;
        table.rows[i].is_live = true;
    }
    id[1] = 1 << 20;
    assert_int_equal(cca_pool_table_add(&table, id), 0);
    apply(&table, segment(CCA_EVENT_SEGMENT_ALLOC, 5, 100, 0));
    cca_pool_table_drop(&table, 5);
    assert_int_equal(cca_pool_table_add(&table, id), 5);
    assert_int_equal(reserved(&table, 5, CCA_STAT_ALL)->allocated, 0);
    assert_int_equal(cca_pool_table_row(&table, 5)->id[1], 1 << 20);
    cca_pool_table_fini(&table);
}

static void memory_may_be_refused(void **state)
{
    struct cca_pool_table table = {0};
    (void)state;
    cca_sysmem_fail_nth(1);
    assert_int_equal(cca_pool_table_add(&table, graph), 0);
    assert_int_equal(cca_pool_table_rows(&table).count, 0);
    assert_int_equal(cca_pool_table_add(&table, graph), 1);
    cca_pool_table_fini(&table);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(figures_follow_the_events_of_their_pool),
    cmocka_unit_test(pools_that_are_there_have_keys_in_order),
    cmocka_unit_test(a_pool_that_comes_back_gets_its_number_again),
    cmocka_unit_test(numbers_of_pools_that_are_gone_are_given_again_at_the_end),
    cmocka_unit_test(memory_may_be_refused),
};

CCA_TEST_MAIN(tests)
