/* SPDX-License-Identifier: MIT */
/* Several contexts of one device: heaps of their own, accounts in common. */
#include "support/heap_fixture.h"

#include "alloc/verify.h"

/* A context that the program made on device 0, over a script of its own. */
struct own {
    struct scripted_device *script;
    struct cca_heap *heap;
};

static struct own make_own(struct fixture *fix, uint64_t context)
{
    struct own own = {.script = calloc(1, sizeof(*own.script))};
    scripted_device_init(own.script, GIB(256));
    own.script->next_addr += GIB(1024) * (context & 0xff);
    struct cca_device device = scripted_device(own.script, 0);
    device.is_own = true;
    own.heap = cca_allocator_attach(fix->allocator, &device, context);
    return own;
}

static uint64_t take(struct fixture *fix, struct cca_heap *heap, size_t bytes)
{
    struct cca_request request = {
        .api = CCA_API_MALLOC, .bytes = bytes, .key = CCA_KEY_READY, .thread = 1};
    uint64_t addr = 0;
    assert_int_equal(cca_allocator_alloc(fix->allocator, heap, &request, &addr).kind, CCA_OK);
    return addr;
}

/* `is_gone`: the driver does it. */
static void destroy(struct fixture *fix, uint64_t context, bool is_gone)
{
    struct cca_heap *heap = cca_allocator_withdraw(fix->allocator, context);
    assert_null(cca_allocator_heap(fix->allocator, context));
    if (heap != NULL) {
        assert_int_equal(cca_allocator_withdrawn(fix->allocator, heap, context, is_gone), is_gone);
    }
}

static void verify(struct cca_heap *heap)
{
    cca_lock_take(&heap->lock);
    const char *broken = cca_verify_heap(heap);
    cca_lock_drop(&heap->lock);
    assert_null(broken);
}

static void each_context_has_a_heap_and_the_device_has_the_accounts(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    struct own first = make_own(&fix, 0xe1), second = make_own(&fix, 0xe2);
    assert_ptr_not_equal(first.heap, second.heap);
    assert_ptr_not_equal(first.heap, fix.heaps[0]);
    assert_int_equal(cca_allocator_ordinal(first.heap), 0);
    assert_int_equal(cca_heap_slot(first.heap), CCA_HEAPS_MAX - 1);
    assert_ptr_equal(cca_allocator_heap(fix.allocator, 0xe2), second.heap);
    assert_ptr_equal(cca_allocator_heap_of_device(fix.allocator, 0), fix.heaps[0]);
    assert_int_equal(cca_allocator_device_mask(fix.allocator), 1);

    uint64_t a = take(&fix, first.heap, KIB(4)), b = take(&fix, second.heap, KIB(8));
    (void)fix_malloc(&fix, KIB(16));
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), KIB(28));
    assert_int_equal(fix_stat(&fix, "segment.all.current"), 3);
    fix_free(&fix, a);
    fix_free(&fix, b);
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), KIB(16));
    verify(first.heap);
    verify(second.heap);
    fix_verify(&fix);
    fixture_close(&fix);
    free(first.script);
    free(second.script);
}

static void memory_dies_with_its_context_and_the_slot_is_used_again(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    struct own first = make_own(&fix, 0xe1), second = make_own(&fix, 0xe2);
    uint64_t gone = take(&fix, first.heap, KIB(4)), kept = take(&fix, second.heap, KIB(4));
    destroy(&fix, 0xe1, true);
    assert_null(cca_allocator_heap(fix.allocator, 0xe1));
    assert_int_equal(fix_try_free(&fix, gone), CCA_FREE_FORWARD);
    assert_int_equal(fix_stat(&fix, "allocated_bytes.all.current"), KIB(4));
    destroy(&fix, 0xe1, true);
    fix_free(&fix, kept);

    struct own third = make_own(&fix, 0xe3);
    assert_ptr_equal(third.heap, first.heap);
    (void)take(&fix, third.heap, KIB(4));
    assert_int_equal(cca_allocator_up_mask(fix.allocator) >> (CCA_HEAPS_MAX - 2), 3);
    fixture_close(&fix);
    free(first.script);
    free(second.script);
    free(third.script);
}

