/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include <errno.h>

static void ignore(void *user, const char *name, const char *value, const char *used)
{
    int *count = user;
    (void)name, (void)value, (void)used;
    ++*count;
}

static int set_conf(struct fixture *fix, const char *text, int *complaints)
{
    *complaints = 0;
    return cca_allocator_set_conf(fix->allocator, text, ignore, complaints);
}

static void new_settings_apply_from_then_on(void **state)
{
    struct fixture fix;
    int complaints;
    (void)state;
    fixture_open(&fix, 2);
    uint64_t before = fix_malloc(&fix, MIB(5) + 1);
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), MIB(5) + 512);
    fix_free(&fix, before);
    assert_int_equal(set_conf(&fix, "roundup_power2_divisions:4", &complaints), 0);
    assert_int_equal(complaints, 0);
    fix_free(&fix, fix_malloc(&fix, MIB(5) + 1));
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.peak"), MIB(6));
    fix_verify(&fix);
    fixture_close(&fix);
}

static void bad_settings_change_nothing(void **state)
{
    struct fixture fix;
    int complaints;
    (void)state;
    fixture_open(&fix, 1);
    assert_int_equal(set_conf(&fix, "max_split_size_mb:40", &complaints), 0);
    assert_int_equal(set_conf(&fix, "roundup_power2_divisions:4,max_split_size_mb:1", &complaints),
                     -EINVAL);
    assert_int_equal(complaints, 1);
    assert_int_equal(fix.allocator->policy.max_split_size, MIB(40));
    assert_int_equal(fix.allocator->policy.divisions.of[0], 0);
    static char blanks[CCA_CONFIG_TEXT_MAX + 1];
    memset(blanks, ' ', CCA_CONFIG_TEXT_MAX);
    assert_int_equal(set_conf(&fix, blanks, &complaints), -E2BIG);
    assert_int_equal(fix.allocator->policy.max_split_size, MIB(40));
    assert_int_equal(set_conf(&fix, "pinned_use_background_threads:True", &complaints), 0);
    assert_int_equal(complaints, 1);
    assert_int_equal(fix.allocator->policy.max_split_size, CCA_NO_LIMIT);
    fixture_close(&fix);
}

static void the_large_segment_size_is_what_middle_requests_get(void **state)
{
    struct fixture fix;
    int complaints;
    (void)state;
    fixture_open(&fix, 1);
    assert_int_equal(set_conf(&fix, "large_segment_size_mb:32", &complaints), 0);
    fix_malloc(&fix, MIB(3));
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(32));
    assert_int_equal(set_conf(&fix, "", &complaints), 0);
    fix_malloc(&fix, MIB(9));
    fix_malloc(&fix, MIB(9));
    fix_malloc(&fix, MIB(9));
    fix_malloc(&fix, MIB(9));
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(64));
    fixture_close(&fix);
}

static void the_fraction_is_a_limit_to_the_nearest_byte(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 2);
    fix.scripts[0]->memory_bytes = 1000;
    assert_int_equal(cca_allocator_set_memory_fraction(fix.allocator, 0, 0.29), 0);
    assert_int_equal(fix.heaps[0]->limit_bytes, 290);
    assert_int_equal(fix.heaps[1]->limit_bytes, CCA_NO_LIMIT);
    assert_true(cca_allocator_memory_fraction(fix.allocator, 0) == 0.29);
    assert_int_equal(cca_allocator_set_memory_fraction(fix.allocator, 0, 1), 0);
    assert_int_equal(fix.heaps[0]->limit_bytes, CCA_NO_LIMIT);
    assert_int_equal(cca_allocator_set_memory_fraction(fix.allocator, 0, 1.5), -EINVAL);
    assert_int_equal(cca_allocator_set_memory_fraction(fix.allocator, 0, -0.5), -EINVAL);
    assert_int_equal(cca_allocator_set_memory_fraction(fix.allocator, 7, 0.5), -ENODEV);
    assert_int_equal(cca_allocator_set_memory_fraction(fix.allocator, -1, 0.5), -ENODEV);
    fixture_close(&fix);
}

static void halve_with_a_limit(struct cca_config *config)
{
    config->memory_fraction = 0.5;
    config->memory_limit = GIB(200);
}

static void the_smaller_of_fraction_and_limit_wins(void **state)
{
    struct fixture fix;
    int complaints;
    (void)state;
    fixture_open_with(&fix, 1, halve_with_a_limit);
    assert_int_equal(fix.heaps[0]->limit_bytes, GIB(128));
    assert_int_equal(set_conf(&fix, "per_process_memory_fraction:0.9", &complaints), 0);
    assert_int_equal(fix.heaps[0]->limit_bytes, GIB(200));
    fixture_close(&fix);
}

