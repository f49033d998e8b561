/* SPDX-License-Identifier: MIT */
#include "observe/stats.h"

#include <errno.h>

#include "support/test.h"

static const struct cca_pool_rows no_pools;

#define MIB INT64_C(1048576)

static void apply(struct cca_stats *stats, const struct cca_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cca_stats_apply(stats, &events[i]);
    }
}

#define APPLY(stats, ...)                                 \
    apply(stats, (const struct cca_event[]){__VA_ARGS__}, \
          sizeof((const struct cca_event[]){__VA_ARGS__}) / sizeof(struct cca_event))

#define SEGMENT(what, size, bits)                                                           \
    {                                                                                       \
        .kind = what, .requested_bytes = (uint64_t)(size), .block_bytes = (uint64_t)(size), \
        .flags = bits                                                                       \
    }
#define BLOCK(what, asked, size, bits, splits, split_bytes)                                  \
    {                                                                                        \
        .kind = what, .requested_bytes = (uint64_t)(asked), .block_bytes = (uint64_t)(size), \
        .flags = bits, .split_count_delta = splits, .split_bytes_delta = split_bytes         \
    }
#define FREED(asked, size, bits, splits, split_bytes)         \
    BLOCK(CCA_EVENT_FREE_REQUESTED, asked, size, bits, 0, 0), \
        BLOCK(CCA_EVENT_FREE_COMPLETED, asked, size, bits, splits, split_bytes)

static void expect(const struct cca_stat *stat, int64_t current, int64_t peak, int64_t allocated,
                   int64_t freed)
{
    assert_int_equal(stat->current, current);
    assert_int_equal(stat->peak, peak);
    assert_int_equal(stat->allocated, allocated);
    assert_int_equal(stat->freed, freed);
}

/* Scenario S1 of the specification: two small blocks come and go, then the cache is emptied. */
static void small_blocks_share_a_segment(void **state)
{
    struct cca_stats s = {0};
    const unsigned small = CCA_EVENT_SMALL;

    (void)state;
    APPLY(&s, SEGMENT(CCA_EVENT_SEGMENT_ALLOC, 2097152, small),
          BLOCK(CCA_EVENT_ALLOC, 1000, 1024, small, 1, 2096128));
    expect(&s.allocation[CCA_STAT_ALL], 1, 1, 1, 0);
    expect(&s.inactive_split[CCA_STAT_ALL], 1, 1, 1, 0);
    expect(&s.inactive_split_bytes[CCA_STAT_ALL], 2096128, 2096128, 2096128, 0);
    expect(&s.allocated_bytes[CCA_STAT_ALL], 1024, 1024, 1024, 0);
    expect(&s.requested_bytes[CCA_STAT_ALL], 1000, 1000, 1000, 0);
    expect(&s.reserved_bytes[CCA_STAT_ALL], 2097152, 2097152, 2097152, 0);

    APPLY(&s, BLOCK(CCA_EVENT_ALLOC, 1000, 1024, small, 0, -1024));
    expect(&s.allocation[CCA_STAT_ALL], 2, 2, 2, 0);
    expect(&s.inactive_split[CCA_STAT_ALL], 1, 1, 1, 0);
    expect(&s.inactive_split_bytes[CCA_STAT_ALL], 2095104, 2096128, 2096128, 1024);
    expect(&s.requested_bytes[CCA_STAT_ALL], 2000, 2000, 2000, 0);

    APPLY(&s, FREED(1000, 1024, small, 1, 1024));
    expect(&s.allocation[CCA_STAT_ALL], 1, 2, 2, 1);
    expect(&s.inactive_split[CCA_STAT_ALL], 2, 2, 2, 0);
    expect(&s.inactive_split_bytes[CCA_STAT_ALL], 2096128, 2096128, 2097152, 1024);
    expect(&s.allocated_bytes[CCA_STAT_ALL], 1024, 2048, 2048, 1024);

    APPLY(&s, FREED(1000, 1024, small, -2, -2096128));
    expect(&s.allocation[CCA_STAT_ALL], 0, 2, 2, 2);
    expect(&s.inactive_split[CCA_STAT_ALL], 0, 2, 2, 2);
    expect(&s.inactive_split_bytes[CCA_STAT_ALL], 0, 2096128, 2097152, 2097152);
    expect(&s.requested_bytes[CCA_STAT_ALL], 0, 2000, 2000, 2000);

    APPLY(&s, SEGMENT(CCA_EVENT_SEGMENT_FREE, 2097152, small));
    expect(&s.reserved_bytes[CCA_STAT_ALL], 0, 2097152, 2097152, 2097152);
    expect(&s.reserved_bytes[CCA_STAT_SMALL], 0, 2097152, 2097152, 2097152);
    expect(&s.reserved_bytes[CCA_STAT_LARGE], 0, 0, 0, 0);
    assert_int_equal(s.num_device_alloc, 1);
    assert_int_equal(s.num_device_free, 1);
}

