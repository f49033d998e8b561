/* SPDX-License-Identifier: MIT */
#include "support/heap_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static void bad_frees_are_told_apart(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, MIB(1)), b = fix_malloc(&fix, MIB(1));
    fix_free(&fix, a);
    int64_t active = fix_stat(&fix, "active.all.current");
    assert_int_equal(fix_try_free(&fix, a), CCA_FREE_INVALID);       /* twice */
    assert_int_equal(fix_try_free(&fix, b + 256), CCA_FREE_INVALID); /* inside */
    assert_int_equal(fix_try_free(&fix, 0x1000), CCA_FREE_FORWARD);  /* foreign */
    assert_int_equal(fix_stat(&fix, "active.all.current"), active);
    assert_int_not_equal(fix_malloc(&fix, MIB(1)), fix_malloc(&fix, MIB(1)));
    fixture_close(&fix);
}

static void passed_memory_is_accounted_as_a_segment_with_one_block(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    struct cca_request request = {.api = CCA_API_MALLOC, .bytes = 1000, .key = CCA_KEY_READY};
    cca_allocator_note_passed(fix.allocator, fix.heaps[0], &request, 0x5000);
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 1);
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), 1000);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.small_pool.current"), 1000);
    assert_int_equal(fix.heaps[0]->observer.counters.passed, 1);
    assert_int_equal(fix.heaps[0]->reserved_bytes, 0);
    fix_verify(&fix);
    assert_int_equal(fix_try_free(&fix, 0x5000), CCA_FREE_FORWARD);
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 0);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void a_passed_address_that_comes_back_replaces_the_old_block(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    struct cca_request request = {.api = CCA_API_MALLOC, .bytes = 1000, .key = CCA_KEY_READY};
    cca_allocator_note_passed(fix.allocator, fix.heaps[0], &request, 0x5000);
    request.bytes = 2000;
    cca_allocator_note_passed(fix.allocator, fix.heaps[0], &request, 0x5000);
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 1);
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), 2000);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void set_count(struct cca_config *config)
{
    config->mode = CCA_MODE_COUNT;
}

static void count_mode_serves_nothing(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open_with(&fix, 1, set_count);
    struct cca_request request = {.bytes = 1000, .key = CCA_KEY_READY};
    uint64_t addr = 0;
    assert_int_equal(cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind,
                     CCA_UNSUPPORTED);
    assert_int_equal(fix.scripts[0]->allocs_made, 0);
    fixture_close(&fix);
}

static void a_reset_forgets_everything_and_frees_nothing(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t live = fix_malloc(&fix, MIB(3)), freed = fix_malloc(&fix, KIB(3));
    fix_free(&fix, freed);
    fix_malloc_async(&fix, MIB(30), 5);
    cca_allocator_detach(fix.allocator, 0);
    assert_int_equal(fix.scripts[0]->frees_made, 0);
    fix_verify(&fix);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 0);
    assert_int_equal(fix_stat(&fix, "reserved_bytes.all.current"), 0);
    assert_int_equal(fix_stat(&fix, "inactive_split.all.current"), 0);
    assert_int_equal(fix_try_free(&fix, live), CCA_FREE_FORWARD);
    assert_null(cca_allocator_heap(fix.allocator, 0xc0));

    struct cca_device device = scripted_device(fix.scripts[0], 0);
    struct cca_heap *heap = cca_allocator_attach(fix.allocator, &device, 0xcc);
    assert_ptr_equal(heap, fix.heaps[0]);
    assert_ptr_equal(cca_allocator_heap(fix.allocator, 0xcc), heap);
    fix_free(&fix, fix_malloc(&fix, MIB(3)));
    fix_verify(&fix);
    fixture_close(&fix);
}

static void a_new_context_on_the_device_drops_the_old_one(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    fix_malloc(&fix, MIB(3));
    struct cca_device device = scripted_device(fix.scripts[0], 0);
    cca_allocator_attach(fix.allocator, &device, 0xcc);
    assert_int_equal(fix_stat(&fix, "active.all.current"), 0);
    fix_verify(&fix);
    fixture_close(&fix);
}

