/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loader_gate.h"
#include "base/reentry.h"
#include "process/state.h"
#include "scenario.h"

static void fork_after_context(void)
{
    struct cca_heap *heap = load_with_context();
    uint64_t addr = hook_alloc(heap, 4096);
    int pid = fork();

    if (pid == 0) {
        struct cca_request request = {0};
        struct sigaction action;

        CHECK(!cca_process_is_active());
        CHECK(cca_process_allocator() == NULL);
        cca_process_describe(&request, false, 0);
        CHECK(request.stack == 0 && request.thread == (uint32_t)getpid());
        CHECK(sigaction(SIGUSR1, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
        cca_process_context_is_up(13000, 13000);
        CHECK(!cca_process_is_active());
        CHECK(count_entries("/proc/self/task") == 1);
        cca_process_unload();
        CHECK(count_files() == 0);
        _exit(7);
    }
    CHECK(wait_for_child(pid) == 7);
    CHECK(cca_process_is_active());
    CHECK(addr != 0 && hook_alloc(heap, 4096) != 0);
}

static void a_child_of_a_process_with_a_context_is_quiet(void **state)
{
    struct outcome outcome = run_scenario(fork_after_context, NULL);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 1); /* the parent's own, at exit */
}

static void fork_before_context(void)
{
    char own[64], name[128];
    int pid;

    cca_process_load();
    pid = fork();
    if (pid == 0) {
        CHECK(cca_process_is_active());
        cca_process_context_is_up(13000, 13000);
        CHECK(cca_process_allocator() != NULL);
        raise(SIGUSR1);
        CHECK(wait_for_files(1));
        snprintf(own, sizeof(own), "-%d-", getpid());
        gethostname(name, sizeof(name));
        snprintf(name + strlen(name), 40, "-%d-0.pickle", getpid());
        cca_process_unload();
        _exit(strstr(name, own) != NULL ? 0 : 1);
    }
    CHECK(wait_for_child(pid) == 0);
    snprintf(own, sizeof(own), "-%d-", pid);
    CHECK(cca_process_allocator() == NULL);
}

static void a_child_of_a_process_without_one_starts_on_its_own(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=signal,exit", "CCA_MODE=nonsense", NULL};
    struct outcome outcome = run_scenario(fork_before_context, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 2);
    assert_int_equal(count_occurrences(outcome.messages, "CCA_MODE"), 1);
}

static sem_t accounts_locked, accounts_wanted;

static void *hold_accounts(void *user)
{
    struct cca_unmanaged *unmanaged = &cca_process_state()->unmanaged;

    (void)user;
    cca_ptrmap_lock_all(&unmanaged->live);
    cca_lock_take(&unmanaged->lock);
    sem_post(&accounts_locked);
    sem_wait(&accounts_wanted);
    cca_lock_drop(&unmanaged->lock);
    cca_ptrmap_unlock_all(&unmanaged->live);
    return NULL;
}

static void fork_during_accounting(void)
{
    struct cca_unmanaged_row rows[2];
    pthread_t thread;
    int pid;

    cca_process_load();
    cca_process_unmanaged_add(CCA_UNMANAGED_PINNED, 0x1000, CCA_UNMANAGED_HOST, "a", "lib", 16);
    sem_init(&accounts_locked, 0, 0);
    sem_init(&accounts_wanted, 0, 0);
    CHECK(pthread_create(&thread, NULL, hold_accounts, NULL) == 0);
    sem_wait(&accounts_locked);
    pid = fork();
    if (pid == 0) {
        alarm(20);
        CHECK(cca_process_is_active());
        cca_process_unmanaged_remove(CCA_UNMANAGED_PINNED, 0x1000);
        CHECK(cca_unmanaged_read(&cca_process_state()->unmanaged, rows, 2) == 0);
        cca_process_unmanaged_add(CCA_UNMANAGED_PINNED, 0x2000, CCA_UNMANAGED_HOST, "b", "lib", 8);
        CHECK(cca_unmanaged_read(&cca_process_state()->unmanaged, rows, 2) == 1);
        CHECK(rows[0].bytes == 8);
        _exit(7);
    }
    sem_post(&accounts_wanted);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(wait_for_child(pid) == 7);
    CHECK(cca_unmanaged_read(&cca_process_state()->unmanaged, rows, 2) == 1);
    CHECK(rows[0].bytes == 16);
}

static void a_child_that_starts_on_its_own_has_accounts_of_its_own(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};

    (void)state;
    assert_int_equal(run_scenario(fork_during_accounting, variables).status, 0);
}

