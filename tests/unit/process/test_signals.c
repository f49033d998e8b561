/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "process/state.h"
#include "scenario.h"

static const char *const only_signal[] = {"CCA_DUMP_ON=signal", NULL};

static volatile sig_atomic_t programs_handler_ran;

static void programs_handler(int number)
{
    (void)number;
    programs_handler_ran = 1;
}

static void *handler_of(int number)
{
    struct sigaction action;

    CHECK(sigaction(number, NULL, &action) == 0);
    return (void *)(uintptr_t)action.sa_handler;
}

static void signal_writes(void)
{
    CHECK(handler_of(SIGUSR1) == (void *)(uintptr_t)SIG_DFL);
    (void)load_with_context();
    errno = ENOTTY;
    CHECK(raise(SIGUSR1) == 0);
    CHECK(errno == ENOTTY);
    CHECK(wait_for_files(1));
}

static void a_signal_writes_one_snapshot(void **state)
{
    struct outcome outcome = run_scenario(signal_writes, only_signal);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 1);
    assert_int_equal(outcome.hidden, 0);
    assert_non_null(strstr(outcome.first_file, ".pickle"));
}

static void handler_before(void)
{
    signal(SIGUSR1, programs_handler);
    (void)load_with_context();
    CHECK(handler_of(SIGUSR1) == (void *)(uintptr_t)programs_handler);
    raise(SIGUSR1);
    CHECK(programs_handler_ran);
}

static void ignored_before(void)
{
    signal(SIGUSR1, SIG_IGN);
    (void)load_with_context();
    CHECK(handler_of(SIGUSR1) == (void *)(uintptr_t)SIG_IGN);
}

static void only_the_default_action_is_replaced(void **state)
{
    struct outcome outcome = run_scenario(handler_before, only_signal);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 0);
    assert_string_equal(outcome.messages, "");
    assert_int_equal(run_scenario(ignored_before, only_signal).status, 0);
}

static void handler_after(void)
{
    (void)load_with_context();
    signal(SIGUSR1, programs_handler);
    raise(SIGUSR1);
    CHECK(programs_handler_ran);
}

static void a_later_handler_of_the_program_wins(void **state)
{
    struct outcome outcome = run_scenario(handler_after, only_signal);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 0);
    assert_int_equal(count_occurrences(outcome.messages, "replaced the handler"), 1);
}

static void no_handler_wanted(void)
{
    (void)load_with_context();
    CHECK(handler_of(SIGUSR1) == (void *)(uintptr_t)SIG_DFL);
    CHECK(handler_of(SIGUSR2) == (void *)(uintptr_t)SIG_DFL);
}

static void signal_none_installs_nothing(void **state)
{
    static const char *const by_signal[] = {"CCA_DUMP_SIGNAL=none", NULL};
    static const char *const by_cause[] = {"CCA_DUMP_ON=exit", NULL};

    (void)state;
    assert_int_equal(run_scenario(no_handler_wanted, by_signal).status, 0);
    assert_int_equal(run_scenario(no_handler_wanted, by_cause).status, 0);
}

static void other_signal(void)
{
    (void)load_with_context();
    CHECK(handler_of(SIGUSR1) == (void *)(uintptr_t)SIG_DFL);
    raise(SIGUSR2);
    CHECK(wait_for_files(1));
}

static void the_signal_can_be_chosen(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_SIGNAL=USR2", "CCA_DUMP_ON=signal", NULL};

    (void)state;
    assert_int_equal(run_scenario(other_signal, variables).status, 0);
}

static void *signal_and_write(void *user)
{
    int *ends = user;

    for (int i = 0; i < 20; i++) {
        usleep(500);
        CHECK(kill(getpid(), SIGUSR1) == 0);
    }
    CHECK(write(ends[1], "x", 1) == 1);
    return NULL;
}

