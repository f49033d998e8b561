/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include "alloc/capture.h"
#include "alloc/private_pool.h"

enum { MAIN = 1, SIDE = 2, OTHER = 3, GRAPH = 40 };

static const struct cca_pool_id graph = {GRAPH, 0};

static uint64_t own_malloc(struct fixture *fix, size_t bytes, cca_key stream)
{
    struct cca_request request = {.api = CCA_API_OWN, .bytes = bytes, .key = stream, .thread = 1};
    uint64_t addr = 0;
    struct cca_status status = cca_allocator_alloc(fix->allocator, fix->heaps[0], &request, &addr);
    assert_int_equal(status.kind, CCA_OK);
    fix_verify(fix);
    return addr;
}

static void own_free(struct fixture *fix, uint64_t addr, cca_key stream)
{
    struct cca_request request = {.api = CCA_API_OWN, .key = stream, .thread = 1};
    assert_int_equal(cca_allocator_free(fix->allocator, addr, &request), CCA_FREE_DONE);
    fix_verify(fix);
}

static void set_reuse(struct cca_config *config)
{
    config->graph_capture_reuse = true;
}

/* A capture of MAIN into the pool of `graph`. */
static void begin(struct fixture *fix)
{
    struct cca_pool_scope scope = {.kind = CCA_SCOPE_CAPTURE, .stream = MAIN};
    assert_int_equal(cca_allocator_pool_begin(fix->allocator, fix->heaps[0], graph, &scope), 0);
    scripted_capture(fix->scripts[0], MAIN, GRAPH);
}

static void end(struct fixture *fix)
{
    for (uint64_t stream = MAIN; stream <= OTHER; stream++) {
        scripted_capture(fix->scripts[0], stream, 0);
    }
    assert_int_equal(cca_allocator_pool_end(fix->allocator, fix->heaps[0], graph), 0);
    assert_true(cca_list_is_empty(&fix->heaps[0]->capture_views));
    assert_int_equal(fix->heaps[0]->marker_records.items_taken, 0);
    fix_verify(fix);
}

/* SIDE branches off, uses the block, and the block is freed. */
static uint64_t freed_after_a_branch(struct fixture *fix)
{
    struct scripted_device *script = fix->scripts[0];
    uint64_t addr = own_malloc(fix, MIB(3), MAIN);
    scripted_node(script, MAIN);
    scripted_join(script, SIDE, MAIN);
    scripted_node(script, SIDE);
    cca_allocator_record_stream(fix->allocator, addr, SIDE);
    own_free(fix, addr, MAIN);
    return addr;
}

static void a_block_comes_back_once_its_stream_has_waited_for_every_use(void **state)
{
    (void)state;
    for (int reuses = 0; reuses < 2; reuses++) {
        struct fixture fix;
        fixture_open_with(&fix, 1, reuses ? set_reuse : NULL);
        begin(&fix);
        uint64_t addr = freed_after_a_branch(&fix);
        assert_int_not_equal(own_malloc(&fix, MIB(3), MAIN), addr);
        scripted_node(fix.scripts[0], MAIN);
        assert_int_not_equal(own_malloc(&fix, MIB(3), MAIN), addr);
        scripted_join(fix.scripts[0], MAIN, SIDE);
        assert_true((own_malloc(&fix, MIB(3), MAIN) == addr) == reuses);
        assert_int_equal(fix.scripts[0]->records + fix.scripts[0]->stream_records, 0);
        end(&fix);
        fixture_close(&fix);
    }
}

static void later_work_of_the_other_stream_does_not_hold_a_block_up(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, set_reuse);
    begin(&fix);
    uint64_t addr = freed_after_a_branch(&fix);
    scripted_join(fix.scripts[0], MAIN, SIDE);
    scripted_node(fix.scripts[0], SIDE);
    assert_int_equal(own_malloc(&fix, MIB(3), MAIN), addr);
    end(&fix);
    fixture_close(&fix);
}

