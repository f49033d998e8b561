/* SPDX-License-Identifier: MIT */
/* The golden scenarios S1 to S4 of PyTorch's allocator, driven in stream order on one stream. */
#include "support/heap_fixture.h"

#include "alloc/ladder.h"
#include "base/clock.h"

static const cca_key stream = 7;

/* A core in stream order: streams keep their blocks, as in PyTorch. */
static void open_core(struct fixture *fix, void (*set)(struct cca_config *config))
{
    fixture_open_with(fix, 1, set);
    fix->heaps[0]->rekeys = false;
}

static uint64_t take(struct fixture *fix, size_t bytes)
{
    return fix_malloc_async(fix, bytes, stream);
}

static void give(struct fixture *fix, uint64_t addr)
{
    fix_free_async(fix, addr, stream);
}

struct stat4 {
    int64_t current, peak, allocated, freed;
};

static void expect(struct fixture *fix, const char *name, struct stat4 want)
{
    static const char *const metrics[] = {"current", "peak", "allocated", "freed"};
    const int64_t values[] = {want.current, want.peak, want.allocated, want.freed};
    for (int i = 0; i < 4; i++) {
        char key[96];
        snprintf(key, sizeof(key), "%s.%s", name, metrics[i]);
        int64_t got = fix_stat(fix, key);
        if (got != values[i]) {
            fail_msg("%s is %lld, not %lld", key, (long long)got, (long long)values[i]);
        }
    }
}

struct s1_row {
    struct stat4 allocation, split, split_bytes, allocated, requested, reserved;
};

static void expect_s1(struct fixture *fix, struct s1_row row)
{
    expect(fix, "allocation.all", row.allocation);
    expect(fix, "inactive_split.all", row.split);
    expect(fix, "inactive_split_bytes.all", row.split_bytes);
    expect(fix, "allocated_bytes.all", row.allocated);
    expect(fix, "requested_bytes.all", row.requested);
    expect(fix, "reserved_bytes.all", row.reserved);
}

static void s1_small_blocks_split_and_join(void **state)
{
    (void)state;
    struct fixture fix;
    open_core(&fix, NULL);
    const struct stat4 reserved = {2097152, 2097152, 2097152, 0};

    uint64_t a = take(&fix, 1000);
    expect_s1(&fix, (struct s1_row){{1, 1, 1, 0},
                                    {1, 1, 1, 0},
                                    {2096128, 2096128, 2096128, 0},
                                    {1024, 1024, 1024, 0},
                                    {1000, 1000, 1000, 0},
                                    reserved});
    uint64_t b = take(&fix, 1000);
    expect_s1(&fix, (struct s1_row){{2, 2, 2, 0},
                                    {1, 1, 1, 0},
                                    {2095104, 2096128, 2096128, 1024},
                                    {2048, 2048, 2048, 0},
                                    {2000, 2000, 2000, 0},
                                    reserved});
    give(&fix, a);
    expect_s1(&fix, (struct s1_row){{1, 2, 2, 1},
                                    {2, 2, 2, 0},
                                    {2096128, 2096128, 2097152, 1024},
                                    {1024, 2048, 2048, 1024},
                                    {1000, 2000, 2000, 1000},
                                    reserved});
    give(&fix, b);
    struct s1_row end = {
        {0, 2, 2, 2},          {0, 2, 2, 2},          {0, 2096128, 2097152, 2097152},
        {0, 2048, 2048, 2048}, {0, 2000, 2000, 2000}, reserved};
    expect_s1(&fix, end);
    cca_allocator_empty_cache(fix.allocator);
    end.reserved = (struct stat4){0, 2097152, 2097152, 2097152};
    expect_s1(&fix, end);
    assert_int_equal(fix_stat(&fix, "num_device_alloc"), 1);
    assert_int_equal(fix_stat(&fix, "num_device_free"), 1);

    static const struct {
        enum cca_event_kind kind;
        uint64_t bytes;
    } trace[] = {
        {CCA_EVENT_SEGMENT_ALLOC, 2097152},
        {CCA_EVENT_ALLOC, 1000},
        {CCA_EVENT_ALLOC, 1000},
        {CCA_EVENT_FREE_REQUESTED, 1000},
        {CCA_EVENT_FREE_COMPLETED, 1000},
        {CCA_EVENT_FREE_REQUESTED, 1000},
        {CCA_EVENT_FREE_COMPLETED, 1000},
        {CCA_EVENT_SEGMENT_FREE, 2097152},
    };
    struct cca_trace_entry entries[16];
    size_t count = cca_trace_ring_copy(&fix.heaps[0]->observer.ring, entries, 16);
    assert_int_equal(count, CCA_ARRAY_LEN(trace));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(entries[i].kind, trace[i].kind);
        assert_int_equal(entries[i].requested_bytes, trace[i].bytes);
    }
    fixture_close(&fix);
}