static void interrupted_read(void)
{
    pthread_t thread;
    sigset_t usr1;
    int ends[2];
    char byte;

    (void)load_with_context();
    CHECK(pipe(ends) == 0);
    /* Only this thread takes the signal. */
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    CHECK(pthread_create(&thread, NULL, signal_and_write, ends) == 0);
    pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
    CHECK(read(ends[0], &byte, 1) == 1);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void system_calls_of_the_program_are_restarted(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(interrupted_read, only_signal).status, 0);
}

static void hundred_signals(void)
{
    struct cca_heap *heap = load_with_context();
    uint64_t addr = hook_alloc(heap, 4096);

    for (int i = 0; i < 100; i++) {
        raise(SIGUSR1);
    }
    CHECK(wait_for_files(1));
    hook_free(addr);
}

static void a_hundred_signals_give_at_least_one_snapshot(void **state)
{
    struct outcome outcome = run_scenario(hundred_signals, only_signal);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_in_range(outcome.files, 1, 100);
}

static atomic_bool threads_stop;

static void *allocate_steadily(void *heap)
{
    while (!atomic_load(&threads_stop)) {
        uint64_t addrs[16];

        for (size_t i = 0; i < 16; i++) {
            addrs[i] = hook_alloc(heap, 512 << (i % 12));
        }
        for (size_t i = 0; i < 16; i++) {
            hook_free(addrs[i]);
        }
        sched_yield();
    }
    return NULL;
}

static void signals_during_allocation(void)
{
    struct cca_heap *heap = load_with_context();
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, allocate_steadily, heap) == 0);
    }
    for (int i = 1; i <= 5; i++) {
        kill(getpid(), SIGUSR1);
        CHECK(wait_for_files(i));
    }
    atomic_store(&threads_stop, true);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void snapshots_are_written_during_heavy_allocation(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=signal", "CCA_MAX_ENTRIES=1000", NULL};
    struct outcome outcome = run_scenario(signals_during_allocation, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_in_range(outcome.files, 5, 6);
}

/* Whether the dump thread was found, and whether it blocks all that can be blocked. */
static void find_dump_thread(bool *is_found, bool *blocks_all)
{
    *is_found = *blocks_all = false;
    for (int tid = getpid() + 1; tid < getpid() + 1000 && !*is_found; tid++) {
        char path[64], line[256];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
        file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
            unsigned long long mask;

            if (strcmp(line, "Name:\tcca-dump\n") == 0) {
                *is_found = true;
            }
            if (sscanf(line, "SigBlk: %llx", &mask) == 1) {
                /* SIGKILL, SIGSTOP, and the two that the C library keeps for itself. */
                *blocks_all = (~mask & ~(1ull << 8 | 1ull << 18 | 3ull << 31)) == 0;
            }
        }
        if (file != NULL) {
            fclose(file);
        }
    }
}

static void inspect_thread(void)
{
    bool is_found = false, blocks_all = false;
    sigset_t mask;

    (void)load_with_context();
    for (int i = 0; i < 5000 && !is_found; i++) {
        find_dump_thread(&is_found, &blocks_all);
        usleep(1000);
    }
    CHECK(is_found);
    CHECK(blocks_all);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    CHECK(sigismember(&mask, SIGUSR1) == 0 && sigismember(&mask, SIGTERM) == 0);
}

static void the_dump_thread_blocks_every_signal(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(inspect_thread, only_signal).status, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_signal_writes_one_snapshot),
    cmocka_unit_test(only_the_default_action_is_replaced),
    cmocka_unit_test(a_later_handler_of_the_program_wins),
    cmocka_unit_test(signal_none_installs_nothing),
    cmocka_unit_test(the_signal_can_be_chosen),
    cmocka_unit_test(system_calls_of_the_program_are_restarted),
    cmocka_unit_test(a_hundred_signals_give_at_least_one_snapshot),
    cmocka_unit_test(snapshots_are_written_during_heavy_allocation),
    cmocka_unit_test(the_dump_thread_blocks_every_signal),
};

CCA_TEST_MAIN(tests)