static void set_limit(struct cca_config *config)
{
    config->memory_limit = MIB(100);
}

static void free_memory_counts_whole_cached_segments_within_the_limit(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, MIB(30));
    fix_malloc(&fix, KIB(1)); /* its segment is in use: does not count */
    fix_free(&fix, a);
    size_t free_bytes = MIB(50);
    cca_allocator_adjust_mem_info(fix.allocator, fix.heaps[0], &free_bytes, GIB(256));
    assert_int_equal(free_bytes, MIB(80));
    free_bytes = MIB(50);
    cca_allocator_adjust_mem_info(fix.allocator, fix.heaps[0], &free_bytes, MIB(60));
    assert_int_equal(free_bytes, MIB(60));
    fixture_close(&fix);

    fixture_open_with(&fix, 1, set_limit);
    fix_malloc(&fix, MIB(30));
    free_bytes = GIB(50);
    cca_allocator_adjust_mem_info(fix.allocator, fix.heaps[0], &free_bytes, GIB(256));
    assert_int_equal(free_bytes, MIB(70));
    fixture_close(&fix);
}

static void an_address_is_looked_up_with_its_segment(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t whole = fix_malloc(&fix, MIB(12)), part = fix_malloc(&fix, KIB(1));
    assert_true(cca_allocator_look_up(fix.allocator, whole).fills_segment);
    struct cca_address_info info = cca_allocator_look_up(fix.allocator, part);
    assert_true(info.is_live_block && !info.fills_segment);
    assert_int_equal(info.segment_bytes, MIB(2));
    assert_false(cca_allocator_look_up(fix.allocator, part + 8).is_live_block);
    assert_true(cca_allocator_look_up(fix.allocator, part + 8).is_ours);
    assert_false(cca_allocator_look_up(fix.allocator, 0x1000).is_ours);
    fixture_close(&fix);
}

static void blocks_of_one_segment_tile_it_without_overlap(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t last = 0;
    for (int i = 0; i < 2048; i++) {
        uint64_t addr = fix_malloc(&fix, KIB(1));
        assert_true(last == 0 || addr == last + KIB(1));
        last = addr;
    }
    assert_int_equal(fix.scripts[0]->allocs_made, 1);
    assert_int_equal(fix_stat(&fix, "inactive_split.all.current"), 0);
    fixture_close(&fix);
}

static void a_forked_child_is_served_nothing_and_can_still_call(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, KIB(1));
    cca_allocator_fork_prepare(fix.allocator);
    pid_t child = fork();
    if (child == 0) {
        cca_allocator_fork_child(fix.allocator);
        struct cca_request request = {.bytes = 1000, .key = CCA_KEY_READY};
        uint64_t addr = 0;
        bool ok = cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind ==
                  CCA_UNSUPPORTED;
        ok = ok && fix_try_free(&fix, a) == CCA_FREE_DONE;
        _exit(ok ? 0 : 1);
    }
    cca_allocator_fork_parent(fix.allocator);
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    fix_free(&fix, a);
    fixture_close(&fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_frees_are_told_apart),
        cmocka_unit_test(passed_memory_is_accounted_as_a_segment_with_one_block),
        cmocka_unit_test(a_passed_address_that_comes_back_replaces_the_old_block),
        cmocka_unit_test(count_mode_serves_nothing),
        cmocka_unit_test(a_reset_forgets_everything_and_frees_nothing),
        cmocka_unit_test(a_new_context_on_the_device_drops_the_old_one),
        cmocka_unit_test(free_memory_counts_whole_cached_segments_within_the_limit),
        cmocka_unit_test(an_address_is_looked_up_with_its_segment),
        cmocka_unit_test(blocks_of_one_segment_tile_it_without_overlap),
        cmocka_unit_test(a_forked_child_is_served_nothing_and_can_still_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