static void a_block_is_of_its_own_stream_alone(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, set_reuse);
    begin(&fix);
    uint64_t addr = freed_after_a_branch(&fix);
    /* SIDE comes after every use, too, but the block is not its own. */
    scripted_join(fix.scripts[0], SIDE, MAIN);
    assert_int_not_equal(own_malloc(&fix, MIB(3), SIDE), addr);
    end(&fix);
    fixture_close(&fix);
}

static void a_stream_outside_the_capture_makes_the_block_wait_for_its_end(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, set_reuse);
    begin(&fix);
    uint64_t addr = own_malloc(&fix, MIB(3), MAIN);
    scripted_node(fix.scripts[0], MAIN);
    cca_allocator_record_stream(fix.allocator, addr, OTHER);
    own_free(&fix, addr, MAIN);
    scripted_node(fix.scripts[0], MAIN);
    assert_int_not_equal(own_malloc(&fix, MIB(3), MAIN), addr);
    end(&fix);
    /* Real work on OTHER may use it: an event says when that is over. */
    assert_int_equal(fix_stat(&fix, "active.all.current"), 2);
    assert_int_equal(fix.scripts[0]->stream_records, 1);
    fixture_close(&fix);
}

static void without_a_node_nothing_says_when_a_use_is_over(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, set_reuse);
    begin(&fix);
    uint64_t addr = own_malloc(&fix, MIB(3), MAIN);
    scripted_join(fix.scripts[0], SIDE, MAIN);
    cca_allocator_record_stream(fix.allocator, addr, SIDE);
    own_free(&fix, addr, MAIN);
    assert_int_not_equal(own_malloc(&fix, MIB(3), MAIN), addr);
    end(&fix);
    fixture_close(&fix);
}

static void dependencies_that_the_program_sets_back_are_noticed(void **state)
{
    (void)state;
    for (int sets_back = 0; sets_back < 2; sets_back++) {
        struct fixture fix;
        fixture_open_with(&fix, 1, set_reuse);
        struct scripted_device *script = fix.scripts[0];
        begin(&fix);
        uint64_t first = scripted_node(script, MAIN), addr = own_malloc(&fix, MIB(3), MAIN);
        uint64_t before = freed_after_a_branch(&fix);
        scripted_join(script, MAIN, SIDE);
        assert_int_equal(own_malloc(&fix, MIB(3), MAIN), before); /* SIDE's node is behind MAIN */
        cca_allocator_record_stream(fix.allocator, addr, SIDE);
        if (sets_back) {
            scripted_set_terminal(script, MAIN, first); /* and now it is not any more */
        }
        own_free(&fix, addr, MAIN);
        assert_true((own_malloc(&fix, MIB(3), MAIN) == addr) == !sets_back);
        end(&fix);
        fixture_close(&fix);
    }
}

static void streams_that_have_joined_are_served_from_the_pool(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open(&fix, 1);
    begin(&fix);
    scripted_join(fix.scripts[0], SIDE, MAIN);
    /* Even before the capture's own stream has asked for anything. */
    uint64_t side = own_malloc(&fix, MIB(3), SIDE), aside = own_malloc(&fix, MIB(3), OTHER);
    struct cca_block *block = cca_block_map_find(&fix.heaps[0]->live, side);
    assert_int_equal(block->segment->pool->id.capture, GRAPH);
    block = cca_block_map_find(&fix.heaps[0]->live, aside);
    assert_null(block->segment->pool);
    end(&fix);
    block = cca_block_map_find(&fix.heaps[0]->live, own_malloc(&fix, MIB(3), SIDE));
    assert_null(block->segment->pool);
    fixture_close(&fix);
}

