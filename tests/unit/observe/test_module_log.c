/* SPDX-License-Identifier: MIT */
/* With this program, the C library, and libresolv as a library that comes and goes. */
#include "observe/module_log.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/object_at.h"
#include "support/test.h"

static struct cca_module_log module_log;
static struct cca_stack_table table;

static int setup(void **state)
{
    (void)state;
    cca_object_at_use(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    assert_int_equal(cca_stack_table_init(&table, 1024, (size_t)1 << 20), 0);
    return cca_module_log_init(&module_log);
}

static int teardown(void **state)
{
    (void)state;
    cca_module_log_fini(&module_log);
    cca_stack_table_fini(&table);
    return 0;
}

/* As a capture does it. */
static uint32_t store(uintptr_t pc)
{
    uint32_t id = cca_stack_table_find(&table, &pc, 1);

    if (id == 0) {
        (void)cca_module_log_note(&module_log, &table, &pc, 1);
        id = cca_stack_table_intern(&table, &pc, 1);
    }
    return id;
}

static void *load(uintptr_t *pc_out)
{
    void *library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);

    assert_non_null(library);
    *pc_out = (uintptr_t)dlsym(library, "inet_net_pton") + 8;
    assert_true(*pc_out > 8);
    return library;
}

static bool is_loaded(void)
{
    return dlopen("libresolv.so.2", RTLD_NOW | RTLD_NOLOAD) != NULL;
}

static struct cca_module_life get(int life)
{
    struct cca_module_life copy;

    assert_true(cca_module_log_get(&module_log, life, &copy));
    return copy;
}

static void each_module_of_a_stack_begins_one_life(void **state)
{
    uintptr_t pcs[] = {(uintptr_t)each_module_of_a_stack_begins_one_life + 4, (uintptr_t)getenv + 4,
                       0x1000};

    (void)state;
    assert_false(cca_module_log_note(&module_log, &table, pcs, 3));
    assert_false(cca_module_log_note(&module_log, &table, pcs, 3));
    assert_int_equal(module_log.count, 2);
    for (int i = 0; i < 2; i++) {
        struct cca_module_life life = get(i);
        bool is_own = pcs[0] >= life.module.start && pcs[0] < life.module.end;
        assert_non_null(strstr(life.module.path, is_own ? "test_observe_module_log" : "/libc.so"));
        assert_int_equal(life.first_stack, cca_stack_table_next(&table));
        assert_int_equal(life.end_stack, UINT32_MAX);
        assert_false(life.module.is_unloaded);
    }
    assert_false(cca_module_log_get(&module_log, 2, &(struct cca_module_life){0}));
}

static void a_life_ends_when_its_module_is_unloaded(void **state)
{
    uintptr_t pc;
    void *library = load(&pc);
    int ended[4];

    (void)state;
    uint32_t id = store(pc);
    assert_int_equal(cca_module_log_look(&module_log, &table, ended, 4), 0);
    dlclose(library);
    assert_false(is_loaded());
    assert_int_equal(cca_module_log_look(&module_log, &table, ended, 4), 1);
    struct cca_module_life life = get(ended[0]);
    assert_true(life.module.is_unloaded);
    assert_in_range(id, life.first_stack, life.end_stack - 1);
    assert_int_equal(cca_module_log_look(&module_log, &table, ended, 4), 0);
}

static void a_life_goes_on_when_its_module_comes_back(void **state)
{
    uintptr_t pc, again;
    void *library = load(&pc);
    int ended[4];

    (void)state;
    (void)store(pc);
    dlclose(library);
    assert_int_equal(cca_module_log_look(&module_log, &table, ended, 4), 1);
    size_t count = module_log.count;
    library = load(&again);
    bool is_stale = cca_module_log_is_stale(&module_log, &table, &again, 1);
    (void)store(again);
    assert_false(is_stale);
    if (again == pc) {
        assert_int_equal(module_log.count, count);
        assert_false(get(ended[0]).module.is_unloaded);
        assert_int_equal(get(ended[0]).end_stack, UINT32_MAX);
    } else {
        assert_int_equal(module_log.count, count + 1);
    }
    dlclose(library);
}

/* Memory that is no module lies where one was: what the unwinder knows of it is wrong, and the old
 * stack is another one from now on. */