/* Scenario S2. */
static void large_blocks_are_split_and_taken_whole(void **state)
{
    struct cca_stats s = {0};

    (void)state;
    APPLY(&s, SEGMENT(CCA_EVENT_SEGMENT_ALLOC, 20 * MIB, 0),
          BLOCK(CCA_EVENT_ALLOC, 1048577, 1049088, 0, 1, 19922432));
    expect(&s.inactive_split_bytes[CCA_STAT_ALL], 19922432, 19922432, 19922432, 0);
    APPLY(&s, BLOCK(CCA_EVENT_ALLOC, 3 * MIB, 3 * MIB, 0, 0, -3 * MIB));
    expect(&s.inactive_split_bytes[CCA_STAT_ALL], 16776704, 19922432, 19922432, 3145728);
    expect(&s.allocated_bytes[CCA_STAT_ALL], 4194816, 4194816, 4194816, 0);
    APPLY(&s, FREED(1048577, 1049088, 0, 1, 1049088));
    expect(&s.inactive_split[CCA_STAT_ALL], 2, 2, 2, 0);
    expect(&s.inactive_split_bytes[CCA_STAT_ALL], 17825792, 19922432, 20971520, 3145728);
    expect(&s.allocated_bytes[CCA_STAT_ALL], 3145728, 4194816, 4194816, 1049088);
    APPLY(&s, BLOCK(CCA_EVENT_ALLOC, 15 * MIB, 16776704, 0, -1, -16776704));
    expect(&s.segment[CCA_STAT_ALL], 1, 1, 1, 0);
    expect(&s.inactive_split[CCA_STAT_ALL], 1, 2, 2, 1);
    expect(&s.inactive_split_bytes[CCA_STAT_ALL], 1049088, 19922432, 20971520, 19922432);
    expect(&s.allocated_bytes[CCA_STAT_LARGE], 19922432, 19922432, 20971520, 1049088);
}

/* Scenario S3. */
static void unsplit_block_counts_whole(void **state)
{
    struct cca_stats s = {0};

    (void)state;
    APPLY(&s, SEGMENT(CCA_EVENT_SEGMENT_ALLOC, 20 * MIB, 0),
          BLOCK(CCA_EVENT_ALLOC, 19 * MIB, 20 * MIB, 0, 0, 0));
    assert_int_equal(s.allocated_bytes[CCA_STAT_ALL].current, 20971520);
    assert_int_equal(s.requested_bytes[CCA_STAT_ALL].current, 19922944);
    assert_int_equal(s.inactive_split[CCA_STAT_ALL].current, 0);
    APPLY(&s, FREED(19 * MIB, 20 * MIB, 0, 0, 0),
          BLOCK(CCA_EVENT_ALLOC, 9 * MIB, 9 * MIB, 0, 1, 11534336));
    assert_int_equal(s.allocated_bytes[CCA_STAT_ALL].current, 9437184);
    assert_int_equal(s.inactive_split[CCA_STAT_ALL].current, 1);
    assert_int_equal(s.inactive_split_bytes[CCA_STAT_ALL].current, 11534336);
}

