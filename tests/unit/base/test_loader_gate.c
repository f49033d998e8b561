/* SPDX-License-Identifier: MIT */
#include "base/loader_gate.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "support/test.h"

static sem_t is_inside, may_leave;
static atomic_bool has_left;

static void *stay_inside(void *arg)
{
    bool *got = arg;

    *got = cca_loader_gate_enter();
    sem_post(&is_inside);
    sem_wait(&may_leave);
    cca_clock_sleep_us(20000);
    atomic_store(&has_left, true);
    cca_loader_gate_leave();
    return NULL;
}

static void *try_to_enter(void *arg)
{
    bool *got = arg;

    *got = cca_loader_gate_enter();
    if (*got) {
        cca_loader_gate_leave();
    }
    return NULL;
}

static void *enter_late(void *arg)
{
    bool *got = arg;

    sem_post(&is_inside);
    *got = cca_loader_gate_enter_late();
    if (*got) {
        cca_loader_gate_leave();
    }
    return NULL;
}

static int setup(void **state)
{
    (void)state;
    sem_init(&is_inside, 0, 0);
    sem_init(&may_leave, 0, 0);
    atomic_store(&has_left, false);
    return 0;
}

static void closing_waits_until_others_have_left(void **state)
{
    pthread_t thread;
    bool got = false;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, stay_inside, &got), 0);
    sem_wait(&is_inside);
    sem_post(&may_leave);
    assert_true(cca_loader_gate_close());
    assert_true(atomic_load(&has_left));
    cca_loader_gate_open();
    pthread_join(thread, NULL);
    assert_true(got);
}

static void closing_gives_up_after_a_while(void **state)
{
    pthread_t thread;
    bool got = false;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, stay_inside, &got), 0);
    sem_wait(&is_inside);
    assert_false(cca_loader_gate_close());
    /* What a child does: nobody but its own thread is there. */
    cca_loader_gate_reset();
    assert_true(cca_loader_gate_close());
    cca_loader_gate_open();
    sem_post(&may_leave);
    pthread_join(thread, NULL);
    cca_loader_gate_reset();
}

static void others_stay_out_while_it_is_closed(void **state)
{
    pthread_t thread;
    bool got = true;

    (void)state;
    assert_true(cca_loader_gate_close());
    assert_int_equal(pthread_create(&thread, NULL, try_to_enter, &got), 0);
    pthread_join(thread, NULL);
    assert_false(got);
    assert_true(cca_loader_gate_enter());
    cca_loader_gate_leave();
    cca_loader_gate_open();
    assert_int_equal(pthread_create(&thread, NULL, try_to_enter, &got), 0);
    pthread_join(thread, NULL);
    assert_true(got);
}

static void a_late_entry_waits_for_the_gate_to_open(void **state)
{
    pthread_t thread;
    bool got = false;

    (void)state;
    assert_true(cca_loader_gate_close());
    assert_int_equal(pthread_create(&thread, NULL, enter_late, &got), 0);
    sem_wait(&is_inside);
    cca_clock_sleep_us(20000);
    cca_loader_gate_open();
    pthread_join(thread, NULL);
    assert_true(got);
}

static void the_closing_thread_may_be_inside_itself(void **state)
{
    (void)state;
    assert_true(cca_loader_gate_enter());
    assert_true(cca_loader_gate_close());
    cca_loader_gate_open();
    cca_loader_gate_leave();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(closing_waits_until_others_have_left, setup),
    cmocka_unit_test_setup(closing_gives_up_after_a_while, setup),
    cmocka_unit_test_setup(others_stay_out_while_it_is_closed, setup),
    cmocka_unit_test_setup(a_late_entry_waits_for_the_gate_to_open, setup),
    cmocka_unit_test(the_closing_thread_may_be_inside_itself),
};

CCA_TEST_MAIN(tests)