static void a_free_is_complete_when_every_context_is_done(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    struct own own = make_own(&fix, 0xe1);
    uint64_t a = take(&fix, own.heap, KIB(4));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a); /* strict: waits for its own context */
    assert_int_equal(own.script->waits, 1);
    assert_int_equal(fix.scripts[0]->waits, 0);
    assert_int_not_equal(take(&fix, own.heap, KIB(4)), a);
    scripted_finish(fix.scripts[0]);
    assert_int_equal(take(&fix, own.heap, KIB(4)), a);

    uint64_t b = fix_malloc(&fix, KIB(4));
    scripted_submit(own.script);
    fix_free(&fix, b);
    assert_int_not_equal(fix_malloc(&fix, KIB(4)), b);
    destroy(&fix, 0xe1, true); /* its work goes with it */
    assert_int_equal(fix_malloc(&fix, KIB(4)), b);
    fixture_close(&fix);
    free(own.script);
}

static void a_context_that_lives_on_has_what_it_had(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    struct own own = make_own(&fix, 0xe1);
    uint64_t a = take(&fix, own.heap, KIB(4)), b = take(&fix, own.heap, KIB(4));
    scripted_submit(fix.scripts[0]);
    fix_free(&fix, a); /* waits for the device's other context */
    struct cca_heap *heap = cca_allocator_withdraw(fix.allocator, 0xe1);
    assert_ptr_equal(heap, own.heap);
    assert_int_equal(fix_try_free(&fix, b), CCA_FREE_FORWARD);
    assert_false(cca_allocator_look_up(fix.allocator, b).is_ours);
    (void)cca_allocator_withdrawn(fix.allocator, heap, 0xe1, false);
    assert_true(cca_allocator_look_up(fix.allocator, b).is_live_block);
    assert_int_not_equal(take(&fix, own.heap, KIB(4)), a);
    scripted_finish(fix.scripts[0]);
    cca_allocator_poll(fix.allocator, own.heap);
    assert_int_equal(take(&fix, own.heap, KIB(4)), a);
    fix_free(&fix, b);
    verify(own.heap);
    fixture_close(&fix);
    free(own.script);
}

static void nothing_is_complete_while_contexts_cannot_be_looked_for(void **state)
{
    (void)state;
    struct fixture fix;
    fixture_open(&fix, 1);
    uint64_t a = fix_malloc(&fix, KIB(4)), b = fix_malloc(&fix, KIB(4));
    cca_allocator_blind(fix.allocator, true);
    fix_free(&fix, a);
    assert_int_equal(fix.scripts[0]->waits, 1);
    assert_int_not_equal(fix_malloc(&fix, KIB(4)), a);
    struct own own = make_own(&fix, 0xe1); /* was up all the time */
    scripted_submit(own.script);
    cca_allocator_blind(fix.allocator, false);
    assert_int_not_equal(fix_malloc(&fix, KIB(4)), a);
    scripted_finish(own.script);
    assert_int_equal(fix_malloc(&fix, KIB(4)), a);
    fix_free(&fix, b);
    assert_int_equal(fix_malloc(&fix, KIB(4)), b);
    fix_verify(&fix);
    fixture_close(&fix);
    free(own.script);
}

static void one_context_more_than_can_be_followed_ends_caching(void **state)
{
    (void)state;
    struct fixture fix;
    struct own owns[CCA_HEAPS_MAX];
    fixture_open(&fix, 1);
    for (int i = 0; i < CCA_HEAPS_MAX - 1; i++) {
        owns[i] = make_own(&fix, 0x100 + (uint64_t)i);
        assert_non_null(owns[i].heap);
    }
    assert_false(cca_allocator_is_stopped(fix.allocator));
    owns[CCA_HEAPS_MAX - 1] = make_own(&fix, 0xfff);
    assert_null(owns[CCA_HEAPS_MAX - 1].heap);
    assert_true(cca_allocator_is_stopped(fix.allocator));
    fixture_close(&fix);
    for (int i = 0; i < CCA_HEAPS_MAX; i++) {
        free(owns[i].script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_context_has_a_heap_and_the_device_has_the_accounts),
        cmocka_unit_test(memory_dies_with_its_context_and_the_slot_is_used_again),
        cmocka_unit_test(a_free_is_complete_when_every_context_is_done),
        cmocka_unit_test(a_context_that_lives_on_has_what_it_had),
        cmocka_unit_test(nothing_is_complete_while_contexts_cannot_be_looked_for),
        cmocka_unit_test(one_context_more_than_can_be_followed_ends_caching),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