static atomic_bool threads_stop;

static void *allocate_steadily(void *heap)
{
    while (!atomic_load(&threads_stop)) {
        uint64_t small = hook_alloc(heap, 4096), large = hook_alloc(heap, 3 << 20);

        hook_free(large);
        hook_free(small);
        sched_yield();
    }
    return NULL;
}

static void fork_often(void)
{
    struct cca_heap *heap = load_with_context();
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, allocate_steadily, heap) == 0);
    }
    for (int i = 0; i < 200; i++) {
        int pid = fork();

        if (pid == 0) {
            alarm(20);
            CHECK(!cca_process_is_active());
            CHECK(cca_lock_try(&cca_process_state()->lock));
            CHECK(cca_lock_try(&cca_process_state()->dumps.lock));
            cca_lock_drop(&cca_process_state()->dumps.lock);
            cca_lock_drop(&cca_process_state()->lock);
            cca_process_unload();
            _exit(7);
        }
        CHECK(pid > 0);
        CHECK(wait_for_child(pid) == 7);
        if (i % 50 == 0) {
            raise(SIGUSR1);
        }
    }
    atomic_store(&threads_stop, true);
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void forks_among_threads_that_allocate_never_hang(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=signal", "CCA_MAX_ENTRIES=1000", NULL};

    (void)state;
    assert_int_equal(run_scenario(fork_often, variables).status, 0);
}

static sem_t walk_started;
static atomic_bool walk_ended;

static void *walk_slowly(void *user)
{
    (void)user;
    CHECK(cca_loader_gate_enter());
    sem_post(&walk_started);
    cca_clock_sleep_us(50000);
    atomic_store(&walk_ended, true);
    cca_loader_gate_leave();
    return NULL;
}

static void fork_during_walk(void)
{
    pthread_t thread;
    int pid;

    (void)load_with_context();
    sem_init(&walk_started, 0, 0);
    CHECK(pthread_create(&thread, NULL, walk_slowly, NULL) == 0);
    sem_wait(&walk_started);
    pid = fork();
    if (pid == 0) {
        CHECK(atomic_load(&walk_ended));
        CHECK(cca_loader_gate_enter());
        cca_loader_gate_leave();
        _exit(7);
    }
    CHECK(cca_loader_gate_enter());
    cca_loader_gate_leave();
    CHECK(wait_for_child(pid) == 7);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void a_fork_waits_for_walks_of_the_loaders_list(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};

    (void)state;
    assert_int_equal(run_scenario(fork_during_walk, variables).status, 0);
}

static void fork_inside(void)
{
    struct cca_process *process;
    int pid;

    (void)load_with_context();
    process = cca_process_state();
    /* As in a signal handler of the program that interrupted a hook. */
    CHECK(cca_reentry_enter());
    cca_lock_take(&process->lock);
    pid = fork();
    if (pid == 0) {
        CHECK(!cca_process_is_active());
        cca_lock_drop(&process->lock);
        cca_reentry_leave();
        cca_process_unload();
        _exit(7);
    }
    cca_lock_drop(&process->lock);
    cca_reentry_leave();
    CHECK(wait_for_child(pid) == 7);
}

static void a_fork_under_our_own_lock_goes_through(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};

    (void)state;
    assert_int_equal(run_scenario(fork_inside, variables).status, 0);
}

static void vfork_and_leave(void)
{
    struct cca_heap *heap = load_with_context();
    pid_t pid;

    CHECK(hook_alloc(heap, 512) != 0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    pid = vfork();
#pragma GCC diagnostic pop
    if (pid == 0) {
        cca_process_unload();
        _exit(3);
    }
    CHECK(wait_for_child(pid) == 3);
    CHECK(count_files() == 0);
    CHECK(cca_process_is_active());
}

static void a_vfork_child_that_exits_leaves_the_parent_alone(void **state)
{
    struct outcome outcome = run_scenario(vfork_and_leave, NULL);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_child_of_a_process_with_a_context_is_quiet),
    cmocka_unit_test(a_child_of_a_process_without_one_starts_on_its_own),
    cmocka_unit_test(a_child_that_starts_on_its_own_has_accounts_of_its_own),
    cmocka_unit_test(forks_among_threads_that_allocate_never_hang),
    cmocka_unit_test(a_fork_waits_for_walks_of_the_loaders_list),
    cmocka_unit_test(a_fork_under_our_own_lock_goes_through),
    cmocka_unit_test(a_vfork_child_that_exits_leaves_the_parent_alone),
};

CCA_TEST_MAIN(tests)
