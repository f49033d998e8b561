/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include "alloc/stream_use.h"

static void use(struct fixture *fix, uint64_t addr, cca_key stream)
{
    cca_allocator_record_stream(fix->allocator, addr, stream);
    fix_verify(fix);
}

static int64_t pending(struct fixture *fix)
{
    fix_verify(fix);
    return fix_stat(fix, "active.all.current") - fix_stat(fix, "allocation.all.current");
}

/* A small allocation: all it does to the large pool is to look at the events. */
static void look(struct fixture *fix)
{
    fix_free_async(fix, fix_malloc_async(fix, 1, 9), 9);
}

static void a_free_waits_for_the_streams_that_used_the_block(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, a, 2);
    use(&fix, a, 3);
    use(&fix, a, 2); /* counts once */
    use(&fix, a, 1); /* its own stream does not count */
    fix_free_async(&fix, a, 1);
    assert_int_equal(fix.scripts[0]->stream_records, 2);
    assert_int_equal(pending(&fix), 1);
    uint64_t b = fix_malloc_async(&fix, MIB(2), 1);
    assert_int_not_equal(a, b);
    scripted_advance(fix.scripts[0], 3);
    look(&fix);
    assert_int_equal(pending(&fix), 1);
    scripted_advance(fix.scripts[0], 2);
    assert_int_equal(fix_malloc_async(&fix, MIB(2), 1), a);
    assert_int_equal(pending(&fix), 0);
    fixture_close(&fix);
}

static void the_next_owner_starts_without_uses(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, a, 2);
    fix_free_async(&fix, a, 1);
    scripted_advance(fix.scripts[0], 2);
    assert_int_equal(fix_malloc_async(&fix, MIB(2), 1), a);
    fix_free_async(&fix, a, 1);
    assert_int_equal(pending(&fix), 0);
    assert_int_equal(fix.scripts[0]->stream_records, 1);
    fixture_close(&fix);
}

static void a_free_on_the_stream_of_the_only_use_completes_at_once(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, a, 2);
    fix_free_async(&fix, a, 2);
    assert_int_equal(pending(&fix), 0);
    assert_int_equal(fix.scripts[0]->stream_records, 0);
    assert_int_equal(fix_malloc_async(&fix, MIB(2), 2), a); /* in the order of the free */
    fixture_close(&fix);
}

static void a_slow_stream_does_not_hold_up_another(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t slow = fix_malloc_async(&fix, MIB(2), 1), quick = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, slow, 2);
    use(&fix, quick, 3);
    fix_free_async(&fix, slow, 1);
    fix_free_async(&fix, quick, 1);
    scripted_advance(fix.scripts[0], 3);
    look(&fix);
    assert_int_equal(pending(&fix), 1);
    assert_int_equal(fix_malloc_async(&fix, MIB(2), 1), quick);
    fixture_close(&fix);
}

static void events_are_used_again(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    for (int i = 0; i < 100; i++) {
        uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
        use(&fix, a, 2);
        fix_free_async(&fix, a, 1);
        scripted_advance(fix.scripts[0], 2);
        look(&fix);
    }
    assert_int_equal(pending(&fix), 0);
    assert_int_equal(fix.scripts[0]->stream_records, 100);
    assert_true(fix.scripts[0]->event_count <= 2);
    fixture_close(&fix);
}

/* Until everything is over: what a fence waits for. */
static void assert_waits_for_everything(struct fixture *fix, uint64_t addr)
{
    scripted_submit(fix->scripts[0]);
    fix_free_async(fix, addr, 1);
    assert_int_equal(pending(fix), 1);
    scripted_advance_all(fix->scripts[0]);
    cca_allocator_poll(fix->allocator, fix->heaps[0]);
    assert_int_equal(pending(fix), 1);
    scripted_finish(fix->scripts[0]);
    cca_allocator_poll(fix->allocator, fix->heaps[0]);
    assert_int_equal(pending(fix), 0);
    assert_true(cca_stream_use_is_idle(fix->heaps[0]));
    fix_verify(fix);
}

static void an_event_that_cannot_be_recorded_makes_the_block_wait_for_everything(void **state)
{
    static const enum cca_status_kind kinds[] = {CCA_UNSUPPORTED, CCA_NO_MEMORY};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fixture fix;
        fixture_open(&fix, 1);
        uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
        use(&fix, a, 2);
        use(&fix, a, 3);
        fix.scripts[0]->fail_kind = kinds[i / 2];
        fix.scripts[0]->fail_event_record = 1 + i % 2;
        assert_waits_for_everything(&fix, a);
        fixture_close(&fix);
    }
}

static void an_event_that_cannot_be_made_makes_the_block_wait_for_everything(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, a, 2);
    fix.scripts[0]->fail_event_create = 1;
    assert_waits_for_everything(&fix, a);
    fixture_close(&fix);
}

static void a_device_that_cannot_reach_streams_makes_the_block_wait_for_everything(void **state)
{
    struct fixture fix;
    struct cca_device_ops ops;
    (void)state;
    fixture_open(&fix, 1);
    ops = *fix.heaps[0]->device.ops;
    ops.event_record_stream = NULL;
    fix.heaps[0]->device.ops = &ops;
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, a, 2);
    assert_waits_for_everything(&fix, a);
    fixture_close(&fix);
}

