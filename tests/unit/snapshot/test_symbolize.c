/* SPDX-License-Identifier: MIT */
/* Real addresses: of this program, of libc, of the vdso. */
#include "snapshot/symbolize.h"

#include "base/compiler.h"

#include "fixture.h"

#include "support/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/auxv.h>

static struct cca_model model;
static struct cca_stack_table table;

CCA_EXPORT CCA_NOINLINE int exported_function(int value);
CCA_EXPORT CCA_NOINLINE int exported_function(int value)
{
    return value * 3;
}

static CCA_NOINLINE int static_function(int value)
{
    return value * 5 + 1;
}

static int setup(void **state)
{
    (void)state;
    fixture_small(&model);
    model.stack_count = model.frame_count = model.stack_frame_count = 0;
    model.stacks = NULL;
    model.frames = NULL;
    model.stack_frames = NULL;
    return cca_stack_table_init(&table, 1024, (size_t)1 << 20);
}

static int teardown(void **state)
{
    (void)state;
    cca_stack_table_fini(&table);
    cca_model_fini(&model);
    return 0;
}

static void clear_stacks(void)
{
    for (size_t i = 0; i < model.devices[0].entry_count; i++) {
        model.devices[0].entries[i].stack = 0;
    }
    for (size_t i = 0; i < model.block_count; i++) {
        model.blocks[i].stack = 0;
    }
    model.segments[0].stack = 0;
}

/* The only stack of the model is this one; returns its frames. */
static const struct cca_model_frame *symbolize_one(uintptr_t pc, bool with_names)
{
    clear_stacks();
    model.segments[0].stack = cca_stack_table_intern(&table, &pc, 1);
    assert_true(model.segments[0].stack != 0);
    assert_int_equal(cca_symbolize_model(&model, &table, NULL, with_names), 0);
    assert_int_equal(model.segments[0].stack, 1);
    assert_int_equal(model.stack_count, 1);
    assert_int_equal(model.stacks[0].count, 1);
    assert_int_equal(model.frame_count, 1);
    assert_int_equal(model.frames[0].address, pc);
    return &model.frames[0];
}

/* Just behind the first instruction, as a return address would be. */
static uintptr_t inside(uintptr_t function)
{
    return function + 1;
}

static void names_static_functions(void **state)
{
    const struct cca_model_frame *frame = symbolize_one(inside((uintptr_t)static_function), true);

    (void)state;
    assert_int_equal(static_function(1), 6);
    assert_string_equal(frame->name, "static_function");
    assert_non_null(strstr(frame->filename, "test_snapshot_symbolize"));
    assert_int_equal(frame->line, 0);
}

static void names_exported_functions(void **state)
{
    (void)state;
    assert_int_equal(exported_function(1), 3);
    assert_string_equal(symbolize_one(inside((uintptr_t)exported_function), true)->name,
                        "exported_function");
}

/* The call was the last instruction: the return address is the next function's. */
static void looks_up_the_call_not_the_return(void **state)
{
    const struct cca_model_frame *frame = symbolize_one((uintptr_t)static_function, true);

    (void)state;
    assert_string_not_equal(frame->name, "static_function");
}

static void names_libc_functions(void **state)
{
    void *getenv_address = dlsym(dlopen("libc.so.6", RTLD_NOLOAD | RTLD_NOW), "secure_getenv");
    const struct cca_model_frame *frame;

    (void)state;
    assert_non_null(getenv_address);
    frame = symbolize_one(inside((uintptr_t)getenv_address), true);
    assert_string_equal(frame->name, "secure_getenv");
    assert_non_null(strstr(frame->filename, "libc.so"));
}

static void names_the_vdso(void **state)
{
    uintptr_t base = getauxval(AT_SYSINFO_EHDR);
    void *vdso = dlopen("linux-vdso.so.1", RTLD_NOLOAD | RTLD_NOW);
    void *function = vdso != NULL ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
    const struct cca_model_frame *frame;

    (void)state;
    if (base == 0 || function == NULL) {
        skip();
    }
    frame = symbolize_one(inside((uintptr_t)function), true);
    assert_string_equal(frame->filename, "[vdso]");
    assert_non_null(strstr(frame->name, "clock_gettime"));
}

static void vdso_without_a_function_is_an_offset(void **state)
{
    uintptr_t base = getauxval(AT_SYSINFO_EHDR);
    const struct cca_model_frame *frame;

    (void)state;
    if (base == 0) {
        skip();
    }
    frame = symbolize_one(base + 8, true);
    assert_string_equal(frame->filename, "[vdso]");
    assert_string_equal(frame->name, "[vdso]+0x8");
}

