/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include <pthread.h>

#include "alloc/ladder.h"
#include "base/clock.h"
#include "base/sysmem.h"

static void set_fence(struct cca_config *config)
{
    config->free_sync = CCA_FREE_FENCE;
}

static void a_full_device_is_flushed_and_asked_again(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(100);
    fix_free(&fix, fix_malloc(&fix, MIB(60)));
    assert_int_not_equal(fix_malloc(&fix, MIB(80)), 0);
    assert_int_equal(fix_stat(&fix, "num_alloc_retries"), 1);
    assert_int_equal(fix_stat(&fix, "num_ooms"), 0);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(80));
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    fixture_close(&fix);
}

static void memory_of_a_stream_is_released_only_behind_its_work(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(100);
    uint64_t a = fix_malloc_async(&fix, MIB(60), 5);
    scripted_submit(fix.scripts[0]);
    fix_free_async(&fix, a, 5);
    assert_int_equal(fix_malloc(&fix, MIB(80)), 0); /* the device is still at work */
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    assert_int_equal(fix_stat(&fix, "num_ooms"), 1);
    scripted_finish(fix.scripts[0]);
    assert_int_not_equal(fix_malloc(&fix, MIB(80)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    fixture_close(&fix);
}

static uint64_t fake_now_ns = 1;
static struct scripted_device *finish_after_sleeping;
static int sleeps;

static uint64_t fake_now(void)
{
    return fake_now_ns;
}

static void fake_sleep(uint64_t us)
{
    fake_now_ns += us * 1000;
    if (++sleeps == 3 && finish_after_sleeping != NULL) {
        scripted_finish(finish_after_sleeping);
    }
}

static void an_allocation_that_would_fail_waits_for_a_fence(void **state)
{
    (void)state;
    struct fixture fix;
    const struct cca_clock_source source = {fake_now, fake_sleep};
    fixture_open_with(&fix, 1, set_fence);
    fix.scripts[0]->memory_bytes = MIB(100);
    uint64_t a = fix_malloc(&fix, MIB(60));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    cca_clock_replace(&source);
    sleeps = 0;
    finish_after_sleeping = fix.scripts[0];
    uint64_t b = fix_malloc(&fix, MIB(60));
    cca_clock_replace(NULL);
    assert_int_equal(b, a); /* found in the cache once the fence was over: no release, no retry */
    assert_int_equal(sleeps, 3);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    assert_int_equal(fix_stat(&fix, "num_alloc_retries"), 0);
    fixture_close(&fix);
}

static void waiting_before_out_of_memory_is_bounded(void **state)
{
    (void)state;
    struct fixture fix;
    const struct cca_clock_source source = {fake_now, fake_sleep};
    fixture_open_with(&fix, 1, set_fence);
    fix.config.oom_wait_ms = 1000;
    fix.scripts[0]->memory_bytes = MIB(100);
    uint64_t a = fix_malloc(&fix, MIB(60));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    cca_clock_replace(&source);
    finish_after_sleeping = NULL;
    uint64_t began_ns = fake_now_ns;
    assert_int_equal(fix_malloc(&fix, MIB(60)), 0);
    cca_clock_replace(NULL);
    assert_in_range((fake_now_ns - began_ns) / 1000000, 1000, 1010);
    assert_int_equal(fix_stat(&fix, "num_ooms"), 1);
    fixture_close(&fix);
}

static void set_limit(struct cca_config *config)
{
    config->memory_limit = MIB(64);
}

static void the_limit_refuses_without_asking_the_driver(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_limit);
    assert_int_not_equal(fix_malloc(&fix, MIB(40)), 0);
    assert_int_equal(fix_malloc(&fix, MIB(30)), 0);
    assert_int_equal(fix.scripts[0]->allocs_made, 1);
    assert_int_equal(fix.scripts[0]->refused, 0);
    assert_int_not_equal(fix_malloc(&fix, MIB(24)), 0);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.peak"), MIB(64));
    fixture_close(&fix);
}

static void cached_memory_does_not_count_against_the_limit(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_limit);
    fix_free(&fix, fix_malloc(&fix, MIB(40)));
    assert_int_not_equal(fix_malloc(&fix, MIB(60)), 0);
    assert_int_equal(fix_stat(&fix, "num_alloc_retries"), 1);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(60));
    fixture_close(&fix);
}

static void set_oversize(struct cca_config *config)
{
    config->memory_limit = MIB(100);
    config->max_split_size = MIB(21);
}

