/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include <errno.h>

#include "alloc/callbacks.h"

static struct {
    struct fixture *fix;
    uint64_t spare; /* what the helper has to give */
    int asked, told;
    size_t bytes;
    struct cca_oom_info info;
} seen;

static void watch(struct fixture *fix)
{
    memset(&seen, 0, sizeof(seen));
    seen.fix = fix;
}

static bool help(void *user, int ordinal, size_t bytes)
{
    struct fixture *fix = user;
    assert_ptr_equal(fix, seen.fix);
    assert_int_equal(ordinal, 0);
    seen.asked++;
    seen.bytes = bytes;
    if (seen.spare == 0) {
        return false;
    }
    fix_free(fix, seen.spare); /* no lock is held */
    seen.spare = 0;
    return true;
}

static void note(void *user, const struct cca_oom_info *info)
{
    assert_ptr_equal(user, seen.fix);
    seen.told++;
    seen.info = *info;
    fix_verify(seen.fix); /* no lock is held */
}

static void every_miss_asks_for_memory_before_the_driver(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    watch(&fix);
    assert_int_equal(cca_allocator_add_free_callback(fix.allocator, help, &fix), 0);
    uint64_t spare = fix_malloc(&fix, MIB(40));
    assert_int_equal(seen.asked, 1);
    assert_int_equal(seen.bytes, MIB(40));
    seen.spare = spare;
    assert_int_equal(fix_malloc(&fix, MIB(40)), spare);
    assert_int_equal(seen.asked, 2);
    assert_int_equal(fix.scripts[0]->allocs_made, 1);
    fix_free(&fix, spare);
    assert_int_equal(fix_malloc(&fix, MIB(40)), spare); /* a hit asks nobody */
    assert_int_equal(seen.asked, 2);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void limit_to_64_mib(struct cca_config *config)
{
    config->memory_limit = MIB(64);
}

static void observers_are_told_of_an_out_of_memory(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, limit_to_64_mib);
    watch(&fix);
    assert_int_equal(cca_allocator_add_oom_observer(fix.allocator, note, &fix), 0);
    fix_malloc(&fix, MIB(60));
    assert_int_equal(fix_malloc(&fix, MIB(5)), 0);
    assert_int_equal(seen.told, 1);
    assert_false(seen.info.is_rejection);
    assert_int_equal(seen.info.ordinal, 0);
    assert_int_equal(seen.info.bytes, MIB(20)); /* the segment */
    assert_int_equal(seen.info.limit_bytes, MIB(64));
    assert_int_equal(seen.info.reserved_bytes, MIB(60));
    assert_int_equal(seen.info.free_bytes, GIB(256) - MIB(60));
    assert_int_equal(seen.info.total_bytes, GIB(256));
    fixture_close(&fix);
}

static void reject_above_64_mib(struct cca_config *config)
{
    config->memory_limit = MIB(64);
    config->oom_reject = true;
}

static void observers_are_told_of_a_rejection(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, reject_above_64_mib);
    watch(&fix);
    assert_int_equal(cca_allocator_add_oom_observer(fix.allocator, note, &fix), 0);
    assert_int_equal(fix_malloc(&fix, MIB(65)), 0);
    assert_int_equal(seen.told, 1);
    assert_true(seen.info.is_rejection);
    assert_int_equal(seen.info.bytes, MIB(66));
    assert_int_equal(seen.info.reserved_bytes, 0);
    assert_int_equal(fix_stat(&fix, "num_oom_rejections"), 1);
    fixture_close(&fix);
}

static void there_is_room_for_eight_of_each(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    watch(&fix);
    for (int i = 0; i < CCA_CALLBACKS_MAX; i++) {
        assert_int_equal(cca_allocator_add_free_callback(fix.allocator, help, &fix), 0);
        assert_int_equal(cca_allocator_add_oom_observer(fix.allocator, note, &fix), 0);
    }
    assert_int_equal(cca_allocator_add_free_callback(fix.allocator, help, &fix), -ENOSPC);
    assert_int_equal(cca_allocator_add_oom_observer(fix.allocator, note, &fix), -ENOSPC);
    fix_malloc(&fix, 1);
    assert_int_equal(seen.asked, CCA_CALLBACKS_MAX);
    fixture_close(&fix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_miss_asks_for_memory_before_the_driver),
    cmocka_unit_test(observers_are_told_of_an_out_of_memory),
    cmocka_unit_test(observers_are_told_of_a_rejection),
    cmocka_unit_test(there_is_room_for_eight_of_each),
};

CCA_TEST_MAIN(tests)
