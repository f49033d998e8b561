/* SPDX-License-Identifier: MIT */
/* When cached memory goes back to the driver: where its free may wait no longer than the program's
 * own call, and while the program captures a graph on a stream of its own. */
#include "support/heap_fixture.h"

#include "alloc/collect.h"
#include "alloc/fence.h"

static void set_small_cap(struct cca_config *config)
{
    config->pending_max = MIB(30);
}

static void set_fence(struct cca_config *config)
{
    config->free_sync = CCA_FREE_FENCE;
}

/* On a device of 100 MiB, inside a capture. */
static void open_capturing(struct fixture *fix, void (*set)(struct cca_config *config))
{
    fixture_open_with(fix, 1, set);
    fix->scripts[0]->memory_bytes = MIB(100);
    cca_allocator_capture_begins(fix->allocator);
}

static void close_capturing(struct fixture *fix)
{
    cca_allocator_capture_ends(fix->allocator);
    fixture_close(fix);
}

static void nothing(struct cca_config *config)
{
    (void)config;
}

static void what_was_freed_beside_a_capture_makes_room(void **state)
{
    (void)state;
    struct fixture fix;
    open_capturing(&fix, nothing);
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, fix_malloc(&fix, MIB(60)));
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    assert_int_not_equal(fix_malloc(&fix, MIB(80)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    assert_int_equal(fix.scripts[0]->records, 0);
    assert_int_equal(fix_stat(&fix, "num_ooms"), 0);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(80));
    close_capturing(&fix);
}

