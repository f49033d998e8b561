/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <signal.h>

#include "base/check.h"
#include "base/log.h"
#include "unit/base/child.h"

static struct child_result result;
static int evaluations;

static bool count_and(bool value)
{
    evaluations++;
    return value;
}

static int break_invariant(void)
{
    CCA_ASSERT(count_and(true));
    CCA_ASSERT(1 + 1 == 3);
    return evaluations;
}

static void assert_aborts_in_debug_builds_only(void **state)
{
    (void)state;
    child_run(break_invariant, &result);
#ifndef NDEBUG
    assert_true(child_was_killed_by(&result, SIGABRT));
    assert_non_null(strstr(result.text, "cca: "));
    assert_non_null(strstr(result.text, "test_check.c:"));
    assert_non_null(strstr(result.text, "check failed: 1 + 1 == 3\n"));
#else
    assert_true(child_exited_with(&result, 0));
    assert_int_equal(result.len, 0);
#endif
}

static int fail_check(void)
{
    cca_check_failed("cond", "file.c", 12);
}

static void failed_check_speaks_without_log_init(void **state)
{
    (void)state;
    child_run(fail_check, &result);
    assert_true(child_was_killed_by(&result, SIGABRT));
    assert_string_equal(result.text, "cca: file.c:12: check failed: cond\n");
}

static bool expect_at_one_place(bool value)
{
    return CCA_EXPECT(count_and(value));
}

static int expect_often(void)
{
    cca_log_init();
    CHILD_EXPECT(expect_at_one_place(true));
    for (int i = 0; i < 5; i++) {
        CHILD_EXPECT(!expect_at_one_place(false));
    }
    CHILD_EXPECT(!CCA_EXPECT(evaluations == 0));
    return evaluations;
}

static void expect_goes_on_and_speaks_once_per_place(void **state)
{
    const char *first, *second;

    (void)state;
    child_run(expect_often, &result);
    assert_true(child_exited_with(&result, 6));
    first = strstr(result.text, "expected: count_and(value)\n");
    assert_non_null(first);
    assert_null(strstr(first + 1, "expected: count_and(value)"));
    second = strstr(result.text, "expected: evaluations == 0\n");
    assert_non_null(second);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(assert_aborts_in_debug_builds_only),
    cmocka_unit_test(failed_check_speaks_without_log_init),
    cmocka_unit_test(expect_goes_on_and_speaks_once_per_place),
};

CCA_TEST_MAIN(tests)