static void reject_above_64_mib(struct cca_config *config)
{
    config->memory_limit = MIB(64);
    config->oom_reject = true;
}

static void a_request_above_the_limit_is_rejected_at_once(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, reject_above_64_mib);
    uint64_t cached = fix_malloc(&fix, MIB(40));
    fix_free(&fix, cached);
    assert_int_equal(fix_malloc(&fix, MIB(30)) != 0, 1); /* out of the cached segment */
    assert_int_equal(fix_malloc(&fix, MIB(62)), 0);
    assert_int_equal(fix_stat(&fix, "num_oom_rejections"), 1);
    assert_int_equal(fix_stat(&fix, "num_ooms"), 0);
    assert_int_equal(fix_stat(&fix, "num_alloc_retries"), 0);
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 1);
    assert_int_equal(fix.scripts[0]->refused, 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void keep_at_most_30_mib(struct cca_config *config)
{
    config->cache_limit = MIB(30);
}

static void the_free_that_exceeds_the_cache_limit_gives_the_excess_back(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, keep_at_most_30_mib);
    uint64_t a = fix_malloc(&fix, MIB(12)), b = fix_malloc(&fix, MIB(16)),
             c = fix_malloc(&fix, MIB(14)), small = fix_malloc(&fix, 1);
    fix_free(&fix, a);
    fix_free(&fix, b);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    fix_free(&fix, small); /* exactly at the limit */
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    fix_free(&fix, c);
    assert_int_equal(fix.scripts[0]->frees_made, 1); /* the largest one */
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(28));
    fix_verify(&fix);
    fixture_close(&fix);
}

static void fence_and_keep_nothing(struct cca_config *config)
{
    config->cache_limit = 0;
    config->free_sync = CCA_FREE_FENCE;
}

static void the_cache_limit_never_gives_back_what_is_in_use(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, fence_and_keep_nothing);
    uint64_t a = fix_malloc(&fix, MIB(12)), b = fix_malloc_async(&fix, MIB(12), 5);
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    fix_free_async(&fix, b, 5);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    scripted_finish(fix.scripts[0]);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(fix.scripts[0]->frees_made, 2);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void collect_above_half(struct cca_config *config)
{
    config->memory_limit = MIB(200);
    config->garbage_collection_threshold = 0.5;
}

static void collection_takes_the_oldest_ready_segments_only(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, collect_above_half);
    fix_malloc(&fix, MIB(3)); /* the rest of its segment serves the searches below */
    uint64_t old = fix_malloc(&fix, MIB(40)), young = fix_malloc(&fix, MIB(30)),
             stream = fix_malloc_async(&fix, MIB(40), 7);
    fix_free(&fix, old);
    fix_free_async(&fix, stream, 7);
    for (int i = 0; i < 3; i++) {
        fix_malloc(&fix, MIB(2)); /* searches of the large pool */
    }
    fix_free(&fix, young);
    assert_int_not_equal(fix_malloc(&fix, MIB(50)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(20 + 30 + 40 + 50));
    assert_int_equal(fix_stat(&fix, "num_alloc_retries"), 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void collection_waits_for_an_idle_device(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, collect_above_half);
    fix_free(&fix, fix_malloc(&fix, MIB(120)));
    scripted_submit(fix.scripts[0]); /* a free by the driver would wait: not in an allocation */
    assert_int_not_equal(fix_malloc(&fix, MIB(3)), 0);
    uint64_t other = fix_malloc_async(&fix, MIB(40), 7);
    assert_int_not_equal(other, 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    fixture_close(&fix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(new_settings_apply_from_then_on),
    cmocka_unit_test(bad_settings_change_nothing),
    cmocka_unit_test(the_large_segment_size_is_what_middle_requests_get),
    cmocka_unit_test(the_fraction_is_a_limit_to_the_nearest_byte),
    cmocka_unit_test(the_smaller_of_fraction_and_limit_wins),
    cmocka_unit_test(a_request_above_the_limit_is_rejected_at_once),
    cmocka_unit_test(the_free_that_exceeds_the_cache_limit_gives_the_excess_back),
    cmocka_unit_test(the_cache_limit_never_gives_back_what_is_in_use),
    cmocka_unit_test(collection_takes_the_oldest_ready_segments_only),
    cmocka_unit_test(collection_waits_for_an_idle_device),
};

CCA_TEST_MAIN(tests)
