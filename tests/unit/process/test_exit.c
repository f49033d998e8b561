/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/reentry.h"
#include "process/dump.h"
#include "alloc/allocator_internal.h"
#include "scenario.h"

static void use_a_little(void)
{
    struct cca_heap *heap = load_with_context();
    uint64_t first = hook_alloc(heap, 4096);

    hook_free(first);
    CHECK(hook_alloc(heap, 4096) == first);
}

static void leave(void)
{
    use_a_little();
    errno = ENOTTY;
    cca_process_unload();
    CHECK(errno == ENOTTY);
    cca_process_unload();
}

static void exit_writes_a_snapshot_and_a_line_per_device(void **state)
{
    struct outcome outcome = run_scenario(leave, NULL);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 1);
    assert_int_equal(count_occurrences(outcome.messages, "\n"), 3);
    assert_non_null(strstr(outcome.messages, "cca: device 0: leaked 4.00 KiB in 1 block, "));
    assert_non_null(strstr(outcome.messages,
                           "cca: device 0: peak 4.00 KiB allocated, 2.00 MiB reserved; 50.0 % of 2 "
                           "allocations from the cache, 1 driver call saved (about "));
    assert_non_null(strstr(outcome.messages, "0 retries, 0 OOMs, 1 block leaked (4.00 KiB)\n"));
    assert_non_null(strstr(outcome.messages, "cca: snapshot /tmp/cca-test-"));
}

static void count_only(void)
{
    struct cca_heap *heap = load_with_context();

    hook_free(hook_alloc(heap, 4096));
    CHECK(hook_alloc(heap, 4096) != 0);
    cca_process_stop_caching("cudaIpcGetMemHandle");
}

static void counting_says_what_was_passed(void **state)
{
    static const char *const variables[] = {"CCA_MODE=count", "CCA_DUMP_ON=", NULL};
    struct outcome outcome = run_scenario(count_only, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(count_occurrences(outcome.messages, "\n"), 2);
    assert_non_null(strstr(outcome.messages, "; 2 allocations, all passed to the driver; "));
}

static void silence_is_possible(void **state)
{
    static const char *const variables[] = {"CCA_SUMMARY=0", "CCA_DUMP_ON=none", NULL};
    struct outcome outcome = run_scenario(leave, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 0);
    assert_string_equal(outcome.messages, "");
}

static void load_and_leave(void)
{
    cca_process_load();
    cca_process_unload();
}

static void a_process_without_a_context_leaves_nothing(void **state)
{
    struct outcome outcome = run_scenario(load_and_leave, NULL);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 0);
    assert_string_equal(outcome.messages, "");
}

static void dump_several(void)
{
    struct cca_process *process;

    use_a_little();
    process = cca_process_state();
    for (int i = 0; i < 3; i++) {
        CHECK(cca_dump_claim(process, 1000));
        CHECK(cca_dump_write(process, "api", NULL) == 0);
        CHECK(cca_dump_write(process, "api", "same") == 0);
        cca_dump_release(process);
    }
    CHECK(count_files() == 6);
    CHECK(access("same.pickle", R_OK) == 0);
    CHECK(access("same-1.pickle", R_OK) == 0);
    CHECK(access("same-2.pickle", R_OK) == 0);
}

static void names_are_unique(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};

    (void)state;
    assert_int_equal(run_scenario(dump_several, variables).status, 0);
}

static void every_format_is_written(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_FORMAT=pickle,json,text", NULL};
    struct outcome outcome = run_scenario(use_a_little, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 3);
}

static void change_folder(void)
{
    use_a_little();
    CHECK(chdir("/") == 0);
}

static void relative_names_start_where_the_program_started(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(change_folder, NULL).files, 1);
}

static void run_out(void)
{
    struct cca_heap *heap = load_with_context();

    CHECK(hook_alloc(heap, 4096) != 0);
    fail_device_allocations();
    for (int i = 0; i < 3; i++) {
        CHECK(hook_alloc(heap, 64 << 20) == 0);
    }
}

static void out_of_memory_writes_one_snapshot_even_just_before_exit(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=oom", "CCA_DUMP_FILE=%c",
                                            "CCA_OOM_WAIT_MS=0", NULL};
    static const char *const never[] = {"CCA_DUMP_ON=signal", "CCA_OOM_WAIT_MS=0", NULL};
    struct outcome outcome = run_scenario(run_out, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 1);
    assert_string_equal(outcome.first_file, "oom.pickle");
    assert_non_null(strstr(outcome.messages, "3 OOMs"));
    assert_int_equal(run_scenario(run_out, never).files, 0);
}

static void leave_inside(void)
{
    use_a_little();
    /* As in a signal handler that calls exit and interrupted a hook. */
    CHECK(cca_reentry_enter());
    cca_process_unload();
}

