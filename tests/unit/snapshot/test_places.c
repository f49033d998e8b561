/* SPDX-License-Identifier: MIT */
/* Lives are made by hand here: the log is tested by itself. */
#include "snapshot/places.h"

#include "support/test.h"

static struct cca_module_log module_log;
static struct cca_arena arena;
static struct cca_places places;

static void add(uint64_t start, uint64_t end, uint32_t first, uint32_t last, bool is_unloaded)
{
    module_log.lives[module_log.count++] = (struct cca_module_life){
        .module = {.path = "", .start = start, .end = end, .is_unloaded = is_unloaded},
        .first_stack = first,
        .end_stack = last,
    };
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(cca_arena_init(&arena, 1 << 20), 0);
    return cca_module_log_init(&module_log);
}

static int teardown(void **state)
{
    (void)state;
    cca_module_log_fini(&module_log);
    cca_arena_fini(&arena);
    return 0;
}

static uint64_t start_of(uint64_t pc, uint32_t stack)
{
    int life = cca_places_find(&places, pc, stack);

    return life >= 0 ? places.lives[life].module.start : 0;
}

static void one_place_held_several_modules(void **state)
{
    (void)state;
    add(5000, 6000, 1, UINT32_MAX, false);
    add(1000, 2000, 1, 50, true);
    add(1500, 1800, 50, 80, true);
    add(1200, 2500, 80, UINT32_MAX, false);
    assert_int_equal(cca_places_init(&places, &module_log, &arena), 0);
    assert_true(places.is_complete);
    assert_int_equal(start_of(1600, 49), 1000);
    assert_int_equal(start_of(1600, 50), 1500);
    assert_int_equal(start_of(1600, 79), 1500);
    assert_int_equal(start_of(1600, 80), 1200);
    assert_int_equal(start_of(1900, 60), 0);
    assert_int_equal(start_of(2500, 90), 1200); /* its last call, returning behind it */
    assert_int_equal(start_of(2501, 90), 0);
    assert_int_equal(start_of(5500, 3), 5000);
    assert_int_equal(start_of(5000, 3), 0); /* a call lies before where it returns to */
    assert_true(cca_places_are_unsure(&places, 1600));
    assert_false(cca_places_are_unsure(&places, 2400));
    assert_false(cca_places_are_unsure(&places, 5500));
}

static void before_a_module_came_nothing_was_there(void **state)
{
    (void)state;
    add(1000, 2000, 20, UINT32_MAX, false);
    assert_int_equal(cca_places_init(&places, &module_log, &arena), 0);
    assert_int_equal(start_of(1500, 19), 0);
    assert_int_equal(start_of(1500, 20), 1000);
}

static void without_a_log_nothing_is_known(void **state)
{
    (void)state;
    assert_int_equal(cca_places_init(&places, NULL, &arena), 0);
    assert_false(places.is_complete);
    assert_int_equal(cca_places_find(&places, 1500, 1), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(one_place_held_several_modules, setup, teardown),
    cmocka_unit_test_setup_teardown(before_a_module_came_nothing_was_there, setup, teardown),
    cmocka_unit_test_setup_teardown(without_a_log_nothing_is_known, setup, teardown),
};
CCA_TEST_MAIN(tests)