static void one_oversize_block_goes_back_before_everything_does(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_oversize);
    uint64_t a = fix_malloc(&fix, MIB(22)), b = fix_malloc(&fix, MIB(50));
    fix_free(&fix, a);
    fix_free(&fix, b);
    assert_int_not_equal(fix_malloc(&fix, MIB(30)), 0);
    assert_int_equal(fix_stat(&fix, "num_alloc_retries"), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(52));
    fixture_close(&fix);
}

static void impossible_sizes_fail_without_a_driver_call(void **state)
{
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 510, SIZE_MAX - 511, SIZE_MAX - 2097151,
                                   (size_t)1 << 63};
    struct fixture fix;
    fixture_open(&fix, 1);
    for (size_t i = 0; i < CCA_ARRAY_LEN(sizes); i++) {
        assert_int_equal(fix_malloc(&fix, sizes[i]), 0);
    }
    assert_int_equal(fix_stat(&fix, "num_ooms"), 5);
    assert_int_equal(fix.scripts[0]->refused + fix.scripts[0]->allocs_made, 0);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.peak"), 0);
    assert_int_equal(fix_stat(&fix, "requested_bytes.all.peak"), 0);
    struct cca_trace_entry entries[8];
    assert_int_equal(cca_trace_ring_copy(&fix.heaps[0]->observer.ring, entries, 8), 5);
    for (size_t i = 0; i < CCA_ARRAY_LEN(sizes); i++) {
        assert_int_equal(entries[i].kind, CCA_EVENT_OOM);
        assert_int_equal(entries[i].requested_bytes, sizes[i]);
    }
    assert_int_not_equal(fix_malloc(&fix, 512), fix_malloc(&fix, 512));
    fixture_close(&fix);
}

static void an_out_of_memory_event_names_the_free_bytes_and_the_rounded_request(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(50);
    fix_malloc(&fix, MIB(40));
    assert_int_equal(fix_malloc(&fix, MIB(30) + 1), 0);
    struct cca_trace_entry last[1];
    assert_int_equal(cca_trace_ring_copy(&fix.heaps[0]->observer.ring, last, 1), 1);
    assert_int_equal(last[0].kind, CCA_EVENT_OOM);
    assert_int_equal(last[0].addr, MIB(10));
    assert_int_equal(last[0].requested_bytes, MIB(30) + 512);
    fixture_close(&fix);
}

/* A scenario that takes every path; returns how many requests were refused. */
static int run_scenario(struct fixture *fix)
{
    uint64_t addrs[12] = {0};
    int refused = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 12; i++) {
            size_t bytes = (size_t)1 << (9 + 2 * (i % 9));
            addrs[i] = i % 3 == 0 ? fix_malloc_async(fix, bytes, 5) : fix_malloc(fix, bytes);
            refused += addrs[i] == 0;
        }
        for (int i = 11; i >= 0; i--) {
            if (addrs[i] == 0) {
                continue;
            }
            if (i % 4 == 0) {
                fix_free_async(fix, addrs[i], 5);
            } else {
                fix_free(fix, addrs[i]);
            }
        }
        cca_allocator_stream_ends(fix->allocator, fix->heaps[0], 5);
        cca_allocator_poll(fix->allocator, fix->heaps[0]);
        if (round == 1) {
            cca_allocator_empty_cache(fix->allocator);
        }
    }
    return refused;
}