static void a_pool_gets_its_blocks_back_when_its_own_capture_ends(void **state)
{
    struct fixture fix;
    const struct cca_pool_id second = {GRAPH + 1, 0};
    (void)state;
    fixture_open(&fix, 1);
    begin(&fix);
    struct cca_pool_scope scope = {.kind = CCA_SCOPE_CAPTURE, .stream = OTHER};
    assert_int_equal(cca_allocator_pool_begin(fix.allocator, fix.heaps[0], second, &scope), 0);
    scripted_capture(fix.scripts[0], OTHER, GRAPH + 1);
    freed_after_a_branch(&fix);
    uint64_t kept = own_malloc(&fix, MIB(3), OTHER);
    cca_allocator_record_stream(fix.allocator, kept, OTHER + 1);
    own_free(&fix, kept, OTHER);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 2);
    assert_int_equal(cca_allocator_pool_end(fix.allocator, fix.heaps[0], graph), 0);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 1);
    assert_int_equal(fix.scripts[0]->stream_records, 0);
    assert_int_equal(cca_allocator_pool_end(fix.allocator, fix.heaps[0], second), 0);
    assert_int_equal(fix.scripts[0]->stream_records, 1);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void nodes_are_walked_once(void **state)
{
    enum { ROUNDS = 200 };
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, set_reuse);
    begin(&fix);
    uint64_t addr = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t next = freed_after_a_branch(&fix);
        assert_true(i == 0 || next == addr);
        addr = next;
        scripted_join(fix.scripts[0], MAIN, SIDE);
    }
    /* Each node was asked about once, not once for every allocation after it. */
    assert_true(fix.scripts[0]->node_queries <= fix.scripts[0]->node_count);
    end(&fix);
    fixture_close(&fix);
}

static void memory_for_markers_and_views_may_be_refused(void **state)
{
    (void)state;
    for (long n = 1; n <= 4; n++) {
        struct fixture fix;
        fixture_open_with(&fix, 1, set_reuse);
        begin(&fix);
        own_free(&fix, own_malloc(&fix, MIB(3), MAIN), MAIN);
        uint64_t addr = own_malloc(&fix, MIB(3), MAIN);
        scripted_node(fix.scripts[0], MAIN);
        scripted_join(fix.scripts[0], SIDE, MAIN);
        scripted_node(fix.scripts[0], SIDE);
        cca_allocator_record_stream(fix.allocator, addr, SIDE);
        uint64_t spare = own_malloc(&fix, MIB(3), MAIN);
        own_free(&fix, spare, MAIN);
        cca_sysmem_fail_nth(n);
        own_free(&fix, addr, MAIN);
        scripted_join(fix.scripts[0], MAIN, SIDE);
        uint64_t next = own_malloc(&fix, MIB(3), MAIN);
        cca_sysmem_fail_nth(0);
        assert_true(next == addr || next == spare);
        end(&fix);
        fixture_close(&fix);
    }
}

static void a_reset_drops_markers(void **state)
{
    struct fixture fix;
    (void)state;
    fixture_open_with(&fix, 1, set_reuse);
    begin(&fix);
    freed_after_a_branch(&fix);
    own_malloc(&fix, MIB(3), MAIN);
    cca_allocator_detach(fix.allocator, 0);
    assert_int_equal(fix.heaps[0]->marker_records.items_taken, 0);
    assert_int_equal(fix.heaps[0]->use_records.items_taken, 0);
    assert_true(cca_list_is_empty(&fix.heaps[0]->capture_views));
    fixture_close(&fix);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_block_comes_back_once_its_stream_has_waited_for_every_use),
    cmocka_unit_test(later_work_of_the_other_stream_does_not_hold_a_block_up),
    cmocka_unit_test(a_block_is_of_its_own_stream_alone),
    cmocka_unit_test(a_stream_outside_the_capture_makes_the_block_wait_for_its_end),
    cmocka_unit_test(without_a_node_nothing_says_when_a_use_is_over),
    cmocka_unit_test(dependencies_that_the_program_sets_back_are_noticed),
    cmocka_unit_test(streams_that_have_joined_are_served_from_the_pool),
    cmocka_unit_test(a_pool_gets_its_blocks_back_when_its_own_capture_ends),
    cmocka_unit_test(nodes_are_walked_once),
    cmocka_unit_test(memory_for_markers_and_views_may_be_refused),
    cmocka_unit_test(a_reset_drops_markers),
};

CCA_TEST_MAIN(tests)