/* Scenario S4. */
static void oversize_is_counted(void **state)
{
    struct cca_stats s = {0};
    const unsigned over = CCA_EVENT_OVERSIZE;

    (void)state;
    APPLY(&s, SEGMENT(CCA_EVENT_SEGMENT_ALLOC, 50 * MIB, over),
          BLOCK(CCA_EVENT_ALLOC, 50 * MIB, 50 * MIB, over, 0, 0),
          FREED(50 * MIB, 50 * MIB, over, 0, 0), SEGMENT(CCA_EVENT_SEGMENT_ALLOC, 30 * MIB, 0),
          BLOCK(CCA_EVENT_ALLOC, 30 * MIB, 30 * MIB, 0, 0, 0));
    expect(&s.segment[CCA_STAT_ALL], 2, 2, 2, 0);
    assert_int_equal(s.reserved_bytes[CCA_STAT_ALL].current, 83886080);
    expect(&s.oversize_allocations, 0, 1, 1, 1);
    expect(&s.oversize_segments, 1, 1, 1, 0);
    APPLY(&s, FREED(30 * MIB, 30 * MIB, 0, 0, 0),
          BLOCK(CCA_EVENT_ALLOC, 45 * MIB, 50 * MIB, over, 0, 0));
    assert_int_equal(s.allocated_bytes[CCA_STAT_ALL].current, 52428800);
    assert_int_equal(s.requested_bytes[CCA_STAT_ALL].current, 47185920);
    expect(&s.oversize_allocations, 1, 1, 2, 1);
    assert_int_equal(s.segment[CCA_STAT_ALL].current, 2);
}

/* Which values change when a kind is applied to nothing: key and value; all others stay 0. */
struct effect {
    enum cca_event_kind kind;
    unsigned flags;
    const char *changed[8]; /* names of arrays and single stats */
    int64_t by[8];
    const char *counter;
};

static const struct effect effects[] = {
    {CCA_EVENT_ALLOC,
     0,
     {"allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes",
      "inactive_split", "inactive_split_bytes"},
     {1, 64, 50, 1, 64, -1, -30},
     NULL},
    {CCA_EVENT_ALLOC,
     CCA_EVENT_OVERSIZE,
     {"allocation", "allocated_bytes", "requested_bytes", "active", "active_bytes",
      "inactive_split", "inactive_split_bytes", "oversize_allocations"},
     {1, 64, 50, 1, 64, -1, -30, 1},
     NULL},
    {CCA_EVENT_FREE_REQUESTED, 0, {"allocation", "allocated_bytes"}, {-1, -64}, NULL},
    {CCA_EVENT_FREE_REQUESTED,
     CCA_EVENT_OVERSIZE,
     {"allocation", "allocated_bytes", "oversize_allocations"},
     {-1, -64, -1},
     NULL},
    {CCA_EVENT_FREE_COMPLETED,
     CCA_EVENT_OVERSIZE,
     {"active", "active_bytes", "requested_bytes", "inactive_split", "inactive_split_bytes"},
     {-1, -64, -50, -1, -30},
     NULL},
    {CCA_EVENT_SEGMENT_ALLOC, 0, {"segment", "reserved_bytes"}, {1, 64}, "num_device_alloc"},
    {CCA_EVENT_SEGMENT_ALLOC,
     CCA_EVENT_OVERSIZE,
     {"segment", "reserved_bytes", "oversize_segments"},
     {1, 64, 1},
     "num_device_alloc"},
    {CCA_EVENT_SEGMENT_FREE,
     CCA_EVENT_OVERSIZE,
     {"segment", "reserved_bytes", "oversize_segments"},
     {-1, -64, -1},
     "num_device_free"},
    {CCA_EVENT_SEGMENT_MAP, CCA_EVENT_OVERSIZE, {"reserved_bytes"}, {64}, "num_device_alloc"},
    {CCA_EVENT_SEGMENT_UNMAP, CCA_EVENT_OVERSIZE, {"reserved_bytes"}, {-64}, "num_device_free"},
    {CCA_EVENT_SNAPSHOT, 0, {NULL}, {0}, NULL},
    {CCA_EVENT_OOM, 0, {NULL}, {0}, "num_ooms"},
    {CCA_EVENT_RETRY, 0, {NULL}, {0}, "num_alloc_retries"},
    {CCA_EVENT_SYNC, 0, {NULL}, {0}, "num_sync_all_streams"},
    {CCA_EVENT_REJECT, 0, {NULL}, {0}, "num_oom_rejections"},
    {CCA_EVENT_DRIVER_FREED, 0, {NULL}, {0}, NULL},
    {CCA_EVENT_FREE_WAITED, 0, {NULL}, {0}, NULL},
    {CCA_EVENT_FENCE, 0, {NULL}, {0}, NULL},
    {CCA_EVENT_REKEY, 0, {"inactive_split", "inactive_split_bytes"}, {-1, -30}, NULL},
    {CCA_EVENT_FENCE_JOIN, 0, {NULL}, {0}, NULL},
    {CCA_EVENT_ANNOTATE, 0, {NULL}, {0}, NULL},
};

