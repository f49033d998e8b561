/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include "alloc/private_pool.h"

static void set_expandable(struct cca_config *config)
{
    config->expandable_segments = true;
    config->max_entries = 1000;
}

static void set_expandable_fence(struct cca_config *config)
{
    set_expandable(config);
    config->free_sync = CCA_FREE_FENCE;
}

static void assert_driver_agrees(struct fixture *fix)
{
    fix_verify(fix);
    assert_int_equal(fix->scripts[0]->map_errors, 0);
    assert_int_equal(fix_stat(fix, "reserved_bytes.all.current"), fix->scripts[0]->live_bytes);
}

/* The latest entry of this kind; fails when there is none. */
static struct cca_trace_entry last_entry(struct fixture *fix, enum cca_event_kind kind)
{
    static struct cca_trace_entry entries[1000];
    size_t count = cca_trace_ring_copy(&fix->heaps[0]->observer.ring, entries, 1000);
    while (count-- > 0) {
        if (entries[count].kind == kind) {
            return entries[count];
        }
    }
    fail_msg("no such event");
    return entries[0];
}

static void a_segment_grows_by_the_pages_that_are_missing(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(30));
    assert_int_equal(fix_stat(&fix, "reserved_bytes.large_pool.current"), MIB(40));
    assert_int_equal(fix_stat(&fix, "num_device_alloc"), 1);
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_MAP).block_bytes, MIB(40));
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_MAP).addr, a);
    uint64_t b = fix_malloc(&fix, MIB(9));
    assert_int_equal(b, a + MIB(30));
    assert_int_equal(fix_stat(&fix, "num_device_alloc"), 1);
    /* One MiB is left, to which a page is added. */
    uint64_t c = fix_malloc(&fix, MIB(5));
    assert_int_equal(c, a + MIB(39));
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_MAP).addr, a + MIB(40));
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_MAP).block_bytes, MIB(20));
    assert_int_equal(fix_stat(&fix, "num_device_alloc"), 2);
    assert_int_equal(scripted_reservations(fix.scripts[0]), 1);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void expandable_segments_do_not_count_as_segments_or_as_split(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(3)), b = fix_malloc(&fix, KIB(3));
    fix_free(&fix, a);
    assert_int_equal(fix_stat(&fix, "segment.all.allocated"), 0);
    assert_int_equal(fix_stat(&fix, "inactive_split.all.allocated"), 0);
    assert_int_equal(fix_stat(&fix, "inactive_split_bytes.all.allocated"), 0);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.small_pool.current"), MIB(2));
    assert_int_equal(fix_stat(&fix, "reserved_bytes.large_pool.current"), MIB(20));
    fix_free(&fix, b);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void every_rest_is_cut_off(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    fix_malloc(&fix, MIB(20) - 512);
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), MIB(20) - 512);
    fixture_close(&fix);
}