static void a_segment_goes_back_with_all_its_parts(void **state)
{
    (void)state;
    struct fixture fix;
    open_capturing(&fix, nothing);
    uint64_t parts[9]; /* of one segment of 20 MiB; what is left of it is free */
    for (int i = 0; i < 9; i++) {
        parts[i] = fix_malloc(&fix, MIB(2));
    }
    for (int i = 8; i >= 0; i -= 2) {
        fix_free(&fix, parts[i]);
    }
    for (int i = 1; i < 9; i += 2) {
        fix_free(&fix, parts[i]);
    }
    assert_int_not_equal(fix_malloc(&fix, MIB(90)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    close_capturing(&fix);
}

static void a_segment_with_a_live_part_stays(void **state)
{
    (void)state;
    struct fixture fix;
    open_capturing(&fix, nothing);
    uint64_t a = fix_malloc(&fix, MIB(2)), b = fix_malloc(&fix, MIB(2));
    fix_free(&fix, a);
    assert_int_equal(fix_malloc(&fix, MIB(90)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    fix_free(&fix, b);
    close_capturing(&fix);
}

/* Natively its free would not wait, so the driver's says nothing about its work. */
static void what_was_freed_in_a_stream_s_order_stays(void **state)
{
    (void)state;
    struct fixture fix;
    open_capturing(&fix, nothing);
    uint64_t a = fix_malloc_async(&fix, MIB(30), 1), b = fix_malloc(&fix, MIB(30));
    cca_allocator_record_stream(fix.allocator, a, 2);
    fix_free_async(&fix, a, 1); /* on two streams: set aside */
    fix_free_async(&fix, b, 1); /* on one: at once, for that stream */
    assert_int_equal(fix_malloc(&fix, MIB(60)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    close_capturing(&fix);
}

static void what_was_cached_before_makes_room(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(100);
    fix_free(&fix, fix_malloc(&fix, MIB(60)));
    cca_allocator_capture_begins(fix.allocator);
    assert_int_not_equal(fix_malloc(&fix, MIB(80)), 0);
    close_capturing(&fix);
}

static void what_waits_for_a_fence_from_before_is_asked_about(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_fence);
    fix.scripts[0]->memory_bytes = MIB(100);
    uint64_t a = fix_malloc(&fix, MIB(60));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    cca_allocator_capture_begins(fix.allocator);
    unsigned records = fix.scripts[0]->records;
    scripted_finish(fix.scripts[0]);
    assert_int_not_equal(fix_malloc(&fix, MIB(80)), 0);
    assert_int_equal(fix.scripts[0]->records, records);
    close_capturing(&fix);
}

static void frees_over_the_cap_go_back_as_natively(void **state)
{
    (void)state;
    struct fixture fix;
    open_capturing(&fix, set_small_cap);
    for (int i = 0; i < 40; i++) {
        fix_free(&fix, fix_malloc(&fix, MIB(10)));
        assert_true(fix.heaps[0]->reserved_bytes <= MIB(40));
    }
    close_capturing(&fix);
}

static void a_pool_that_somebody_retains_keeps_its_memory(void **state)
{
    (void)state;
    struct fixture fix;
    struct cca_pool_id id = {0, 7};
    struct cca_pool_scope scope = {.kind = CCA_SCOPE_THREAD, .thread = 1};
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(100);
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, fix.heaps[0], id, &scope), 0);
    struct cca_request request = {
        .api = CCA_API_MALLOC, .bytes = MIB(60), .key = CCA_KEY_READY, .thread = 1};
    uint64_t addr = 0;
    assert_int_equal(cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind,
                     CCA_OK);
    assert_int_equal(cca_allocator_pool_end(fix.allocator, fix.heaps[0], id), 0);
    cca_allocator_capture_begins(fix.allocator);
    fix_free(&fix, addr);
    assert_int_equal(fix_malloc(&fix, MIB(80)), 0);
    assert_int_equal(cca_allocator_pool_release(fix.allocator, fix.heaps[0], id), 0);
    assert_int_not_equal(fix_malloc(&fix, MIB(80)), 0);
    close_capturing(&fix);
}

static void a_capture_that_was_told_of_keeps_everything(void **state)
{
    (void)state;
    struct fixture fix;
    struct cca_pool_id id = {3, 0};
    struct cca_pool_scope scope = {.kind = CCA_SCOPE_CAPTURE, .stream = 5};
    open_capturing(&fix, nothing);
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, fix.heaps[0], id, &scope), 0);
    fix_free(&fix, fix_malloc(&fix, MIB(60)));
    assert_int_equal(fix_malloc(&fix, MIB(80)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    assert_int_equal(cca_allocator_pool_end(fix.allocator, fix.heaps[0], id), 0);
    assert_int_equal(cca_allocator_pool_release(fix.allocator, fix.heaps[0], id), 0);
    close_capturing(&fix);
}

static void others_that_are_out_of_memory_are_helped(void **state)
{
    (void)state;
    struct fixture fix;
    open_capturing(&fix, nothing);
    fix_free(&fix, fix_malloc(&fix, MIB(60)));
    assert_int_equal(cca_allocator_release_idle(fix.allocator, fix.heaps[0]), MIB(60));
    close_capturing(&fix);
}

static void set_mapped(struct cca_config *config)
{
    config->expandable_segments = true;
    config->pending_max = MIB(30);
}

/* Pages cannot be waited for: where much is set aside ordinary segments serve. */
static void expandable_segments_take_no_more_than_the_cap(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_mapped);
    fix.scripts[0]->memory_bytes = MIB(100);
    fix.heaps[0]->device.map_granularity = fix.scripts[0]->map_granularity = MIB(2);
    cca_heap_set_expands(fix.heaps[0]);
    cca_allocator_capture_begins(fix.allocator);
    for (int i = 0; i < 40; i++) {
        fix_free(&fix, fix_malloc(&fix, MIB(20)));
        assert_true(fix.heaps[0]->reserved_bytes <= MIB(80));
    }
    close_capturing(&fix);
}

static void after_a_stop_a_wait_of_the_program_does_not_wait_for_later_work(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix_free(&fix, fix_malloc(&fix, MIB(60)));
    cca_allocator_stop(fix.allocator);
    uint64_t mark = cca_allocator_sync_mark(fix.allocator, fix.heaps[0]);
    scripted_finish(fix.scripts[0]);
    scripted_submit(fix.scripts[0]); /* another thread does, meanwhile */
    cca_allocator_synchronized(fix.allocator, fix.heaps[0], CCA_KEY_READY, mark);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    scripted_finish(fix.scripts[0]);
    mark = cca_allocator_sync_mark(fix.allocator, fix.heaps[0]);
    cca_allocator_synchronized(fix.allocator, fix.heaps[0], CCA_KEY_READY, mark);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    fixture_close(&fix);
}

static void set_cache_limit(struct cca_config *config)
{
    config->cache_limit = MIB(1);
}

/* Without context events nobody knows whether the device is idle, and the driver's free waits. */
static void without_proof_only_a_free_that_waits_gives_back(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_cache_limit);
    fix.heaps[0]->device.has_context_events = false;
    uint64_t a = fix_malloc_async(&fix, MIB(60), 5);
    scripted_submit(fix.scripts[0]);
    fix_free_async(&fix, a, 5);
    uint64_t mark = cca_allocator_sync_mark(fix.allocator, fix.heaps[0]);
    cca_allocator_synchronized(fix.allocator, fix.heaps[0], 5, mark);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    fix_free(&fix, fix_malloc(&fix, KIB(4)));
    assert_true(fix.scripts[0]->frees_made >= 1);
    fixture_close(&fix);
}

/* Free blocks that cannot go back are not walked in one call, however many there are. */
static void the_cache_limit_looks_at_a_bounded_number_of_blocks(void **state)
{
    enum { PARTS = 300 };
    (void)state;
    static uint64_t blocks[PARTS];
    struct fixture fix;
    unsigned looks = 1, calls = 0, most = 0;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = GIB(20);
    for (int i = 0; i < PARTS; i++) {
        blocks[i] = fix_malloc(&fix, MIB(40));
    }
    for (int i = 0; i < PARTS; i++) {
        fix_free(&fix, blocks[i]);
    }
    for (int i = 0; i < PARTS; i++) {
        assert_int_not_equal(fix_malloc(&fix, MIB(30)), 0); /* 10 MiB are left of each */
    }
    fix_free(&fix, fix_malloc(&fix, KIB(4))); /* the one segment that can go */
    struct cca_heap *heap = fix.heaps[0];
    cca_lock_take(&heap->lock);
    heap->allocator->settings.cache_limit = MIB(1);
    for (; fix.scripts[0]->frees_made == 0 && looks > 0; calls++) {
        looks = cca_collect_over_limit(heap, false);
        most = looks > most ? looks : most;
    }
    cca_lock_drop(&heap->lock);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    assert_int_equal(most, CCA_IDLE_VISITS_MAX);
    assert_int_equal(calls, PARTS / CCA_IDLE_VISITS_MAX + 1);
    fixture_close(&fix);
}

static void set_threshold(struct cca_config *config)
{
    config->memory_limit = MIB(300);
    config->garbage_collection_threshold = 0.1;
}

static void without_proof_nothing_is_collected_in_an_allocation(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_threshold);
    fix.heaps[0]->device.has_context_events = false;
    fix_free(&fix, fix_malloc(&fix, MIB(64)));
    scripted_submit(fix.scripts[0]);
    assert_int_not_equal(fix_malloc(&fix, MIB(128)), 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    fixture_close(&fix);
}

static void without_proof_room_is_made_only_where_it_is_missing(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(1000);
    fix.heaps[0]->device.has_context_events = false;
    fix_free(&fix, fix_malloc(&fix, MIB(64)));
    scripted_submit(fix.scripts[0]);
    cca_allocator_make_room(fix.allocator, fix.heaps[0], MIB(600));
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    cca_allocator_make_room(fix.allocator, fix.heaps[0], MIB(950));
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    fixture_close(&fix);
}

static void what_is_left_is_over_with_the_capture(void **state)
{
    (void)state;
    struct fixture fix;
    open_capturing(&fix, nothing);
    uint64_t a = fix_malloc(&fix, MIB(2));
    fix_free(&fix, a);
    cca_allocator_capture_ends(fix.allocator);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(fix.heaps[0]->pending_bytes, 0);
    assert_int_equal(fix_malloc(&fix, MIB(2)), a);
    fixture_close(&fix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_freed_beside_a_capture_makes_room),
    cmocka_unit_test(a_segment_goes_back_with_all_its_parts),
    cmocka_unit_test(a_segment_with_a_live_part_stays),
    cmocka_unit_test(what_was_freed_in_a_stream_s_order_stays),
    cmocka_unit_test(what_was_cached_before_makes_room),
    cmocka_unit_test(what_waits_for_a_fence_from_before_is_asked_about),
    cmocka_unit_test(frees_over_the_cap_go_back_as_natively),
    cmocka_unit_test(a_pool_that_somebody_retains_keeps_its_memory),
    cmocka_unit_test(a_capture_that_was_told_of_keeps_everything),
    cmocka_unit_test(others_that_are_out_of_memory_are_helped),
    cmocka_unit_test(expandable_segments_take_no_more_than_the_cap),
    cmocka_unit_test(after_a_stop_a_wait_of_the_program_does_not_wait_for_later_work),
    cmocka_unit_test(without_proof_only_a_free_that_waits_gives_back),
    cmocka_unit_test(the_cache_limit_looks_at_a_bounded_number_of_blocks),
    cmocka_unit_test(without_proof_nothing_is_collected_in_an_allocation),
    cmocka_unit_test(without_proof_room_is_made_only_where_it_is_missing),
    cmocka_unit_test(what_is_left_is_over_with_the_capture),
};

CCA_TEST_MAIN(tests)
