/* SPDX-License-Identifier: MIT */
#include "snapshot/loaded_symbols.h"

#include <dlfcn.h>

#include "support/test.h"

static struct cca_arena arena;
static struct cca_modules modules;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(cca_arena_init(&arena, 8 << 20), 0);
    return cca_modules_list(&modules, &arena);
}

static int teardown(void **state)
{
    (void)state;
    cca_arena_fini(&arena);
    return 0;
}

static const char *name_of(const struct cca_module *module, uint64_t addr)
{
    struct cca_symbol_query query = {.vaddr = addr - module->base};

    cca_loaded_symbols_find(module, &query, 1, &arena);
    return query.name;
}

static void exported_functions_are_named(void **state)
{
    uint64_t addr = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "secure_getenv") + 1;
    const struct cca_module *libc = cca_modules_find(&modules, addr);

    (void)state;
    assert_non_null(libc);
    assert_string_equal(name_of(libc, addr), "secure_getenv");
}

static void what_is_no_function_has_no_name(void **state)
{
    uint64_t addr = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "secure_getenv") + 1;
    const struct cca_module *libc = cca_modules_find(&modules, addr);

    (void)state;
    assert_null(name_of(libc, libc->start + 1));
    assert_null(name_of(libc, libc->end - 1));
}

static void many_at_once(void **state)
{
    static const char *const names[] = {"secure_getenv", "lfind", "getpid"};
    struct cca_symbol_query queries[3];
    const struct cca_module *libc = NULL;

    (void)state;
    for (int i = 0; i < 3; i++) {
        uint64_t addr = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, names[i]) + 1;
        libc = cca_modules_find(&modules, addr);
        queries[i] = (struct cca_symbol_query){.vaddr = addr - libc->base};
    }
    cca_loaded_symbols_find(libc, queries, 3, &arena);
    assert_string_equal(queries[0].name, "secure_getenv");
    assert_string_equal(queries[1].name, "lfind");
    assert_non_null(strstr(queries[2].name, "getpid"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(exported_functions_are_named, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_no_function_has_no_name, setup, teardown),
    cmocka_unit_test_setup_teardown(many_at_once, setup, teardown),
};
CCA_TEST_MAIN(tests)