struct comparison {
    const struct effect *effect;
    const char *pool;
};

static int64_t wanted(const struct comparison *c, const char *key)
{
    char name[64];
    size_t len = strcspn(key, ".");
    const char *metric = strrchr(key, '.');

    if (c->effect->counter != NULL && strcmp(key, c->effect->counter) == 0) {
        return 1;
    }
    if (metric == NULL) {
        return 0;
    }
    bool is_array = metric != key + len;
    if (is_array && strncmp(key + len, ".all.", 5) != 0 && strstr(key, c->pool) == NULL) {
        return 0;
    }
    snprintf(name, sizeof(name), "%.*s", (int)len, key);
    for (int i = 0; i < 8 && c->effect->changed[i] != NULL; i++) {
        int64_t by = c->effect->by[i];
        if (strcmp(name, c->effect->changed[i]) == 0) {
            if (strcmp(metric, ".current") == 0) {
                return by;
            }
            if (strcmp(metric, ".freed") == 0) {
                return by < 0 ? -by : 0;
            }
            return by > 0 ? by : 0;
        }
    }
    return 0;
}

static void compare(void *user, const char *key, int64_t value)
{
    const struct comparison *c = user;

    if (value != wanted(c, key)) {
        print_error("%s of %s: %" PRId64 "\n", key, cca_event_kind_name(c->effect->kind), value);
    }
    assert_int_equal(value, wanted(c, key));
}

static void each_kind_changes_its_statistics_and_no_other(void **state)
{
    bool is_seen[CCA_EVENT_KIND_COUNT] = {false};

    (void)state;
    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
        for (unsigned small = 0; small <= CCA_EVENT_SMALL; small++) {
            struct cca_stats stats = {0};
            struct comparison c = {&effects[i], small != 0 ? ".small_pool." : ".large_pool."};
            struct cca_event event = {.kind = effects[i].kind,
                                      .flags = effects[i].flags | small,
                                      .requested_bytes = 50,
                                      .block_bytes = 64,
                                      .duration_ns = 7,
                                      .split_count_delta = -1,
                                      .split_bytes_delta = -30};
            cca_stats_apply(&stats, &event);
            cca_stats_each(&stats, no_pools, compare, &c);
            is_seen[effects[i].kind] = true;
        }
    }
    for (int kind = 0; kind < CCA_EVENT_KIND_COUNT; kind++) {
        assert_true(is_seen[kind]);
    }
}