static void offsets_where_no_function_is(void **state)
{
    const struct cca_model_frame *frame;
    char expected[300];

    (void)state;
    assert_int_equal(cca_modules_list(&model.modules, &model.arena), 0);
    for (size_t i = 0; i < model.modules.count; i++) {
        const struct cca_module *module = &model.modules.list[i];

        if (strstr(module->path, "libc.so.6") != NULL) {
            frame = symbolize_one((uintptr_t)module->start + 16, true);
            snprintf(expected, sizeof(expected), "libc.so.6+0x%llx",
                     (unsigned long long)(module->start + 16 - module->base));
            assert_string_equal(frame->name, expected);
            assert_string_equal(frame->filename, module->path);
            return;
        }
    }
    fail();
}

static void addresses_outside_every_module(void **state)
{
    const struct cca_model_frame *frame = symbolize_one(0x1234, true);

    (void)state;
    assert_string_equal(frame->name, "0x1234");
    assert_string_equal(frame->filename, "[unknown]");
}

static void no_names_when_not_wanted(void **state)
{
    const uintptr_t pc = inside((uintptr_t)static_function);
    const struct cca_model_frame *frame = symbolize_one(pc, false);
    char expected[32];

    (void)state;
    snprintf(expected, sizeof(expected), "0x%llx", (unsigned long long)pc);
    assert_string_equal(frame->name, expected);
    assert_non_null(strstr(frame->filename, "test_snapshot_symbolize"));
}

static void each_stack_and_address_once(void **state)
{
    const uintptr_t first[] = {inside((uintptr_t)static_function), 0x1000, 0x2000};
    const uintptr_t second[] = {0x3000, 0x1000, 0x2000};
    struct cca_trace_entry *entries = model.devices[0].entries;

    (void)state;
    clear_stacks();
    entries[1].stack = cca_stack_table_intern(&table, second, 3);
    entries[2].stack = cca_stack_table_intern(&table, first, 3);
    entries[3].stack = entries[1].stack;
    model.segments[0].stack = entries[2].stack;
    model.blocks[0].stack = entries[1].stack;
    assert_int_equal(cca_symbolize_model(&model, &table, NULL, true), 0);
    assert_int_equal(model.stack_count, 2);
    assert_int_equal(model.frame_count, 4);
    assert_int_equal(model.stack_frame_count, 6);
    assert_int_equal(entries[0].stack, 0);
    assert_int_equal(entries[1].stack, 1);
    assert_int_equal(entries[2].stack, 2);
    assert_int_equal(entries[3].stack, 1);
    assert_int_equal(model.segments[0].stack, 2);
    assert_int_equal(model.blocks[0].stack, 1);
    assert_int_equal(model.stacks[1].first, 3);
    assert_string_equal(model.frames[model.stack_frames[0]].name, "0x3000");
    assert_string_equal(model.frames[model.stack_frames[3]].name, "static_function");
    assert_int_equal(model.stack_frames[1], model.stack_frames[4]);
}

/* At whatever point memory ends, the model stays one that can be written. */
static void full_arena_leaves_stacks_out(void **state)
{
    const uintptr_t pcs[] = {inside((uintptr_t)static_function), 0x1000, 0x2000};
    size_t left = 0;
    int rc;

    (void)state;
    do {
        struct cca_model copy = model;

        clear_stacks();
        model.blocks[0].stack = cca_stack_table_intern(&table, pcs, 3);
        copy.arena.used_bytes = copy.arena.reserved_bytes - left;
        rc = cca_symbolize_model(&copy, &table, NULL, true);
        if (rc != 0) {
            assert_int_equal(rc, -ENOMEM);
            assert_int_equal(model.blocks[0].stack, 0);
            assert_int_equal(copy.stack_count, 0);
        }
        memset(copy.arena.base + copy.arena.reserved_bytes - left, 0, left);
        left += 256;
    } while (rc != 0);
    assert_true(left > 16384);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(names_static_functions, setup, teardown),
    cmocka_unit_test_setup_teardown(names_exported_functions, setup, teardown),
    cmocka_unit_test_setup_teardown(looks_up_the_call_not_the_return, setup, teardown),
    cmocka_unit_test_setup_teardown(names_libc_functions, setup, teardown),
    cmocka_unit_test_setup_teardown(names_the_vdso, setup, teardown),
    cmocka_unit_test_setup_teardown(vdso_without_a_function_is_an_offset, setup, teardown),
    cmocka_unit_test_setup_teardown(offsets_where_no_function_is, setup, teardown),
    cmocka_unit_test_setup_teardown(addresses_outside_every_module, setup, teardown),
    cmocka_unit_test_setup_teardown(no_names_when_not_wanted, setup, teardown),
    cmocka_unit_test_setup_teardown(each_stack_and_address_once, setup, teardown),
    cmocka_unit_test_setup_teardown(full_arena_leaves_stacks_out, setup, teardown),
};

CCA_TEST_MAIN(tests)