static void something_else_in_the_place_is_noticed_once(void **state)
{
    uintptr_t pc;
    void *library = load(&pc);
    int ended[4];

    (void)state;
    uint32_t old = store(pc);
    assert_false(cca_module_log_is_stale(&module_log, &table, &pc, 1));
    dlclose(library);
    assert_int_equal(cca_module_log_look(&module_log, &table, ended, 4), 1);
    uintptr_t elsewhere = (uintptr_t)getenv + 4;
    assert_false(cca_module_log_is_stale(&module_log, &table, &elsewhere, 1));
    assert_true(cca_module_log_is_stale(&module_log, &table, &pc, 1));
    assert_false(cca_module_log_is_stale(&module_log, &table, &pc, 1));
    uint32_t fresh = store(pc);
    assert_int_not_equal(fresh, old);
    assert_true(fresh >= get(ended[0]).end_stack);
}

static void a_module_that_is_being_closed_is_looked_at_again(void **state)
{
    uintptr_t pc;
    void *library = load(&pc);

    (void)state;
    if (!cca_object_at_works()) {
        return;
    }
    (void)store(pc);
    assert_int_equal(cca_module_log_close_begin(&module_log, NULL), -1);
    assert_int_equal(cca_module_log_close_begin(&module_log, &pc), -1);
    assert_int_equal(atomic_load(&module_log.high), 0);
    int life = cca_module_log_close_begin(&module_log, library);
    assert_true(life >= 0);
    assert_true(pc > atomic_load(&module_log.low) && pc <= atomic_load(&module_log.high));
    assert_false(cca_module_log_is_stale(&module_log, &table, &pc, 1)); /* it is still there */
    assert_false(get(life).module.is_unloaded);
    dlclose(library);
    assert_true(cca_module_log_is_stale(&module_log, &table, &pc, 1)); /* before anybody looked */
    assert_true(get(life).module.is_unloaded);
    cca_module_log_close_end(&module_log, life);
    assert_int_equal(atomic_load(&module_log.high), 0);
}

static void names_are_merged_by_address(void **state)
{
    static const struct cca_module_name first[] = {{10, "ten"}, {30, "thirty"}};
    static const struct cca_module_name second[] = {{5, "five"}, {30, "again"}, {40, "forty"}};

    (void)state;
    (void)store((uintptr_t)getenv + 4);
    cca_module_log_add_names(&module_log, 0, 7, first, 2);
    cca_module_log_add_names(&module_log, 0, 9, second, 3);
    struct cca_module_life life = get(0);
    assert_int_equal(life.named_until, 9);
    assert_int_equal(life.name_count, 4);
    assert_string_equal(cca_module_life_name(&life, 5), "five");
    assert_string_equal(cca_module_life_name(&life, 10), "ten");
    assert_string_equal(cca_module_life_name(&life, 30), "thirty");
    assert_string_equal(cca_module_life_name(&life, 40), "forty");
    assert_null(cca_module_life_name(&life, 11));
    assert_null(cca_module_life_name(&life, 41));
}

static void each_life_is_pinned_once(void **state)
{
    uintptr_t pcs[] = {(uintptr_t)each_life_is_pinned_once + 4, (uintptr_t)getenv + 4};
    struct cca_module_life life;

    (void)state;
    (void)cca_module_log_note(&module_log, &table, pcs, 2);
    assert_true(cca_module_log_next_unpinned(&module_log, &life));
    assert_true(cca_module_log_next_unpinned(&module_log, &life));
    assert_false(cca_module_log_next_unpinned(&module_log, &life));
}

static void the_copy_ascends(void **state)
{
    uintptr_t pcs[] = {(uintptr_t)getenv + 4, (uintptr_t)the_copy_ascends + 4};
    struct cca_module_life *lives;
    struct cca_arena arena;
    size_t count;

    (void)state;
    (void)store(pcs[0]);
    (void)store(pcs[1]);
    assert_int_equal(cca_arena_init(&arena, 1 << 20), 0);
    assert_int_equal(cca_module_log_copy(&module_log, &arena, &lives, &count), 0);
    assert_int_equal(count, 2);
    assert_true(lives[0].module.start < lives[1].module.start);
    cca_arena_fini(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(each_module_of_a_stack_begins_one_life, setup, teardown),
    cmocka_unit_test_setup_teardown(a_life_ends_when_its_module_is_unloaded, setup, teardown),
    cmocka_unit_test_setup_teardown(a_life_goes_on_when_its_module_comes_back, setup, teardown),
    cmocka_unit_test_setup_teardown(something_else_in_the_place_is_noticed_once, setup, teardown),
    cmocka_unit_test_setup_teardown(a_module_that_is_being_closed_is_looked_at_again, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(names_are_merged_by_address, setup, teardown),
    cmocka_unit_test_setup_teardown(each_life_is_pinned_once, setup, teardown),
    cmocka_unit_test_setup_teardown(the_copy_ascends, setup, teardown),
};
CCA_TEST_MAIN(tests)
