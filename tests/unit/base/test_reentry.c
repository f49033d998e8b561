/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <pthread.h>

#include "base/reentry.h"

static void second_entry_is_refused_until_the_first_leaves(void **state)
{
    (void)state;
    assert_false(cca_reentry_inside());
    assert_true(cca_reentry_enter());
    assert_true(cca_reentry_inside());
    assert_false(cca_reentry_enter());
    assert_true(cca_reentry_inside());
    cca_reentry_leave();
    assert_false(cca_reentry_inside());
    assert_true(cca_reentry_enter());
    cca_reentry_leave();
}

static void *enter_and_leave(void *arg)
{
    bool *got = arg;

    *got = !cca_reentry_inside() && cca_reentry_enter();
    cca_reentry_leave();
    return NULL;
}

static void threads_enter_independently(void **state)
{
    pthread_t thread;
    bool got = false;

    (void)state;
    assert_true(cca_reentry_enter());
    assert_int_equal(pthread_create(&thread, NULL, enter_and_leave, &got), 0);
    pthread_join(thread, NULL);
    assert_true(got);
    assert_true(cca_reentry_inside());
    cca_reentry_leave();
}

static void suspended_thread_is_outside_until_it_resumes(void **state)
{
    int depth;

    (void)state;
    depth = cca_reentry_suspend();
    assert_false(cca_reentry_inside());
    cca_reentry_resume(depth);
    assert_false(cca_reentry_inside());
    assert_true(cca_reentry_enter());
    depth = cca_reentry_suspend();
    assert_false(cca_reentry_inside());
    assert_true(cca_reentry_enter());
    cca_reentry_leave();
    cca_reentry_resume(depth);
    assert_true(cca_reentry_inside());
    cca_reentry_leave();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(second_entry_is_refused_until_the_first_leaves),
    cmocka_unit_test(suspended_thread_is_outside_until_it_resumes),
    cmocka_unit_test(threads_enter_independently),
};

CCA_TEST_MAIN(tests)