static void check_identity(void *user, const char *key, int64_t value)
{
    static int64_t allocated, current, freed;
    const char *metric = strrchr(key, '.');

    (void)user;
    if (metric == NULL) {
        return;
    }
    if (strcmp(metric, ".allocated") == 0) {
        allocated = value;
    } else if (strcmp(metric, ".current") == 0) {
        current = value;
    } else if (strcmp(metric, ".freed") == 0) {
        freed = value;
    } else {
        assert_true(value >= current);
        assert_int_equal(current, allocated - freed);
    }
}

static void identities_hold_and_resets_keep_current(void **state)
{
    struct cca_stats s = {.max_split_size = -1};
    uint64_t seed = 7;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        struct cca_event event = {.kind = (enum cca_event_kind)((seed >> 33) % CCA_EVENT_OOM),
                                  .flags = (unsigned)(seed >> 40) & 15,
                                  .requested_bytes = (seed >> 44) & 1023,
                                  .block_bytes = 1024,
                                  .split_count_delta = (int32_t)(seed >> 60) - 8,
                                  .split_bytes_delta = (int64_t)(seed >> 50) - 8000};
        cca_stats_apply(&s, &event);
        if (i % 512 == 0) {
            cca_stats_each(&s, no_pools, check_identity, NULL);
        }
    }
    APPLY(&s, {.kind = CCA_EVENT_OOM}, {.kind = CCA_EVENT_RETRY});
    int64_t reserved = s.reserved_bytes[CCA_STAT_ALL].current;
    int64_t allocated = s.reserved_bytes[CCA_STAT_ALL].allocated;
    cca_stats_reset_peak(&s);
    expect(&s.reserved_bytes[CCA_STAT_ALL], reserved, reserved, allocated, allocated - reserved);
    assert_int_equal(s.oversize_segments.peak, s.oversize_segments.current);
    assert_int_equal(s.num_ooms, 1);
    cca_stats_reset_accumulated(&s);
    expect(&s.reserved_bytes[CCA_STAT_ALL], reserved, reserved, 0, 0);
    assert_int_equal(s.oversize_segments.allocated, 0);
    assert_int_equal(s.num_ooms, 0);
    assert_int_equal(s.num_device_alloc, 0);
    assert_int_equal(s.max_split_size, -1);
    APPLY(&s, SEGMENT(CCA_EVENT_SEGMENT_ALLOC, 10, 0));
    assert_int_equal(s.reserved_bytes[CCA_STAT_ALL].current, reserved + 10);
    assert_int_equal(s.reserved_bytes[CCA_STAT_ALL].allocated, 10);
}

struct key_walk {
    char last[64];
    int count;
};

static void check_order(void *user, const char *key, int64_t value)
{
    struct key_walk *walk = user;

    assert_true(strlen(key) < sizeof(walk->last));
    assert_true(strcmp(walk->last, key) < 0);
    strcpy(walk->last, key);
    walk->count++;
    assert_int_equal(value, strcmp(key, "max_split_size") == 0 ? -1 : 0);
}

static void keys_come_sorted_and_complete(void **state)
{
    struct cca_stats s = {.max_split_size = -1};
    struct key_walk walk = {"", 0};

    (void)state;
    cca_stats_each(&s, no_pools, check_order, &walk);
    assert_string_equal(walk.last, "segment.small_pool.peak");
    assert_int_equal(walk.count, 9 * 3 * 4 + 2 * 4 + 6 + 1);
}

