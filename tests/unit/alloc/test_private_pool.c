/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include <errno.h>

#include "alloc/private_pool.h"
#include "alloc/stream_use.h"

static const struct cca_pool_id graph = {7, 0}, user = {0, 3};

static void begin(struct fixture *fix, struct cca_pool_id id, int kind, cca_key stream)
{
    struct cca_pool_scope scope = {.kind = kind, .stream = stream, .thread = 1};
    assert_int_equal(cca_allocator_pool_begin(fix->allocator, fix->heaps[0], id, &scope), 0);
    fix_verify(fix);
}

static void end(struct fixture *fix, struct cca_pool_id id)
{
    assert_int_equal(cca_allocator_pool_end(fix->allocator, fix->heaps[0], id), 0);
    fix_verify(fix);
}

static void release(struct fixture *fix, struct cca_pool_id id)
{
    assert_int_equal(cca_allocator_pool_release(fix->allocator, fix->heaps[0], id), 0);
    fix_verify(fix);
}

static struct cca_private_pool *pool_of(struct fixture *fix, uint64_t addr)
{
    struct cca_block *block = cca_block_map_find(&fix->heaps[0]->live, addr);
    return block->segment->pool;
}

static size_t pools(struct fixture *fix)
{
    size_t count = 0;
    CCA_LIST_EACH (link, &fix->heaps[0]->private_pools) {
        count++;
    }
    return count;
}

static void a_scope_takes_its_stream_and_nothing_else(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t outside = fix_malloc_async(&fix, MIB(3), 1);
    fix_free_async(&fix, outside, 1);
    begin(&fix, user, CCA_SCOPE_STREAM, 1);
    uint64_t inside = fix_malloc_async(&fix, MIB(3), 1);
    assert_int_not_equal(inside, outside);
    fix_free_async(&fix, inside, 1);
    assert_int_equal(fix_malloc_async(&fix, MIB(3), 1), inside);
    assert_null(pool_of(&fix, fix_malloc_async(&fix, MIB(3), 2)));
    end(&fix, user);
    assert_null(pool_of(&fix, fix_malloc_async(&fix, MIB(3), 1)));
    fix_verify(&fix);
    fixture_close(&fix);
}

static void a_scope_of_a_thread_takes_all_that_the_thread_asks(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    struct cca_pool_scope other = {.kind = CCA_SCOPE_THREAD, .thread = 2};
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, fix.heaps[0], graph, &other), 0);
    begin(&fix, user, CCA_SCOPE_THREAD, 0);
    assert_int_equal(pool_of(&fix, fix_malloc(&fix, 1))->id.handle, 3);
    end(&fix, user);
    assert_null(pool_of(&fix, fix_malloc(&fix, 1)));
    fixture_close(&fix);
}

static void the_newest_scope_counts(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    begin(&fix, user, CCA_SCOPE_STREAM, 1);
    begin(&fix, graph, CCA_SCOPE_STREAM, 1);
    assert_int_equal(pool_of(&fix, fix_malloc_async(&fix, 1, 1))->id.capture, 7);
    end(&fix, graph);
    assert_int_equal(pool_of(&fix, fix_malloc_async(&fix, 1, 1))->id.handle, 3);
    fixture_close(&fix);
}

static void wrong_calls_are_refused(void **state)
{
    struct fixture fix;
    struct cca_pool_scope scope = {.kind = CCA_SCOPE_STREAM, .stream = 1};
    (void)state;
    fixture_open(&fix, 1);
    struct cca_heap *heap = fix.heaps[0];
    const struct cca_pool_id none = {0, 0}, both = {1, 1};
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, heap, none, &scope), -EINVAL);
    assert_int_equal(cca_allocator_pool_retain(fix.allocator, heap, both, 0), -EINVAL);
    assert_int_equal(cca_allocator_pool_end(fix.allocator, heap, user), -ENOENT);
    assert_int_equal(cca_allocator_pool_release(fix.allocator, heap, user), -ENOENT);
    begin(&fix, user, CCA_SCOPE_STREAM, 1);
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, heap, user, &scope), -EEXIST);
    assert_int_equal(cca_allocator_pool_release(fix.allocator, heap, user), -EBUSY);
    end(&fix, user);
    release(&fix, user);
    assert_int_equal(pools(&fix), 0);
    fixture_close(&fix);
}

static void memory_for_the_records_may_be_refused(void **state)
{
    (void)state;
    for (long n = 1; n <= 2; n++) {
        struct fixture fix;
        struct cca_pool_scope scope = {.kind = CCA_SCOPE_CAPTURE, .stream = 1};
        fixture_open(&fix, 1);
        cca_sysmem_fail_nth(n);
        assert_int_equal(cca_allocator_pool_begin(fix.allocator, fix.heaps[0], graph, &scope),
                         -ENOMEM);
        cca_sysmem_fail_nth(0);
        assert_int_equal(fix.heaps[0]->captures, 0);
        fix_verify(&fix);
        fixture_close(&fix);
    }
}

