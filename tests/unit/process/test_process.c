/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "observe/stack_table.h"
#include "process/state.h"
#include "scenario.h"

static int open_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) != -1;
    }
    return count;
}

static void load_only(void)
{
    int descriptors = open_descriptors(), threads = count_entries("/proc/self/task");

    errno = ENOTTY;
    cca_process_load();
    CHECK(errno == ENOTTY);
    CHECK(cca_process_is_active());
    CHECK(cca_process_allocator() == NULL);
    CHECK(open_descriptors() == descriptors);
    CHECK(count_entries("/proc/self/task") == threads);
}

static void load_leaves_no_thread_file_or_output(void **state)
{
    static const char *const variables[] = {"CCA_MODE=nonsense", "CCA_UNKNOWN=1", NULL};
    struct outcome outcome = run_scenario(load_only, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_string_equal(outcome.messages, "");
    assert_int_equal(outcome.files, 0);
}

static void load_off(void)
{
    int threads = count_entries("/proc/self/task");

    cca_process_load();
    CHECK(!cca_process_is_active());
    cca_process_context_is_up(13000, 13000);
    CHECK(cca_process_allocator() == NULL);
    CHECK(count_entries("/proc/self/task") == threads);
}

static void mode_off_does_nothing_at_all(void **state)
{
    static const char *const variables[] = {"CCA_DISABLE=1", "CCA_CONTEXT=nonsense", NULL};
    struct outcome outcome = run_scenario(load_off, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_string_equal(outcome.messages, "");
    assert_int_equal(outcome.files, 0);
}

static void context_twice(void)
{
    (void)load_with_context();
    cca_process_context_is_up(13000, 13000);
}

static void bad_variables_complain_once_at_the_first_context(void **state)
{
    static const char *const variables[] = {"CCA_MODE=nonsense", "CCA_STACK_DEPTH=1000",
                                            "CCA_NO_SUCH=1", "CCA_DUMP_ON=", NULL};
    struct outcome outcome = run_scenario(context_twice, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_int_equal(count_occurrences(outcome.messages, "\n"), 3);
    assert_non_null(strstr(outcome.messages, "cca: CCA_MODE 'nonsense': "));
    assert_non_null(strstr(outcome.messages, "using cache"));
    assert_int_equal(count_occurrences(outcome.messages, "CCA_STACK_DEPTH"), 1);
    assert_int_equal(count_occurrences(outcome.messages, "CCA_NO_SUCH"), 1);
}

static void a_long_bad_value_does_not_hide_the_remark(void **state)
{
    static char variable[600] = "CCA_MODE=";
    const char *const variables[] = {variable, "CCA_DUMP_ON=", NULL};
    struct outcome outcome;

    (void)state;
    memset(variable + 9, 'x', sizeof(variable) - 10);
    outcome = run_scenario(context_twice, variables);
    assert_int_equal(outcome.status, 0);
    assert_non_null(strstr(outcome.messages, "xxx...': "));
    assert_non_null(strstr(outcome.messages, "using cache\n"));
}

static void the_banner_is_for_level_info(void **state)
{
    static const char *const quiet[] = {"CCA_DUMP_ON=", NULL};
    static const char *const loud[] = {"CCA_DUMP_ON=", "CCA_LOG_LEVEL=info", NULL};

    (void)state;
    assert_string_equal(run_scenario(context_twice, quiet).messages, "");
    assert_int_equal(count_occurrences(run_scenario(context_twice, loud).messages, "driver 13.0"),
                     1);
}

static void *describe_here(void *user)
{
    struct cca_request *request = user;

    cca_process_describe(request, true, 0);
    return NULL;
}

static void describe_both(struct cca_request *alloc, struct cca_request *free_request)
{
    (void)load_with_context();
    cca_process_describe(alloc, false, 0);
    cca_process_describe(free_request, true, 0);
}

static void describe_default(void)
{
    struct cca_request alloc = {0}, free_request = {.stack = 7}, other = {0};
    pthread_t thread;
    int depth = 0;

    describe_both(&alloc, &free_request);
    CHECK(alloc.thread == (uint32_t)getpid());
    CHECK(alloc.stack != 0);
    CHECK(free_request.stack == 0);
    CHECK(cca_stack_table_get(&cca_process_state()->stacks, alloc.stack, &depth) != NULL);
    CHECK(depth > 2);
    CHECK(pthread_create(&thread, NULL, describe_here, &other) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(other.thread != 0 && other.thread != alloc.thread);
}

static void describe_none(void)
{
    struct cca_request alloc = {.stack = 7}, free_request = {.stack = 7};

    describe_both(&alloc, &free_request);
    CHECK(alloc.stack == 0 && free_request.stack == 0 && alloc.thread != 0);
}

static void describe_all(void)
{
    struct cca_request alloc = {0}, free_request = {0};

    describe_both(&alloc, &free_request);
    CHECK(alloc.stack != 0 && free_request.stack != 0);
}

static void stacks_follow_the_settings(void **state)
{
    static const char *const none[] = {"CCA_CONTEXT=none", NULL};
    static const char *const by_default[] = {"CCA_UNWINDER=auto", NULL};
    static const char *const all[] = {"CCA_CONTEXT=all", "CCA_UNWINDER=auto", NULL};
    static const char *const no_unwinder[] = {"CCA_UNWINDER=none", NULL};

    (void)state;
    assert_int_equal(run_scenario(describe_default, by_default).status, 0);
    assert_int_equal(run_scenario(describe_none, none).status, 0);
    assert_int_equal(run_scenario(describe_all, all).status, 0);
    assert_int_equal(run_scenario(describe_none, no_unwinder).status, 0);
}

static void describe_before_context(void)
{
    struct cca_request request = {0};

    cca_process_load();
    cca_process_describe(&request, false, 0);
    CHECK(request.stack == 0 && request.thread != 0);
}

static void describing_before_the_first_context_gives_no_stack(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(describe_before_context, NULL).status, 0);
}

static void *count_many(void *user)
{
    (void)user;
    for (int i = 0; i < 10000; i++) {
        cca_process_count(3, CCA_COVERAGE_SERVED);
    }
    return NULL;
}

static void count_in_threads(void)
{
    pthread_t threads[8];

    cca_process_load();
    for (int i = 0; i < 8; i++) {
        CHECK(pthread_create(&threads[i], NULL, count_many, NULL) == 0);
    }
    for (int i = 0; i < 8; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    cca_process_count(-1, CCA_COVERAGE_SEEN);
    cca_process_count(CCA_COVERAGE_ROWS_MAX, CCA_COVERAGE_SEEN);
    CHECK(cca_process_coverage(cca_process_state(), 3, CCA_COVERAGE_SERVED) == 80000);
    CHECK(cca_process_coverage(cca_process_state(), 3, CCA_COVERAGE_SEEN) == 0);
}

static void coverage_adds_up_over_threads(void **state)
{
    (void)state;
    assert_int_equal(run_scenario(count_in_threads, NULL).status, 0);
}

static void stop_twice(void)
{
    (void)load_with_context();
    cca_process_stop_caching("cudaIpcGetMemHandle");
    cca_process_stop_caching("cudaStreamBeginCapture");
}

static void the_end_of_caching_is_said_once(void **state)
{
    static const char *const variables[] = {"CCA_DUMP_ON=", NULL};
    struct outcome outcome = run_scenario(stop_twice, variables);

    (void)state;
    assert_int_equal(outcome.status, 0);
    assert_string_equal(outcome.messages,
                        "cca: caching ends: the program called cudaIpcGetMemHandle, which is not "
                        "handled yet; live memory stays valid\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(load_leaves_no_thread_file_or_output),
    cmocka_unit_test(mode_off_does_nothing_at_all),
    cmocka_unit_test(bad_variables_complain_once_at_the_first_context),
    cmocka_unit_test(a_long_bad_value_does_not_hide_the_remark),
    cmocka_unit_test(the_banner_is_for_level_info),
    cmocka_unit_test(stacks_follow_the_settings),
    cmocka_unit_test(describing_before_the_first_context_gives_no_stack),
    cmocka_unit_test(coverage_adds_up_over_threads),
    cmocka_unit_test(the_end_of_caching_is_said_once),
};

CCA_TEST_MAIN(tests)