static void s2_a_rest_of_less_than_a_mebibyte_is_not_cut_off(void **state)
{
    (void)state;
    struct fixture fix;
    open_core(&fix, NULL);
    uint64_t a = take(&fix, 1048577);
    expect(&fix, "segment.all", (struct stat4){1, 1, 1, 0});
    expect(&fix, "inactive_split.all", (struct stat4){1, 1, 1, 0});
    expect(&fix, "inactive_split_bytes.all", (struct stat4){19922432, 19922432, 19922432, 0});
    expect(&fix, "allocated_bytes.all", (struct stat4){1049088, 1049088, 1049088, 0});
    take(&fix, MIB(3));
    expect(&fix, "inactive_split_bytes.all", (struct stat4){16776704, 19922432, 19922432, 3145728});
    expect(&fix, "allocated_bytes.all", (struct stat4){4194816, 4194816, 4194816, 0});
    give(&fix, a);
    expect(&fix, "inactive_split.all", (struct stat4){2, 2, 2, 0});
    expect(&fix, "inactive_split_bytes.all", (struct stat4){17825792, 19922432, 20971520, 3145728});
    expect(&fix, "allocated_bytes.all", (struct stat4){3145728, 4194816, 4194816, 1049088});
    take(&fix, MIB(15));
    expect(&fix, "segment.all", (struct stat4){1, 1, 1, 0});
    expect(&fix, "inactive_split.all", (struct stat4){1, 2, 2, 1});
    expect(&fix, "inactive_split_bytes.all", (struct stat4){1049088, 19922432, 20971520, 19922432});
    expect(&fix, "allocated_bytes.all", (struct stat4){19922432, 19922432, 20971520, 1049088});
    fixture_close(&fix);
}

static void s3_a_rest_of_exactly_a_mebibyte_stays_with_the_block(void **state)
{
    (void)state;
    struct fixture fix;
    open_core(&fix, NULL);
    uint64_t a = take(&fix, MIB(19));
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), 20971520);
    assert_int_equal(fix_stat(&fix, "requested_bytes.all.current"), 19922944);
    assert_int_equal(fix_stat(&fix, "inactive_split.all.current"), 0);
    give(&fix, a);
    take(&fix, MIB(9));
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), 9437184);
    assert_int_equal(fix_stat(&fix, "inactive_split.all.current"), 1);
    assert_int_equal(fix_stat(&fix, "inactive_split_bytes.all.current"), 11534336);
    fixture_close(&fix);
}

static void set_max_split_40_mib(struct cca_config *config)
{
    config->max_split_size = MIB(40);
}

static void s4_oversize_blocks_serve_only_oversize_requests(void **state)
{
    (void)state;
    struct fixture fix;
    open_core(&fix, set_max_split_40_mib);
    give(&fix, take(&fix, MIB(50)));
    uint64_t b = take(&fix, MIB(30));
    expect(&fix, "segment.all", (struct stat4){2, 2, 2, 0});
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), 83886080);
    expect(&fix, "oversize_allocations", (struct stat4){0, 1, 1, 1});
    expect(&fix, "oversize_segments", (struct stat4){1, 1, 1, 0});
    assert_int_equal(fix_stat(&fix, "max_split_size"), MIB(40));
    give(&fix, b);
    take(&fix, MIB(45));
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), 52428800);
    assert_int_equal(fix_stat(&fix, "requested_bytes.all.current"), 47185920);
    expect(&fix, "oversize_allocations", (struct stat4){1, 1, 2, 1});
    expect(&fix, "segment.all", (struct stat4){2, 2, 2, 0});
    fixture_close(&fix);
}

/* Hears every event and applies it to statistics of its own. */
static void replay(void *user, int device, const struct cca_event *event)
{
    (void)device;
    cca_stats_apply(user, event);
}

static void a_replay_of_all_events_gives_the_same_statistics(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_max_split_40_mib);
    struct cca_stats heard = {.max_split_size = MIB(40)};
    cca_observer_add_tracker(&fix.heaps[0]->observer, replay, &heard);
    uint64_t slots[64] = {0}, seed = 42;
    for (int step = 0; step < 5000; step++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        unsigned slot = (unsigned)(seed >> 33) % 64;
        cca_key key = (seed >> 40) % 3 == 0 ? 5 : CCA_KEY_READY;
        if (slots[slot] != 0) {
            if (key == CCA_KEY_READY) {
                fix_free(&fix, slots[slot]);
            } else {
                fix_free_async(&fix, slots[slot], key);
            }
            slots[slot] = 0;
        } else {
            size_t bytes = (size_t)1 << ((seed >> 45) % 27);
            slots[slot] = key == CCA_KEY_READY ? fix_malloc(&fix, bytes)
                                               : fix_malloc_async(&fix, bytes, key);
        }
        if (step % 1000 == 999) {
            cca_allocator_empty_cache(fix.allocator);
            cca_allocator_stream_ends(fix.allocator, fix.heaps[0], 5);
        }
    }
    assert_memory_equal(&heard, &fix.heaps[0]->observer.stats, sizeof(heard));
    fixture_close(&fix);
}

static void a_join_goes_on_beyond_a_ready_block_that_becomes_a_streams(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, MIB(2)), b = fix_malloc(&fix, MIB(2)),
             c = fix_malloc(&fix, MIB(2));
    fix_malloc(&fix, MIB(14));
    fix_free_async(&fix, a, 1);
    fix_free_async(&fix, b, 2);
    cca_allocator_stream_ends(fix.allocator, fix.heaps[0], 2);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    fix_verify(&fix); /* a is of stream 1, b READY */
    fix_free_async(&fix, c, 1);
    fix_verify(&fix);
    assert_int_equal(fix_stat(&fix, "inactive_split.all.current"), 1);
    assert_int_equal(fix_malloc_async(&fix, MIB(6), 1), a);
    fixture_close(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s1_small_blocks_split_and_join),
        cmocka_unit_test(s2_a_rest_of_less_than_a_mebibyte_is_not_cut_off),
        cmocka_unit_test(s3_a_rest_of_exactly_a_mebibyte_stays_with_the_block),
        cmocka_unit_test(s4_oversize_blocks_serve_only_oversize_requests),
        cmocka_unit_test(a_join_goes_on_beyond_a_ready_block_that_becomes_a_streams),
        cmocka_unit_test(a_replay_of_all_events_gives_the_same_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
