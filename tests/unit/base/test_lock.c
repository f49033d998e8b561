/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/lock.h"
#include "unit/base/child.h"

static struct cca_lock low, high;
static struct child_result result;

static int setup(void **state)
{
    (void)state;
    cca_lock_init(&low, CCA_RANK_HEAP);
    cca_lock_init(&high, CCA_RANK_LEAF);
    return 0;
}

static void taken_lock_is_mine_until_dropped(void **state)
{
    (void)state;
    cca_lock_take(&low);
    cca_lock_take(&high);
    assert_true(cca_lock_is_mine(&low));
    assert_true(cca_lock_is_mine(&high));
    cca_lock_drop(&low);
    assert_true(cca_lock_is_mine(&high));
    cca_lock_drop(&high);
#ifndef NDEBUG
    assert_false(cca_lock_is_mine(&low));
    assert_false(cca_lock_is_mine(&high));
#else
    assert_true(cca_lock_is_mine(&low));
#endif
}

static void *try_low(void *arg)
{
    bool *was_mine = arg;
    bool got = cca_lock_try(&low);

    *was_mine = cca_lock_is_mine(&low);
    if (got) {
        cca_lock_drop(&low);
    }
    return got ? arg : NULL;
}

static void try_fails_while_another_thread_holds_it(void **state)
{
    pthread_t thread;
    bool was_mine;
    void *got;

    (void)state;
    cca_lock_take(&low);
    assert_int_equal(pthread_create(&thread, NULL, try_low, &was_mine), 0);
    pthread_join(thread, &got);
    assert_null(got);
#ifndef NDEBUG
    assert_false(was_mine);
#endif
    cca_lock_drop(&low);
    assert_int_equal(pthread_create(&thread, NULL, try_low, &was_mine), 0);
    pthread_join(thread, &got);
    assert_non_null(got);
    assert_true(was_mine);
}

static void try_may_go_against_the_order(void **state)
{
    (void)state;
    cca_lock_take(&high);
    assert_true(cca_lock_try(&low));
    assert_true(cca_lock_is_mine(&low));
    cca_lock_drop(&low);
    cca_lock_drop(&high);
}

enum { ADDERS = 4, ADDITIONS = 5000 };

static void *add(void *arg)
{
    long *sum = arg;

    for (int i = 0; i < ADDITIONS; i++) {
        cca_lock_take(&low);
        ++*sum;
        cca_lock_drop(&low);
    }
    return NULL;
}

static void lock_excludes_other_threads(void **state)
{
    pthread_t threads[ADDERS];
    long sum = 0;

    (void)state;
    for (int i = 0; i < ADDERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add, &sum), 0);
    }
    for (int i = 0; i < ADDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(sum, ADDERS * ADDITIONS);
}

static void heaps_and_shards_can_all_be_held(void **state)
{
    static struct cca_lock locks[128];

    (void)state;
    for (int i = 0; i < 128; i++) {
        cca_lock_init(&locks[i], i < 64 ? CCA_RANK_HEAP + i : CCA_RANK_PTRMAP + i - 64);
        cca_lock_take(&locks[i]);
    }
    for (int i = 0; i < 128; i++) {
        cca_lock_drop(&locks[i]);
    }
}

#ifndef NDEBUG

static int take_descending(void)
{
    cca_lock_take(&high);
    cca_lock_take(&low);
    return 0;
}

static int take_equal(void)
{
    struct cca_lock twin;

    cca_lock_init(&twin, CCA_RANK_HEAP);
    cca_lock_take(&low);
    cca_lock_take(&twin);
    return 0;
}

static int take_below_a_middle_one(void)
{
    struct cca_lock middle;

    cca_lock_init(&middle, CCA_RANK_PTRMAP);
    cca_lock_take(&low);
    cca_lock_take(&high);
    cca_lock_drop(&low);
    cca_lock_take(&middle);
    return 0;
}

static int drop_foreign(void)
{
    cca_lock_drop(&low);
    return 0;
}

static void assert_check_fails(int (*body)(void), const char *said)
{
    child_run(body, &result);
    assert_true(child_was_killed_by(&result, SIGABRT));
    assert_non_null(strstr(result.text, said));
}

static void debug_build_stops_at_a_lower_rank(void **state)
{
    (void)state;
    assert_check_fails(take_descending, "rank_is_above_held");
    assert_check_fails(take_below_a_middle_one, "rank_is_above_held");
}

static void debug_build_stops_at_an_equal_rank(void **state)
{
    (void)state;
    assert_check_fails(take_equal, "rank_is_above_held");
}

static void debug_build_stops_at_dropping_what_is_not_held(void **state)
{
    (void)state;
    assert_check_fails(drop_foreign, "check failed");
}

#endif

static atomic_bool is_over;
static atomic_long takes;

static void *take_without_a_pause(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        cca_lock_take(&low);
        atomic_fetch_add(&takes, 1);
        cca_lock_drop(&low);
    }
    return NULL;
}

static void threads_give_way_to_an_urgent_taker(void **state)
{
    enum { THREADS = 4, ROUNDS = 50, FEW = 5000 };
    pthread_t threads[THREADS];
    long passed = 0;

    (void)state;
    atomic_store(&is_over, false);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_without_a_pause, NULL), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        usleep(500);
        long before = atomic_load(&takes);
        cca_lock_take_urgent(&low);
        passed += atomic_load(&takes) - before;
        cca_lock_drop(&low);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(passed < (long)ROUNDS * FEW);
}

static int reset_and_take(void)
{
    cca_lock_reset(&low);
#ifndef NDEBUG
    CHILD_EXPECT(!cca_lock_is_mine(&low));
#endif
    cca_lock_take(&low);
    CHILD_EXPECT(cca_lock_is_mine(&low));
    cca_lock_drop(&low);
    return 0;
}

static void reset_frees_a_lock_held_at_fork(void **state)
{
    (void)state;
    cca_lock_take(&low);
    child_run(reset_and_take, &result);
    cca_lock_drop(&low);
    assert_true(child_exited_with(&result, 0));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(taken_lock_is_mine_until_dropped, setup),
    cmocka_unit_test_setup(try_fails_while_another_thread_holds_it, setup),
    cmocka_unit_test_setup(try_may_go_against_the_order, setup),
    cmocka_unit_test_setup(lock_excludes_other_threads, setup),
    cmocka_unit_test_setup(heaps_and_shards_can_all_be_held, setup),
#ifndef NDEBUG
    cmocka_unit_test_setup(debug_build_stops_at_a_lower_rank, setup),
    cmocka_unit_test_setup(debug_build_stops_at_an_equal_rank, setup),
    cmocka_unit_test_setup(debug_build_stops_at_dropping_what_is_not_held, setup),
#endif
    cmocka_unit_test_setup(threads_give_way_to_an_urgent_taker, setup),
    cmocka_unit_test_setup(reset_frees_a_lock_held_at_fork, setup),
};

CCA_TEST_MAIN(tests)