static void without_memory_for_a_record_the_block_waits_for_everything(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
    cca_sysmem_fail_nth(1);
    use(&fix, a, 2);
    cca_sysmem_fail_nth(0);
    use(&fix, a, 3);
    assert_waits_for_everything(&fix, a);
    assert_int_equal(fix.scripts[0]->stream_records, 0);

    uint64_t b = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, b, 2);
    cca_sysmem_fail_nth(1); /* the record of the event */
    scripted_submit(fix.scripts[0]);
    fix_free_async(&fix, b, 1);
    cca_sysmem_fail_nth(0);
    assert_int_equal(pending(&fix), 1);
    scripted_finish(fix.scripts[0]);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(pending(&fix), 0);
    fixture_close(&fix);
}

static void in_stream_order_a_block_stays_its_streams_whatever_it_waited_for(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    fix.heaps[0]->rekeys = false;
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, a, 2);
    fix.scripts[0]->fail_event_record = 1;
    assert_waits_for_everything(&fix, a);
    assert_int_not_equal(fix_malloc_async(&fix, MIB(2), 3), a);
    assert_int_equal(fix_malloc_async(&fix, MIB(2), 1), a);
    fixture_close(&fix);
}

static void a_free_without_a_stream_covers_all_uses(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, MIB(2));
    use(&fix, a, 2);
    fix_free(&fix, a);
    assert_int_equal(pending(&fix), 0);
    assert_int_equal(fix.scripts[0]->stream_records, 0);
    assert_int_equal(fix.heaps[0]->use_records.items_taken, 0);
    fixture_close(&fix);
}

static void memory_that_is_not_ours_is_ignored(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1);
    struct cca_request request = {.api = CCA_API_MALLOC, .bytes = 512, .key = CCA_KEY_READY};
    cca_allocator_note_passed(fix.allocator, fix.heaps[0], &request, 0x1000);
    use(&fix, 0, 2);
    use(&fix, 0x1000, 2);
    use(&fix, a + 512, 2);
    use(&fix, a + MIB(100), 2);
    assert_int_equal(fix.heaps[0]->use_records.items_taken, 0);
    fix_free_async(&fix, a, 1);
    use(&fix, a, 2);
    assert_int_equal(fix.heaps[0]->use_records.items_taken, 0);
    fixture_close(&fix);
}

static void a_reset_forgets_uses_and_events(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1), b = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, a, 2);
    use(&fix, b, 2);
    fix_free_async(&fix, a, 1);
    cca_allocator_detach(fix.allocator, 0);
    assert_true(cca_stream_use_is_idle(fix.heaps[0]));
    assert_int_equal(fix.heaps[0]->use_records.items_taken, 0);
    assert_int_equal(fix.heaps[0]->use_event_records.items_taken, 0);
    assert_int_equal(fix.heaps[0]->use_queue_records.items_taken, 0);
    fix_verify(&fix);
    struct cca_device device = scripted_device(fix.scripts[0], 0);
    assert_ptr_equal(cca_allocator_attach(fix.allocator, &device, 0xd0), fix.heaps[0]);
    a = fix_malloc_async(&fix, MIB(2), 1);
    use(&fix, a, 2);
    fix_free_async(&fix, a, 1);
    assert_int_equal(pending(&fix), 1);
    fixture_close(&fix);
}

static void an_allocation_that_would_fail_waits_for_the_uses(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(40);
    uint64_t a = fix_malloc_async(&fix, MIB(40), 1);
    use(&fix, a, 2);
    fix_free_async(&fix, a, 1);
    assert_int_equal(fix_malloc_async(&fix, MIB(40), 1), 0); /* bounded: the stream hangs */
    assert_int_equal(fix_stat(&fix, "num_ooms"), 1);
    assert_int_equal(pending(&fix), 1);
    scripted_advance(fix.scripts[0], 2);
    assert_int_equal(fix_malloc_async(&fix, MIB(40), 1), a);
    fix_free_async(&fix, a, 1);
    fixture_close(&fix);
}

static void a_broken_context_ends_the_waiting(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(2), 1), addr = 0;
    use(&fix, a, 2);
    fix_free_async(&fix, a, 1);
    fix.scripts[0]->is_broken = true;
    struct cca_request request = {.api = CCA_API_MALLOC, .bytes = 1, .key = 1};
    assert_int_equal(cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind,
                     CCA_FATAL);
    assert_int_equal(fix.heaps[0]->state, CCA_HEAP_DEAD);
    fix_verify(&fix);
    fixture_close(&fix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_free_waits_for_the_streams_that_used_the_block),
    cmocka_unit_test(the_next_owner_starts_without_uses),
    cmocka_unit_test(a_free_on_the_stream_of_the_only_use_completes_at_once),
    cmocka_unit_test(a_slow_stream_does_not_hold_up_another),
    cmocka_unit_test(events_are_used_again),
    cmocka_unit_test(an_event_that_cannot_be_recorded_makes_the_block_wait_for_everything),
    cmocka_unit_test(an_event_that_cannot_be_made_makes_the_block_wait_for_everything),
    cmocka_unit_test(a_device_that_cannot_reach_streams_makes_the_block_wait_for_everything),
    cmocka_unit_test(without_memory_for_a_record_the_block_waits_for_everything),
    cmocka_unit_test(in_stream_order_a_block_stays_its_streams_whatever_it_waited_for),
    cmocka_unit_test(a_free_without_a_stream_covers_all_uses),
    cmocka_unit_test(memory_that_is_not_ours_is_ignored),
    cmocka_unit_test(a_reset_forgets_uses_and_events),
    cmocka_unit_test(an_allocation_that_would_fail_waits_for_the_uses),
    cmocka_unit_test(a_broken_context_ends_the_waiting),
};

CCA_TEST_MAIN(tests)