static void an_exit_inside_a_hook_does_not_hang(void **state)
{
    struct outcome outcome = run_scenario(leave_inside, NULL);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 0);
    assert_int_equal(count_occurrences(outcome.messages, "no snapshot at exit"), 1);
}

static void *allocate_for_ever(void *heap)
{
    for (;;) {
        hook_free(hook_alloc(heap, 4096));
        sched_yield();
    }
    return NULL;
}

static void leave_among_threads(void)
{
    struct cca_heap *heap = load_with_context();
    pthread_t thread;

    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&thread, NULL, allocate_for_ever, heap) == 0);
    }
    raise(SIGUSR1);
    cca_process_unload();
    CHECK(hook_alloc(heap, 512) != 0);
}

static void other_threads_may_allocate_during_exit(void **state)
{
    static const char *const variables[] = {"CCA_MAX_ENTRIES=1000", NULL};

    (void)state;
    for (int i = 0; i < 5; i++) {
        struct outcome outcome = run_scenario(leave_among_threads, variables);

        assert_int_equal(outcome.status, 0);
        assert_in_range(outcome.files, 1, 2);
        assert_int_equal(outcome.hidden, 0);
    }
}

static void close_and_signal(void)
{
    struct stat before, after;

    use_a_little();
    for (int fd = 0; fd < 64; fd++) {
        close(fd);
    }
    CHECK(creat("first", 0600) == 0);
    CHECK(creat("second", 0600) == 1);
    CHECK(creat("third", 0600) == 2);
    raise(SIGUSR1);
    CHECK(wait_for_files(4));
    cca_process_unload();
    CHECK(fstat(0, &before) == 0 && before.st_size == 0);
    CHECK(fstat(1, &before) == 0 && before.st_size == 0);
    if (fstat(2, &after) != 0 || after.st_size != 0) {
        _exit(1);
    }
    for (int fd = 3; fd < 64; fd++) {
        if (close(fd) == 0) {
            _exit(fd);
        }
    }
}

static void reused_descriptors_hold_only_what_the_program_wrote(void **state)
{
    struct outcome outcome = run_scenario(close_and_signal, NULL);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_string_equal(outcome.messages, "");
    assert_in_range(outcome.files, 4, 5);
}

static sem_t is_held, may_drop;

static void *hold(void *arg)
{
    struct cca_heap *heap = arg;

    cca_lock_take(&heap->lock);
    sem_post(&is_held);
    sem_wait(&may_drop);
    cca_lock_drop(&heap->lock);
    return NULL;
}

/* As when a debugger has stopped the thread that holds it. */
static void dump_while_a_heap_is_held(void)
{
    pthread_t holder;
    struct cca_heap *heap = load_with_context();
    struct cca_process *process = cca_process_state();
    struct cca_dump_job *job;

    (void)hook_alloc(heap, 4096);
    CHECK(sem_init(&is_held, 0, 0) == 0 && sem_init(&may_drop, 0, 0) == 0);
    CHECK(pthread_create(&holder, NULL, hold, heap) == 0);
    sem_wait(&is_held);
    job = cca_dump_copy(process, "api", 20);
    CHECK(job != NULL);
    CHECK(cca_dump_model(job)->is_partial && cca_dump_model(job)->device_count == 1);
    CHECK(cca_dump_model(job)->devices[0].is_partial && cca_dump_model(job)->segment_count == 0);
    CHECK(cca_dump_claim(process, 0));
    CHECK(cca_dump_finish(process, job, NULL) == 0);
    cca_dump_release(process);
    sem_post(&may_drop);
    pthread_join(holder, NULL);
    job = cca_dump_copy(process, "api", 20);
    CHECK(job != NULL && !cca_dump_model(job)->is_partial);
    cca_dump_discard(job);
}

static void a_heap_that_is_held_is_left_out(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=none", "CCA_SUMMARY=0", NULL};
    struct outcome outcome = run_scenario(dump_while_a_heap_is_held, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(outcome.files, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_heap_that_is_held_is_left_out),
    cmocka_unit_test(exit_writes_a_snapshot_and_a_line_per_device),
    cmocka_unit_test(counting_says_what_was_passed),
    cmocka_unit_test(silence_is_possible),
    cmocka_unit_test(a_process_without_a_context_leaves_nothing),
    cmocka_unit_test(names_are_unique),
    cmocka_unit_test(every_format_is_written),
    cmocka_unit_test(relative_names_start_where_the_program_started),
    cmocka_unit_test(out_of_memory_writes_one_snapshot_even_just_before_exit),
    cmocka_unit_test(an_exit_inside_a_hook_does_not_hang),
    cmocka_unit_test(other_threads_may_allocate_during_exit),
    cmocka_unit_test(reused_descriptors_hold_only_what_the_program_wrote),
};

CCA_TEST_MAIN(tests)