static void values_are_found_by_key(void **state)
{
    struct cca_stats s = {.max_split_size = 41};
    int64_t value = 5;

    (void)state;
    s.active_bytes[CCA_STAT_LARGE].peak = 17;
    s.oversize_segments.freed = 3;
    s.num_ooms = 2;
    assert_int_equal(cca_stats_value(&s, no_pools, "active_bytes.large_pool.peak", &value), 0);
    assert_int_equal(value, 17);
    assert_int_equal(cca_stats_value(&s, no_pools, "oversize_segments.freed", &value), 0);
    assert_int_equal(value, 3);
    assert_int_equal(cca_stats_value(&s, no_pools, "num_ooms", &value), 0);
    assert_int_equal(value, 2);
    assert_int_equal(cca_stats_value(&s, no_pools, "max_split_size", &value), 0);
    assert_int_equal(value, 41);
    assert_int_equal(cca_stats_value(&s, no_pools, "active_bytes", &value), -ENOENT);
    assert_int_equal(cca_stats_value(&s, no_pools, "", &value), -ENOENT);
    assert_int_equal(value, 41);
}

static void counters_follow_events(void **state)
{
    struct cca_counters c = {0};
    const struct cca_event events[] = {
        {.kind = CCA_EVENT_ALLOC, .flags = CCA_EVENT_HIT},
        {.kind = CCA_EVENT_ALLOC},
        {.kind = CCA_EVENT_ALLOC, .flags = CCA_EVENT_PASSED},
        {.kind = CCA_EVENT_SEGMENT_ALLOC, .duration_ns = 1000},
        {.kind = CCA_EVENT_SEGMENT_ALLOC, .flags = CCA_EVENT_PASSED, .duration_ns = 5000},
        {.kind = CCA_EVENT_DRIVER_FREED, .duration_ns = 70},
        {.kind = CCA_EVENT_DRIVER_FREED, .flags = CCA_EVENT_PASSED, .duration_ns = 900},
        {.kind = CCA_EVENT_FREE_WAITED, .duration_ns = 11},
        {.kind = CCA_EVENT_FREE_WAITED, .duration_ns = 12},
        {.kind = CCA_EVENT_FENCE},
        {.kind = CCA_EVENT_FENCE_JOIN},
        {.kind = CCA_EVENT_FENCE_JOIN},
        {.kind = CCA_EVENT_FREE_REQUESTED, .duration_ns = 99},
        {.kind = CCA_EVENT_SEGMENT_FREE, .duration_ns = 99},
    };
    struct cca_counters want = {.allocs = 3,
                                .hits = 1,
                                .passed = 1,
                                .driver_allocs = 1,
                                .driver_alloc_ns = 1000,
                                .driver_frees = 1,
                                .driver_free_ns = 70,
                                .free_waits = 2,
                                .free_wait_ns = 23,
                                .fences = 1,
                                .fence_joins = 2};

    (void)state;
    want.driver_alloc_histogram[9] = 1;
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        cca_counters_apply(&c, &events[i]);
    }
    assert_memory_equal(&c, &want, sizeof(c));
}

static void median_lies_in_the_middle_slot(void **state)
{
    struct cca_counters c = {0};
    struct cca_event event = {.kind = CCA_EVENT_SEGMENT_ALLOC};
    const uint64_t durations[] = {0, 1, 100000, 120000, UINT64_MAX / 4};

    (void)state;
    assert_int_equal(cca_counters_driver_alloc_median_ns(&c), 0);
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        event.duration_ns = durations[i];
        cca_counters_apply(&c, &event);
    }
    assert_int_equal(c.driver_alloc_histogram[0], 2);
    assert_int_equal(c.driver_alloc_histogram[47], 1);
    assert_in_range(cca_counters_driver_alloc_median_ns(&c), 65536, 131072);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(small_blocks_share_a_segment),
    cmocka_unit_test(large_blocks_are_split_and_taken_whole),
    cmocka_unit_test(unsplit_block_counts_whole),
    cmocka_unit_test(oversize_is_counted),
    cmocka_unit_test(each_kind_changes_its_statistics_and_no_other),
    cmocka_unit_test(identities_hold_and_resets_keep_current),
    cmocka_unit_test(keys_come_sorted_and_complete),
    cmocka_unit_test(values_are_found_by_key),
    cmocka_unit_test(counters_follow_events),
    cmocka_unit_test(median_lies_in_the_middle_slot),
};
CCA_TEST_MAIN(tests)
