/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "process/selection.h"

static void globs_choose_and_exclude(void **state)
{
    static const struct {
        const char *globs, *file, *called;
        bool is_chosen;
    } rows[] = {
        {"", "/bin/app", "app", true},
        {"app", "/bin/app", "app", true},
        {"bin/app", "/bin/app", "app", false},
        {"a*", "/bin/app", "app", true},
        {"python3", "/usr/bin/python3.11", "python3", true},
        {"python3.*", "/usr/bin/python3.11", "python3", true},
        {"other", "/bin/app", "app", false},
        {"other,app", "/bin/app", "app", true},
        {"other , app ", "/bin/app", "app", true},
        {"!app", "/bin/app", "app", false},
        {"!other", "/bin/app", "app", true},
        {"app,!a*", "/bin/app", "app", false},
        {"!a*,app", "/bin/app", "app", false},
        {"!python3", "/usr/bin/python3.11", "python3", false},
        {",,", "/bin/app", "app", true},
        {"[", "/bin/app", "app", false},
        {"a??", "app", "app", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (cca_selection_matches(rows[i].globs, rows[i].file, rows[i].called) !=
            rows[i].is_chosen) {
            fail_msg("row %zu: '%s'", i, rows[i].globs);
        }
    }
}

static void a_glob_that_is_too_long_matches_nothing(void **state)
{
    char globs[600] = "!";

    (void)state;
    for (size_t i = 1; i < 500; i++) {
        globs[i] = '*';
    }
    assert_true(cca_selection_matches(globs, "/bin/app", "app"));
    assert_false(cca_selection_matches(globs + 1, "/bin/app", "app"));
}

static void only_our_entry_is_removed(void **state)
{
    static const struct {
        const char *before, *after;
        bool was_there;
    } rows[] = {
        {"", "", false},
        {"/x/libours.so", "", true},
        {"libours.so", "", true},
        {"/x/$LIB/libours.so", "", true},
        {"/y/libours.so", "/y/libours.so", false},
        {"/x/libours.so.1", "/x/libours.so.1", false},
        {"liba.so:/x/libours.so", "liba.so", true},
        {"/x/libours.so:liba.so", "liba.so", true},
        {"liba.so:libours.so:libb.so", "liba.so:libb.so", true},
        {"liba.so libours.so  libb.so", "liba.so  libb.so", true},
        {" libours.so", "", true},
        {"libours.so:libours.so", "", true},
        {"liba.so:libb.so", "liba.so:libb.so", false},
        {"libours.so:", "", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char value[64];
        snprintf(value, sizeof(value), "%s", rows[i].before);
        bool was_there = cca_selection_remove_entry(value, "/x/libours.so");
        if (was_there != rows[i].was_there || strcmp(value, rows[i].after) != 0) {
            fail_msg("row %zu: '%s' became '%s'", i, rows[i].before, value);
        }
    }
}

static void another_path_to_the_same_file_counts(void **state)
{
    char value[] = "/proc/self/root/bin/sh:/bin/true";

    (void)state;
    assert_true(cca_selection_remove_entry(value, "/bin/sh"));
    assert_string_equal(value, "/bin/true");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_choose_and_exclude),
        cmocka_unit_test(a_glob_that_is_too_long_matches_nothing),
        cmocka_unit_test(only_our_entry_is_removed),
        cmocka_unit_test(another_path_to_the_same_file_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