static void whole_free_pages_go_back_and_the_rest_stays(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(25)), b = fix_malloc(&fix, MIB(50));
    uint64_t c = fix_malloc(&fix, MIB(5));
    fix_free(&fix, b); /* 25 to 75 of 80 MiB: the pages 40 to 60 are whole */
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(60));
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_UNMAP).addr, a + MIB(40));
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_UNMAP).block_bytes, MIB(20));
    assert_int_equal(fix_stat(&fix, "num_device_free"), 1);
    assert_driver_agrees(&fix);
    /* What cannot grow serves first; what lies before the hole grows into it. */
    assert_int_equal(fix_malloc(&fix, MIB(15)), a + MIB(60));
    assert_int_equal(fix_malloc(&fix, MIB(35)), a + MIB(25));
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_MAP).addr, a + MIB(40));
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_MAP).block_bytes, MIB(20));
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(80));
    (void)c;
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void the_addresses_go_back_with_the_last_page(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(30));
    fix_free(&fix, a);
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), 0);
    assert_int_equal(scripted_reservations(fix.scripts[0]), 0);
    assert_int_equal(fix.heaps[0]->segment_records.items_taken, 0);
    assert_int_equal(fix.heaps[0]->block_records.items_taken, 0);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void pages_stay_while_work_may_use_them(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable_fence);
    uint64_t a = fix_malloc(&fix, MIB(30));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a);
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(fix.scripts[0]->unmaps_made, 0);
    uint64_t b = fix_malloc_async(&fix, MIB(30), 1);
    fix_free_async(&fix, b, 1); /* reusable in its stream's order, but not seen to be over */
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(fix.scripts[0]->unmaps_made, 0);
    scripted_finish(fix.scripts[0]);
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(scripted_mapped_bytes(fix.scripts[0]), 0);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void streams_share_addresses_but_not_each_others_blocks(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    scripted_submit(fix.scripts[0]);
    uint64_t a = fix_malloc_async(&fix, MIB(30), 1);
    fix_free_async(&fix, a, 1);
    uint64_t b = fix_malloc_async(&fix, MIB(20), 2), c = fix_malloc(&fix, MIB(3));
    assert_true(b >= a + MIB(30) && c >= b + MIB(20));
    assert_int_equal(scripted_reservations(fix.scripts[0]), 1);
    assert_int_equal(fix_malloc_async(&fix, MIB(30), 1), a);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void a_growing_end_is_used_last(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(12));
    (void)fix_malloc(&fix, MIB(22)); /* 6 MiB are left at the end */
    fix_free(&fix, a);
    assert_int_equal(fix_malloc(&fix, MIB(5)), a);
    fixture_close(&fix);
}

static void without_mapping_ordinary_segments_serve(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    struct cca_device device = scripted_device(fix.scripts[0], 0);
    device.map_granularity = 0;
    cca_allocator_attach(fix.allocator, &device, 0xd0);
    assert_int_not_equal(fix_malloc(&fix, MIB(19)), 0);
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 1);
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), MIB(20)); /* not cut */
    assert_int_equal(scripted_reservations(fix.scripts[0]), 0);
    fixture_close(&fix);
}

static void without_addresses_an_ordinary_segment_serves(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    fix.scripts[0]->fail_reserve = 1;
    uint64_t a = fix_malloc(&fix, MIB(3));
    assert_int_not_equal(a, 0);
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 1);
    assert_int_not_equal(fix_malloc(&fix, MIB(30)), 0);
    assert_int_equal(scripted_reservations(fix.scripts[0]), 1);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void what_was_mapped_before_a_failure_stays_as_free_memory(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(25)), b = fix_malloc(&fix, MIB(50));
    fix_malloc(&fix, MIB(5));
    fix_free(&fix, b);
    cca_allocator_empty_cache(fix.allocator); /* a hole from 40 to 60 */
    fix.scripts[0]->memory_bytes = fix.scripts[0]->live_bytes;
    assert_int_equal(fix_malloc(&fix, MIB(100)), 0);
    assert_int_equal(fix_stat(&fix, "num_ooms"), 1);
    assert_driver_agrees(&fix);
    fix.scripts[0]->memory_bytes += MIB(20);
    assert_int_equal(fix_malloc(&fix, MIB(50)), a + MIB(25));
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void the_last_bytes_of_a_device_need_no_whole_page(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    fix.scripts[0]->memory_bytes = MIB(48);
    assert_int_not_equal(fix_malloc(&fix, MIB(40)), 0);
    assert_int_not_equal(fix_malloc(&fix, MIB(7)), 0);
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 1);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void the_limit_counts_mapped_memory(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    fix.heaps[0]->limit_bytes = MIB(40);
    assert_int_not_equal(fix_malloc(&fix, MIB(30)), 0);
    assert_int_equal(fix_malloc(&fix, MIB(15)), 0);
    assert_int_not_equal(fix_malloc(&fix, MIB(10)), 0);
    assert_int_equal(fix.scripts[0]->refused, 0);
    fixture_close(&fix);
}

