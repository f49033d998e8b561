/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "base/clock.h"

static uint64_t fake_ns;

static uint64_t fake_now(void)
{
    return fake_ns;
}

static void fake_sleep(uint64_t us)
{
    fake_ns += us * 1000;
}

static const struct cca_clock_source fake = {fake_now, fake_sleep};

static int put_real_clock_back(void **state)
{
    (void)state;
    cca_clock_replace(NULL);
    return 0;
}

static void clock_never_goes_back(void **state)
{
    uint64_t last = cca_clock_ns();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = cca_clock_ns();

        assert_true(now >= last);
        last = now;
    }
}

static void wall_time_is_unix_time(void **state)
{
    int64_t before = (int64_t)time(NULL);
    int64_t wall_us = cca_clock_wall_us(cca_clock_ns());

    (void)state;
    assert_true(wall_us / 1000000 >= before - 1);
    assert_true(wall_us / 1000000 <= (int64_t)time(NULL) + 1);
}

static void wall_time_keeps_distances(void **state)
{
    uint64_t now = cca_clock_ns();
    int64_t wall_us = cca_clock_wall_us(now);

    (void)state;
    assert_int_equal(cca_clock_wall_us(now), wall_us);
    assert_int_equal(cca_clock_wall_us(now + 5000000) - wall_us, 5000);
}

static void sleep_lasts_at_least_as_long_as_asked(void **state)
{
    uint64_t before = cca_clock_ns();

    (void)state;
    errno = 17;
    cca_clock_sleep_us(2000);
    assert_int_equal(errno, 17);
    assert_true(cca_clock_ns() - before >= 2000000);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
    (void)number;
    alarms++;
}

static void interrupted_sleep_goes_on(void **state)
{
    const struct itimerval every_ms = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = count_alarm}, old;
    uint64_t before = cca_clock_ns();

    (void)state;
    sigaction(SIGALRM, &action, &old);
    setitimer(ITIMER_REAL, &every_ms, NULL);
    errno = 17;
    cca_clock_sleep_us(50000);
    assert_int_equal(errno, 17);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_true(alarms > 0);
    assert_true(cca_clock_ns() - before >= 50000000);
}

static void replaced_clock_is_the_only_time(void **state)
{
    (void)state;
    fake_ns = 1000;
    cca_clock_replace(&fake);
    assert_int_equal(cca_clock_ns(), 1000);
    cca_clock_sleep_us(UINT64_C(3600000000));
    assert_int_equal(cca_clock_ns(), UINT64_C(3600000001000));
    assert_int_equal(cca_clock_wall_us(7000), 7);
    cca_clock_replace(NULL);
    assert_true(cca_clock_wall_us(cca_clock_ns()) > INT64_C(1000000000) * 1000000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(clock_never_goes_back),
    cmocka_unit_test(wall_time_is_unix_time),
    cmocka_unit_test(wall_time_keeps_distances),
    cmocka_unit_test(sleep_lasts_at_least_as_long_as_asked),
    cmocka_unit_test(interrupted_sleep_goes_on),
    cmocka_unit_test_teardown(replaced_clock_is_the_only_time, put_real_clock_back),
};

CCA_TEST_MAIN(tests)