static void a_pool_goes_when_nobody_needs_it_and_its_memory_is_back(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    begin(&fix, graph, CCA_SCOPE_CAPTURE, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(3), 1);
    end(&fix, graph);
    fix_free_async(&fix, a, 1);
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    assert_int_equal(pools(&fix), 1);
    release(&fix, graph);
    assert_int_equal(pools(&fix), 1);
    cca_allocator_empty_cache(fix.allocator);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    assert_int_equal(pools(&fix), 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void a_pool_has_figures_of_its_own(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    begin(&fix, graph, CCA_SCOPE_STREAM, 1);
    begin(&fix, user, CCA_SCOPE_STREAM, 2);
    uint64_t a = fix_malloc_async(&fix, MIB(3), 1);
    fix_malloc_async(&fix, 512, 2);
    fix_malloc_async(&fix, MIB(3), 3);
    assert_int_equal(fix_stat(&fix, "reserved_bytes_by_private_pools.7_0.all.current"), MIB(20));
    assert_int_equal(fix_stat(&fix, "reserved_bytes_by_private_pools.7_0.large_pool.peak"),
                     MIB(20));
    assert_int_equal(fix_stat(&fix, "reserved_bytes_by_private_pools.0_3.small_pool.current"),
                     MIB(2));
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(42));
    end(&fix, graph);
    fix_free_async(&fix, a, 1);
    release(&fix, graph);
    cca_allocator_empty_cache(fix.allocator);
    fix_verify(&fix);
    /* The pool is gone with its last segment, and so are its figures. */
    int64_t value = 0;
    struct cca_observer *observer = &fix.heaps[0]->observer;
    assert_int_equal(cca_stats_value(&observer->stats, cca_pool_table_rows(&observer->pools),
                                     "reserved_bytes_by_private_pools.7_0.all.current", &value),
                     -ENOENT);
    assert_int_equal(fix_stat(&fix, "reserved_bytes_by_private_pools.0_3.all.allocated"), MIB(2));
    fixture_close(&fix);
}

static void one_pool_may_be_emptied(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    begin(&fix, graph, CCA_SCOPE_STREAM, 1);
    begin(&fix, user, CCA_SCOPE_STREAM, 2);
    uint64_t blocks[3];
    for (unsigned i = 0; i < 3; i++) {
        blocks[i] = fix_malloc_async(&fix, MIB(30), i + 1);
    }
    end(&fix, graph);
    end(&fix, user);
    for (unsigned i = 0; i < 3; i++) {
        fix_free_async(&fix, blocks[i], i + 1);
    }
    /* Somebody retains it. */
    cca_allocator_pool_empty(fix.allocator, fix.heaps[0], graph, 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    release(&fix, graph);
    release(&fix, user);
    /* The device is at work: nothing is waited for, and nothing goes back. */
    scripted_submit(fix.scripts[0]);
    cca_allocator_pool_empty(fix.allocator, fix.heaps[0], graph, 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    assert_int_equal(fix.scripts[0]->waits + fix.scripts[0]->synchronizes, 0);
    scripted_finish(fix.scripts[0]);
    cca_allocator_pool_empty(fix.allocator, fix.heaps[0], graph, 0);
    assert_int_equal(fix.scripts[0]->frees_made, 1);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), MIB(60));
    assert_int_equal(fix_stat(&fix, "reserved_bytes_by_private_pools.0_3.all.current"), MIB(30));
    assert_int_equal(pools(&fix), 1);
    cca_allocator_pool_empty(fix.allocator, fix.heaps[0], graph, 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void blocks_of_a_no_split_pool_are_handed_out_whole(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    assert_int_equal(
        cca_allocator_pool_retain(fix.allocator, fix.heaps[0], user, CCA_POOL_NO_SPLIT), 0);
    begin(&fix, user, CCA_SCOPE_STREAM, 1);
    fix_malloc_async(&fix, MIB(3), 1);
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), MIB(20));
    end(&fix, user);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void a_request_that_would_fail_borrows_from_a_pool_that_lends(void **state)
{
    (void)state;
    for (int lends = 0; lends < 2; lends++) {
        struct fixture fix;
        fixture_open(&fix, 1);
        fix.scripts[0]->memory_bytes = MIB(40);
        assert_int_equal(cca_allocator_pool_retain(fix.allocator, fix.heaps[0], user,
                                                   lends ? CCA_POOL_USE_ON_OOM : 0),
                         0);
        begin(&fix, user, CCA_SCOPE_STREAM, 1);
        uint64_t a = fix_malloc_async(&fix, MIB(30), 1);
        end(&fix, user);
        fix_free_async(&fix, a, 1);
        assert_int_equal(fix_malloc_async(&fix, MIB(20), 1), lends ? a : 0);
        fix_verify(&fix);
        fixture_close(&fix);
    }
}

static void nothing_waits_asks_or_goes_back_while_a_capture_is_open(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    fix.scripts[0]->memory_bytes = MIB(64);
    uint64_t cached = fix_malloc(&fix, MIB(40)), live = fix_malloc(&fix, 1),
             used = fix_malloc_async(&fix, 1, 3);
    fix_free(&fix, cached);
    cca_allocator_record_stream(fix.allocator, used, 4);
    fix_free_async(&fix, used, 3);
    begin(&fix, graph, CCA_SCOPE_CAPTURE, 1);
    struct scripted_device before = *fix.scripts[0];
    fix_free(&fix, live);
    assert_int_equal(fix_malloc_async(&fix, MIB(60), 1), 0); /* fails, though the cache is full */
    assert_int_equal(fix_malloc_async(&fix, MIB(60), 2), 0);
    cca_allocator_empty_cache(fix.allocator);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    cca_allocator_stream_ends(fix.allocator, fix.heaps[0], 3);
    fix_verify(&fix);
    assert_int_equal(fix.scripts[0]->frees_made, before.frees_made);
    assert_int_equal(fix.scripts[0]->records, before.records);
    assert_int_equal(fix.scripts[0]->queries, before.queries);
    assert_int_equal(fix.scripts[0]->waits, before.waits);
    assert_int_equal(fix.scripts[0]->synchronizes, before.synchronizes);
    end(&fix, graph);
    scripted_finish(fix.scripts[0]);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 0);
    assert_int_not_equal(fix_malloc_async(&fix, MIB(60), 2), 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void frees_put_off_by_a_capture_wait_for_uses_from_before_it(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t old = fix_malloc_async(&fix, MIB(3), 5), both = fix_malloc_async(&fix, MIB(3), 5);
    cca_allocator_record_stream(fix.allocator, old, 2);
    cca_allocator_record_stream(fix.allocator, both, 2);
    begin(&fix, graph, CCA_SCOPE_CAPTURE, 1);
    uint64_t inside = fix_malloc_async(&fix, MIB(3), 1);
    cca_allocator_record_stream(fix.allocator, inside, 2);
    cca_allocator_record_stream(fix.allocator, both, 2);
    fix_free_async(&fix, inside, 1);
    fix_free_async(&fix, old, 5);
    fix_free_async(&fix, both, 5);
    fix_verify(&fix);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 3);
    assert_int_equal(fix.scripts[0]->stream_records, 0);
    end(&fix, graph);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 2);
    assert_int_equal(fix.scripts[0]->stream_records, 2);
    scripted_advance(fix.scripts[0], 2);
    cca_allocator_poll(fix.allocator, fix.heaps[0]);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void a_use_beside_a_capture_is_not_over_with_it(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    uint64_t beside = fix_malloc_async(&fix, MIB(3), 5);
    begin(&fix, graph, CCA_SCOPE_CAPTURE, 1);
    cca_allocator_record_stream(fix.allocator, beside, 2);
    fix_free_async(&fix, beside, 5);
    end(&fix, graph);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 1);
    scripted_advance(fix.scripts[0], 2);
    assert_int_equal(fix_malloc_async(&fix, MIB(3), 5), beside);
    fixture_close(&fix);
}

static void a_reset_ends_captures_and_empties_pools(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    begin(&fix, graph, CCA_SCOPE_CAPTURE, 1);
    uint64_t a = fix_malloc_async(&fix, MIB(3), 1);
    cca_allocator_record_stream(fix.allocator, a, 2);
    fix_malloc_async(&fix, MIB(3), 1);
    fix_free_async(&fix, a, 1);
    cca_allocator_detach(fix.allocator, 0);
    assert_int_equal(fix.heaps[0]->captures, 0);
    assert_true(cca_stream_use_is_idle(fix.heaps[0]));
    assert_int_equal(fix.heaps[0]->use_records.items_taken, 0);
    fix_verify(&fix);
    assert_int_equal(cca_allocator_pool_end(fix.allocator, fix.heaps[0], graph), -ENOENT);
    release(&fix, graph);
    assert_int_equal(pools(&fix), 0);
    fixture_close(&fix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_scope_takes_its_stream_and_nothing_else),
    cmocka_unit_test(a_scope_of_a_thread_takes_all_that_the_thread_asks),
    cmocka_unit_test(the_newest_scope_counts),
    cmocka_unit_test(wrong_calls_are_refused),
    cmocka_unit_test(memory_for_the_records_may_be_refused),
    cmocka_unit_test(a_pool_goes_when_nobody_needs_it_and_its_memory_is_back),
    cmocka_unit_test(a_pool_has_figures_of_its_own),
    cmocka_unit_test(one_pool_may_be_emptied),
    cmocka_unit_test(blocks_of_a_no_split_pool_are_handed_out_whole),
    cmocka_unit_test(a_request_that_would_fail_borrows_from_a_pool_that_lends),
    cmocka_unit_test(nothing_waits_asks_or_goes_back_while_a_capture_is_open),
    cmocka_unit_test(frees_put_off_by_a_capture_wait_for_uses_from_before_it),
    cmocka_unit_test(a_use_beside_a_capture_is_not_over_with_it),
    cmocka_unit_test(a_reset_ends_captures_and_empties_pools),
};

CCA_TEST_MAIN(tests)