static void the_cache_limit_gives_just_enough_pages_back(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    fix.allocator->settings.cache_limit = MIB(45);
    uint64_t a = fix_malloc(&fix, MIB(100));
    fix_free(&fix, a);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(40));
    assert_int_equal(last_entry(&fix, CCA_EVENT_SEGMENT_UNMAP).addr, a + MIB(40));
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void turned_off_its_blocks_are_left_alone(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(5));
    fix_free(&fix, a);
    assert_int_equal(cca_allocator_set_conf(fix.allocator, "expandable_segments:False", NULL, NULL),
                     0);
    uint64_t b = fix_malloc(&fix, MIB(5));
    assert_int_not_equal(b, a);
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 1);
    assert_int_equal(cca_allocator_set_conf(fix.allocator, "expandable_segments:True", NULL, NULL),
                     0);
    fix_malloc(&fix, MIB(15)); /* what is left of the ordinary one */
    assert_int_equal(fix_malloc(&fix, MIB(5)), a);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

/* One count from the reservation to its return, however often it grew or shrank. */
static void a_private_pool_counts_its_segment_once(void **state)
{
    static const struct cca_pool_id id = {0, 3};
    struct cca_pool_scope scope = {.kind = CCA_SCOPE_THREAD, .thread = 1};
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, fix.heaps[0], id, &scope), 0);
    uint64_t a = fix_malloc(&fix, MIB(30)), b = fix_malloc(&fix, MIB(30));
    assert_int_equal(cca_allocator_pool_end(fix.allocator, fix.heaps[0], id), 0);
    struct cca_private_pool *pool = CCA_LIST_ENTRY(fix.heaps[0]->private_pools.next,
                                                   struct cca_private_pool, link);
    assert_int_equal(pool->segments, 1);
    assert_int_equal(cca_allocator_pool_release(fix.allocator, fix.heaps[0], id), 0);
    fix_free(&fix, b);
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(pool->segments, 1);
    assert_driver_agrees(&fix);
    fix_free(&fix, a);
    cca_allocator_empty_cache(fix.allocator);
    assert_true(cca_list_is_empty(&fix.heaps[0]->private_pools));
    assert_int_equal(scripted_reservations(fix.scripts[0]), 0);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void no_block_of_it_fills_a_segment(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(20));
    struct cca_address_info info = cca_allocator_look_up(fix.allocator, a);
    assert_true(info.is_ours && info.is_live_block);
    assert_false(info.fills_segment);
    assert_int_equal(fix_try_free(&fix, a + MIB(100)), CCA_FREE_INVALID);
    fixture_close(&fix);
}

static uint64_t devices_of(struct fixture *fix, uint64_t addr)
{
    for (unsigned i = 0; i < fix->scripts[0]->page_count; i++) {
        if (fix->scripts[0]->pages[i].addr == addr && fix->scripts[0]->pages[i].bytes != 0) {
            return fix->scripts[0]->pages[i].devices;
        }
    }
    fail_msg("not mapped");
    return 0;
}

static void peers_can_use_what_is_mapped_and_what_will_be(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(30));
    assert_int_equal(devices_of(&fix, a), 0);
    cca_allocator_note_peers(fix.allocator, 0, 1);
    cca_allocator_note_peers(fix.allocator, 5, 0);
    assert_int_equal(devices_of(&fix, a), 1 << 1 | 1 << 5);
    assert_int_equal(devices_of(&fix, a + MIB(20)), 1 << 1 | 1 << 5);
    fix_malloc(&fix, MIB(30));
    assert_int_equal(devices_of(&fix, a + MIB(40)), 1 << 1 | 1 << 5);
    cca_allocator_note_peers(fix.allocator, 0, 64);
    cca_allocator_note_peers(fix.allocator, 7, 1);
    assert_int_equal(devices_of(&fix, a), 1 << 1 | 1 << 5);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void a_reset_unmaps_when_the_work_is_over(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(30));
    fix_malloc(&fix, KIB(3));
    fix_free(&fix, a);
    cca_allocator_detach(fix.allocator, 0);
    assert_int_equal(scripted_mapped_bytes(fix.scripts[0]), 0);
    assert_int_equal(scripted_reservations(fix.scripts[0]), 0);
    assert_int_equal(fix.scripts[0]->map_errors, 0);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), 0);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 0);
    struct cca_device device = scripted_device(fix.scripts[0], 0);
    cca_allocator_attach(fix.allocator, &device, 0xd0);
    assert_int_not_equal(fix_malloc(&fix, MIB(30)), 0);
    assert_driver_agrees(&fix);
    fixture_close(&fix);
}

