/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/write.h"
#include "unit/base/child.h"

static struct child_result result;

static bool is_pending(int signal)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, signal) == 1;
}

static bool is_blocked(int signal)
{
    sigset_t mask;

    sigprocmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, signal) == 1;
}

static int closed_pipe(void)
{
    int ends[2];

    signal(SIGPIPE, SIG_DFL);
    if (pipe(ends) != 0) {
        return -1;
    }
    close(ends[0]);
    return ends[1];
}

/* A file that may grow to 8 bytes. */
static int limited_file(void)
{
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){8, 8});
    return memfd_create("limited", 0);
}

static int write_to_a_closed_pipe(void)
{
    int fd = closed_pipe();

    errno = 17;
    CHILD_EXPECT(cca_write_fully(fd, "hello", 5) == -EPIPE);
    CHILD_EXPECT(errno == 17);
    CHILD_EXPECT(!is_pending(SIGPIPE) && !is_blocked(SIGPIPE) && !is_blocked(SIGXFSZ));
    return 0;
}

static void no_reader_is_an_error_and_no_signal(void **state)
{
    (void)state;
    child_run(write_to_a_closed_pipe, &result);
    assert_true(child_exited_with(&result, 0));
}

static int write_past_the_limit(void)
{
    int fd = limited_file();

    CHILD_EXPECT(cca_write_fully(fd, "0123456", 7) == 0);
    CHILD_EXPECT(cca_write_fully(fd, "789", 3) == -EFBIG);
    CHILD_EXPECT(lseek(fd, 0, SEEK_END) == 8);
    CHILD_EXPECT(!is_pending(SIGXFSZ) && !is_blocked(SIGXFSZ));
    /* The program's own write still ends it. */
    CHILD_EXPECT(write(fd, "x", 1) == 1);
    return 0;
}

static void a_file_too_large_is_an_error_and_no_signal(void **state)
{
    (void)state;
    child_run(write_past_the_limit, &result);
    assert_true(child_was_killed_by(&result, SIGXFSZ));
}

static int write_with_pending_signals(void)
{
    int fd = limited_file();
    sigset_t both;

    sigemptyset(&both);
    sigaddset(&both, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &both, NULL);
    raise(SIGXFSZ);
    CHILD_EXPECT(cca_write_fully(fd, "0123456789", 10) == -EFBIG);
    CHILD_EXPECT(is_pending(SIGXFSZ) && is_blocked(SIGXFSZ));
    return 0;
}

static void signals_of_the_program_stay_pending(void **state)
{
    (void)state;
    child_run(write_with_pending_signals, &result);
    assert_true(child_exited_with(&result, 0));
}

static void room_in_a_pipe_is_seen_and_waited_for(void **state)
{
    char piece[PIPE_BUF] = {0};
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    while (cca_write_has_room(ends[1], 0)) {
        assert_int_equal(cca_write_fully(ends[1], piece, sizeof(piece)), 0);
    }
    uint64_t began_ns = cca_clock_ns();
    assert_false(cca_write_has_room(ends[1], 30));
    assert_true(cca_clock_ns() - began_ns >= 29000000);
    assert_int_equal(read(ends[0], piece, sizeof(piece)), sizeof(piece));
    assert_true(cca_write_has_room(ends[1], 0));
    close(ends[0]);
    assert_true(cca_write_has_room(ends[1], 0));
    close(ends[1]);
}

static void *be_cancelled(void *arg)
{
    pthread_cancel(pthread_self());
    *(int *)arg = cca_write_fully(-1, "x", 1);
    cca_clock_sleep_us(1);
    *(int *)arg = cca_write_has_room(STDERR_FILENO, 0) ? 1 : 2;
    pthread_testcancel();
    *(int *)arg = 3;
    return NULL;
}

static void a_cancelled_thread_does_not_end_here(void **state)
{
    pthread_t thread;
    void *answer;
    int reached = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, be_cancelled, &reached), 0);
    assert_int_equal(pthread_join(thread, &answer), 0);
    assert_ptr_equal(answer, PTHREAD_CANCELED);
    assert_in_range(reached, 1, 2);
}

static void a_bad_descriptor_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(cca_write_fully(-1, "x", 1), -EBADF);
    assert_int_equal(cca_write_fully(-1, "x", 0), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_reader_is_an_error_and_no_signal),
    cmocka_unit_test(a_file_too_large_is_an_error_and_no_signal),
    cmocka_unit_test(signals_of_the_program_stay_pending),
    cmocka_unit_test(room_in_a_pipe_is_seen_and_waited_for),
    cmocka_unit_test(a_cancelled_thread_does_not_end_here),
    cmocka_unit_test(a_bad_descriptor_is_an_error),
};

CCA_TEST_MAIN(tests)
