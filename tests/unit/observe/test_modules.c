/* SPDX-License-Identifier: MIT */
#include "observe/modules.h"

#include <errno.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "support/test.h"

static void this_program_is_listed(void **state)
{
    struct cca_arena arena;
    struct cca_modules modules;
    char exe[4096] = {0};
    uint64_t here = (uint64_t)(uintptr_t)this_program_is_listed;

    (void)state;
    assert_int_equal(cca_arena_init(&arena, 1 << 20), 0);
    assert_int_equal(cca_modules_list(&modules, &arena), 0);
    const struct cca_module *own = cca_modules_find(&modules, here);
    assert_non_null(own);
    assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
    assert_string_equal(own->path, exe);
    assert_true(here >= own->start && here < own->end);
    assert_true(own->base <= own->start);

    const struct cca_module *libc = cca_modules_find(&modules, (uint64_t)(uintptr_t)getauxval);
    assert_non_null(libc);
    assert_non_null(strstr(libc->path, "/libc.so"));
    assert_int_equal(libc->path[0], '/');
    assert_in_range(libc->build_id_len, 8, 32);
    cca_arena_fini(&arena);
}

static void the_list_ascends_and_holds_the_vdso(void **state)
{
    struct cca_arena arena;
    struct cca_modules modules;
    uint64_t vdso = getauxval(AT_SYSINFO_EHDR);

    (void)state;
    assert_int_equal(cca_arena_init(&arena, 1 << 20), 0);
    assert_int_equal(cca_modules_list(&modules, &arena), 0);
    for (size_t i = 1; i < modules.count; i++) {
        assert_true(modules.list[i - 1].start < modules.list[i].start);
        assert_ptr_equal(cca_modules_find(&modules, modules.list[i].start), &modules.list[i]);
        assert_non_null(modules.list[i].path);
    }
    if (vdso != 0) {
        const struct cca_module *module = cca_modules_find(&modules, vdso);
        assert_non_null(module);
        assert_string_equal(module->path, "[vdso]");
    }
    assert_null(cca_modules_find(&modules, 1));
    assert_null(cca_modules_find(&modules, UINT64_MAX));
    cca_arena_fini(&arena);
}

static void small_arena_is_an_error(void **state)
{
    struct cca_arena arena;
    struct cca_modules modules = {NULL, 77};

    (void)state;
    assert_int_equal(cca_arena_init(&arena, 1 << 20), 0);
    while (arena.reserved_bytes - arena.used_bytes > 64) {
        assert_non_null(cca_arena_take(&arena, 64));
    }
    assert_int_equal(cca_modules_list(&modules, &arena), -ENOMEM);
    assert_int_equal(modules.count, 77);
    cca_arena_fini(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(this_program_is_listed),
    cmocka_unit_test(the_list_ascends_and_holds_the_vdso),
    cmocka_unit_test(small_arena_is_an_error),
};
CCA_TEST_MAIN(tests)
