/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/compiler.h"
#include "snapshot/demangle.h"

static void names_of_c_plus_plus_become_readable(void **state)
{
    static const struct {
        const char *name, *meaning;
    } rows[] = {
        {"_ZN4pool5Cache4takeEm", "pool::Cache::take(unsigned long)"},
        {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"},
        {"_Z4makeIiET_S0_", "int make<int>(int)"},
    };
    char buf[256];

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(rows); i++) {
        assert_int_equal(cca_demangle(rows[i].name, buf, sizeof(buf)), cca_can_demangle());
        if (cca_can_demangle()) {
            assert_string_equal(buf, rows[i].meaning);
        }
    }
}

static void other_names_stay(void **state)
{
    static const char *const names[] = {"main", "", "_start", "_Z", "_Z?", "Z4makev"};
    char buf[256];

    (void)state;
    for (size_t i = 0; i < CCA_ARRAY_LEN(names); i++) {
        assert_false(cca_demangle(names[i], buf, sizeof(buf)));
    }
}

static void a_long_meaning_is_cut_and_a_long_name_stays(void **state)
{
    static char name[4096] = "_Z4make";
    char buf[8];

    (void)state;
    if (cca_can_demangle()) {
        assert_true(cca_demangle("_ZN4pool5Cache4takeEm", buf, sizeof(buf)));
        assert_string_equal(buf, "pool::C");
    }
    memset(name + 7, 'i', sizeof(name) - 8);
    assert_false(cca_demangle(name, buf, sizeof(buf)));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_of_c_plus_plus_become_readable),
    cmocka_unit_test(other_names_stay),
    cmocka_unit_test(a_long_meaning_is_cut_and_a_long_name_stays),
};

CCA_TEST_MAIN(tests)