static void lose_the_context(void *user)
{
    struct fixture *fix = user;
    struct cca_device device = scripted_device(fix->scripts[0], 0);
    fix->scripts[0]->on_alloc = NULL;
    cca_allocator_attach(fix->allocator, &device, 0xd0); /* another one: the old one is gone */
}

static void a_context_lost_inside_the_call_leaves_nothing_behind(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    fix_malloc(&fix, MIB(5));
    fix.scripts[0]->on_alloc = lose_the_context;
    fix.scripts[0]->on_alloc_user = &fix;
    struct cca_request request = {.api = CCA_API_MALLOC, .bytes = MIB(30), .key = CCA_KEY_READY};
    uint64_t addr = 0;
    assert_int_equal(cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind,
                     CCA_UNSUPPORTED);
    fix_verify(&fix);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), 0);
    assert_int_equal(fix.heaps[0]->reserved_bytes, 0);
    assert_int_equal(fix.heaps[0]->block_records.items_taken, 0);
    assert_int_equal(fix.heaps[0]->segment_records.items_taken, 0);
    fixture_close(&fix);
}

static void pages_that_cannot_be_unmapped_are_not_used_again(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_expandable);
    uint64_t a = fix_malloc(&fix, MIB(30));
    fix_free(&fix, a);
    fix.scripts[0]->fail_unmap = 1;
    cca_allocator_empty_cache(fix.allocator);
    fix_verify(&fix);
    uint64_t b = fix_malloc(&fix, MIB(30));
    assert_int_equal(b, a + MIB(40));
    assert_int_equal(fix.scripts[0]->map_errors, 0);
    fixture_close(&fix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_segment_grows_by_the_pages_that_are_missing),
    cmocka_unit_test(expandable_segments_do_not_count_as_segments_or_as_split),
    cmocka_unit_test(every_rest_is_cut_off),
    cmocka_unit_test(whole_free_pages_go_back_and_the_rest_stays),
    cmocka_unit_test(the_addresses_go_back_with_the_last_page),
    cmocka_unit_test(pages_stay_while_work_may_use_them),
    cmocka_unit_test(streams_share_addresses_but_not_each_others_blocks),
    cmocka_unit_test(a_growing_end_is_used_last),
    cmocka_unit_test(without_mapping_ordinary_segments_serve),
    cmocka_unit_test(without_addresses_an_ordinary_segment_serves),
    cmocka_unit_test(what_was_mapped_before_a_failure_stays_as_free_memory),
    cmocka_unit_test(the_last_bytes_of_a_device_need_no_whole_page),
    cmocka_unit_test(the_limit_counts_mapped_memory),
    cmocka_unit_test(the_cache_limit_gives_just_enough_pages_back),
    cmocka_unit_test(turned_off_its_blocks_are_left_alone),
    cmocka_unit_test(a_private_pool_counts_its_segment_once),
    cmocka_unit_test(no_block_of_it_fills_a_segment),
    cmocka_unit_test(peers_can_use_what_is_mapped_and_what_will_be),
    cmocka_unit_test(a_reset_unmaps_when_the_work_is_over),
    cmocka_unit_test(a_context_lost_inside_the_call_leaves_nothing_behind),
    cmocka_unit_test(pages_that_cannot_be_unmapped_are_not_used_again),
};

CCA_TEST_MAIN(tests)