static void the_last_megabytes_serve_a_request_that_fits_them(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(36);
    assert_int_not_equal(fix_malloc(&fix, MIB(9)), 0); /* a segment of 20 MiB */
    assert_int_not_equal(fix_malloc(&fix, MIB(11)), 0);
    assert_int_not_equal(fix_malloc(&fix, MIB(9)), 0); /* no other one fits: 10 MiB for this one */
    assert_int_equal(fix_stat(&fix, "num_ooms"), 0);
    assert_int_equal(fix_malloc(&fix, MIB(9)), 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void a_request_above_the_device_flushes_nothing(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix_free(&fix, fix_malloc(&fix, MIB(60)));
    assert_int_equal(fix_malloc(&fix, GIB(257)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    assert_int_equal(fix_stat(&fix, "num_ooms"), 1);
    fixture_close(&fix);
}

static void nothing_is_given_back_while_the_device_is_at_work(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(100);
    fix_free(&fix, fix_malloc(&fix, MIB(60)));
    scripted_submit(fix.scripts[0]); /* a free by the driver would wait for it */
    assert_int_equal(fix_malloc(&fix, MIB(80)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    fixture_close(&fix);
}

static void every_failing_driver_allocation_leaves_the_books_right(void **state)
{
    (void)state;
    for (long n = 1; n < 40; n++) {
        struct fixture fix;
        fixture_open(&fix, 1);
        fix.scripts[0]->fail_alloc = n;
        run_scenario(&fix);
        fix_verify(&fix);
        cca_allocator_empty_cache(fix.allocator);
        assert_int_equal(fix.scripts[0]->live_bytes, 0);
        assert_int_equal(fix.scripts[0]->frees_unknown, 0);
        assert_int_equal(fix_stat(&fix, "active.all.current"), 0);
        fixture_close(&fix);
    }
}

static void every_refused_metadata_page_leaves_the_books_right(void **state)
{
    (void)state;
    for (long n = 1; n < 60; n++) {
        struct fixture fix;
        fixture_open(&fix, 1);
        cca_sysmem_fail_nth(n);
        run_scenario(&fix);
        cca_sysmem_fail_nth(0);
        fix_verify(&fix);
        cca_allocator_empty_cache(fix.allocator);
        assert_int_equal(fix.scripts[0]->live_bytes, 0);
        assert_int_equal(fix.scripts[0]->frees_unknown, 0);
        fixture_close(&fix);
    }
}

static void take_the_heap_lock(void *user)
{
    struct cca_heap *heap = user;
    assert_true(cca_lock_try(&heap->lock));
    cca_lock_drop(&heap->lock);
}

static void no_lock_is_held_across_a_driver_allocation(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->on_alloc = take_the_heap_lock;
    fix.scripts[0]->on_alloc_user = fix.heaps[0];
    assert_int_not_equal(fix_malloc(&fix, MIB(3)), 0);
    fixture_close(&fix);
}

static void drop_the_context(void *user)
{
    cca_allocator_detach(user, 0);
}

static void a_reset_during_a_driver_allocation_forgets_the_memory(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix_malloc(&fix, MIB(3));
    fix.scripts[0]->on_alloc = drop_the_context;
    fix.scripts[0]->on_alloc_user = fix.allocator;
    struct cca_request request = {.bytes = MIB(30), .key = CCA_KEY_READY};
    uint64_t addr = 0;
    assert_int_equal(cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind,
                     CCA_UNSUPPORTED);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void without_memory_for_the_records_the_driver_is_not_asked(void **state)
{
    (void)state;
    for (long n = 1; n <= 2; n++) {
        struct fixture fix;
        fixture_open(&fix, 1);
        cca_sysmem_fail_nth(n); /* of the segment, of its block */
        uint64_t addr = fix_malloc(&fix, MIB(2));
        cca_sysmem_fail_nth(0);
        assert_int_equal(addr == 0, fix.scripts[0]->allocs_made == 0);
        assert_int_equal(fix.scripts[0]->frees_made, 0);
        fix_verify(&fix);
        fixture_close(&fix);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_device_is_flushed_and_asked_again),
        cmocka_unit_test(memory_of_a_stream_is_released_only_behind_its_work),
        cmocka_unit_test(an_allocation_that_would_fail_waits_for_a_fence),
        cmocka_unit_test(waiting_before_out_of_memory_is_bounded),
        cmocka_unit_test(the_limit_refuses_without_asking_the_driver),
        cmocka_unit_test(cached_memory_does_not_count_against_the_limit),
        cmocka_unit_test(one_oversize_block_goes_back_before_everything_does),
        cmocka_unit_test(impossible_sizes_fail_without_a_driver_call),
        cmocka_unit_test(an_out_of_memory_event_names_the_free_bytes_and_the_rounded_request),
        cmocka_unit_test(the_last_megabytes_serve_a_request_that_fits_them),
        cmocka_unit_test(a_request_above_the_device_flushes_nothing),
        cmocka_unit_test(nothing_is_given_back_while_the_device_is_at_work),
        cmocka_unit_test(every_failing_driver_allocation_leaves_the_books_right),
        cmocka_unit_test(every_refused_metadata_page_leaves_the_books_right),
        cmocka_unit_test(without_memory_for_the_records_the_driver_is_not_asked),
        cmocka_unit_test(no_lock_is_held_across_a_driver_allocation),
        cmocka_unit_test(a_reset_during_a_driver_allocation_forgets_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
