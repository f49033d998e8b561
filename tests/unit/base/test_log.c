/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/log.h"
#include "unit/base/child.h"

/* The log is process-wide state: every test runs in a child of its own. */
static struct child_result result;

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

static int speak_before_init(void)
{
    int said = 0;

    CHILD_EXPECT(!cca_log_stderr_is_ours());
    cca_log(CCA_LOG_ERROR, "a");
    cca_log_once(&said, CCA_LOG_ERROR, "b");
    cca_log_text("c\n");
    return 0;
}

static void nothing_is_said_before_init(void **state)
{
    (void)state;
    child_run(speak_before_init, &result);
    assert_true(child_exited_with(&result, 0));
    assert_string_equal(result.text, "");
}

static int speak(void)
{
    cca_log_init();
    CHILD_EXPECT(cca_log_stderr_is_ours());
    cca_log(CCA_LOG_WARN, "%s %d of %zu", "CCA_MODE", -3, (size_t)4);
    cca_log(CCA_LOG_ERROR, "two\nlines\r%s", "\n");
    return 0;
}

static void message_is_one_line_with_the_prefix(void **state)
{
    (void)state;
    child_run(speak, &result);
    assert_true(child_exited_with(&result, 0));
    assert_string_equal(result.text, "cca: CCA_MODE -3 of 4\ncca: two lines  \n");
}

static int speak_at_every_level(void)
{
    cca_log_init();
    for (int round = 0; round < 3; round++) {
        static const enum cca_log_level levels[] = {CCA_LOG_WARN, CCA_LOG_ERROR, CCA_LOG_DEBUG};

        if (round > 0) {
            cca_log_set_level(levels[round]);
        }
        for (int level = CCA_LOG_ERROR; level <= CCA_LOG_DEBUG; level++) {
            cca_log((enum cca_log_level)level, "%d.%d", round, level);
        }
    }
    return 0;
}

static void messages_above_the_level_are_dropped(void **state)
{
    (void)state;
    child_run(speak_at_every_level, &result);
    assert_true(child_exited_with(&result, 0));
    assert_string_equal(result.text, "cca: 0.0\ncca: 0.1\ncca: 1.0\n"
                                     "cca: 2.0\ncca: 2.1\ncca: 2.2\ncca: 2.3\n");
}

static int speak_too_often(void)
{
    cca_log_init();
    for (int i = 0; i < 50; i++) {
        cca_log(CCA_LOG_INFO, "dropped by its level");
    }
    for (int i = 0; i < 250; i++) {
        cca_log(CCA_LOG_WARN, "%d", i);
    }
    cca_log_text("still\n");
    return 0;
}

static void one_last_line_follows_a_hundred_messages(void **state)
{
    (void)state;
    child_run(speak_too_often, &result);
    assert_true(child_exited_with(&result, 0));
    assert_int_equal(count_lines(result.text), 102);
    assert_non_null(strstr(result.text, "cca: 99\ncca: further messages are dropped\nstill\n"));
    assert_null(strstr(result.text, "cca: 100\n"));
}

static void *speak_often(void *arg)
{
    for (int i = 0; i < 50; i++) {
        cca_log(CCA_LOG_WARN, "thread");
    }
    return arg;
}

static int speak_from_threads(void)
{
    pthread_t threads[8];

    cca_log_init();
    for (int i = 0; i < 8; i++) {
        CHILD_EXPECT(pthread_create(&threads[i], NULL, speak_often, NULL) == 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}

static void threads_share_the_count_and_keep_lines_whole(void **state)
{
    size_t whole = 0;

    (void)state;
    child_run(speak_from_threads, &result);
    assert_true(child_exited_with(&result, 0));
    for (char *line = strtok(result.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        whole += strcmp(line, "cca: thread") == 0;
    }
    assert_int_equal(whole, 100);
}

static int speak_once(void)
{
    static int said, other;

    cca_log_init();
    for (int i = 0; i < 3; i++) {
        cca_log_once(&said, CCA_LOG_WARN, "said %d", i);
        cca_log_once(&other, CCA_LOG_WARN, "other %d", i);
    }
    return 0;
}

static void once_is_once_for_each_place(void **state)
{
    (void)state;
    child_run(speak_once, &result);
    assert_true(child_exited_with(&result, 0));
    assert_string_equal(result.text, "cca: said 0\ncca: other 0\n");
}

static int speak_at_length(void)
{
    char word[5001];

    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    cca_log_init();
    cca_log(CCA_LOG_WARN, "%s", word);
    cca_log(CCA_LOG_WARN, "next");
    cca_log_text(word);
    return 0;
}

static void long_message_is_cut_but_keeps_its_newline(void **state)
{
    (void)state;
    child_run(speak_at_length, &result);
    assert_true(child_exited_with(&result, 0));
    assert_int_equal(strcspn(result.text, "\n"), 2047);
    assert_int_equal(result.len, 2048 + strlen("cca: next\n") + 5000);
}

static void speak_in_every_way(void)
{
    int said = 0;

    cca_log(CCA_LOG_ERROR, "a");
    cca_log_once(&said, CCA_LOG_ERROR, "b");
    cca_log_text("c\n");
}

static int reuse_descriptor(void)
{
    int kept = dup(STDERR_FILENO), ends[2];
    FILE *file = tmpfile();
    struct stat st;

    cca_log_init();
    close(STDERR_FILENO);
    CHILD_EXPECT(!cca_log_stderr_is_ours());
    speak_in_every_way();

    CHILD_EXPECT(dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
    CHILD_EXPECT(!cca_log_stderr_is_ours());
    speak_in_every_way();
    CHILD_EXPECT(fstat(STDERR_FILENO, &st) == 0 && st.st_size == 0);

    /* Another pipe differs in its inode alone. */
    CHILD_EXPECT(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    CHILD_EXPECT(!cca_log_stderr_is_ours());

    CHILD_EXPECT(dup2(kept, STDERR_FILENO) == STDERR_FILENO);
    CHILD_EXPECT(cca_log_stderr_is_ours());
    cca_log(CCA_LOG_ERROR, "back");
    return 0;
}

static void closed_or_reused_descriptor_gets_nothing(void **state)
{
    (void)state;
    child_run(reuse_descriptor, &result);
    assert_true(child_exited_with(&result, 0));
    assert_string_equal(result.text, "cca: back\n");
}

static int init_without_stderr(void)
{
    int kept = dup(STDERR_FILENO);

    close(STDERR_FILENO);
    cca_log_init();
    CHILD_EXPECT(dup2(kept, STDERR_FILENO) == STDERR_FILENO);
    CHILD_EXPECT(!cca_log_stderr_is_ours());
    speak_in_every_way();
    return 0;
}

static void program_without_stderr_stays_without(void **state)
{
    (void)state;
    child_run(init_without_stderr, &result);
    assert_true(child_exited_with(&result, 0));
    assert_string_equal(result.text, "");
}

static void expect_errno_kept(void)
{
    int said = 0;

    errno = 17;
    cca_log_init();
    CHILD_EXPECT(errno == 17);
    cca_log_set_level(CCA_LOG_DEBUG);
    CHILD_EXPECT(errno == 17);
    cca_log(CCA_LOG_ERROR, "a");
    CHILD_EXPECT(errno == 17);
    cca_log_once(&said, CCA_LOG_ERROR, "b");
    CHILD_EXPECT(errno == 17);
    cca_log_text("c\n");
    CHILD_EXPECT(errno == 17);
    (void)cca_log_stderr_is_ours();
    CHILD_EXPECT(errno == 17);
}

static int speak_with_errno(void)
{
    expect_errno_kept();
    dup2(open("/dev/full", O_WRONLY), STDERR_FILENO);
    expect_errno_kept();
    close(STDERR_FILENO);
    expect_errno_kept();
    return 0;
}

static void errno_is_preserved(void **state)
{
    (void)state;
    child_run(speak_with_errno, &result);
    assert_true(child_exited_with(&result, 0));
}

static int speak_to_nobody(void)
{
    sigset_t pending;
    int ends[2];

    signal(SIGPIPE, SIG_DFL);
    CHILD_EXPECT(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    cca_log_init();
    close(ends[0]);
    errno = 17;
    speak_in_every_way();
    CHILD_EXPECT(errno == 17);
    sigpending(&pending);
    CHILD_EXPECT(sigismember(&pending, SIGPIPE) == 0);
    /* The program's own mask is back: its own write must still end it. */
    CHILD_EXPECT(write(STDERR_FILENO, "x", 1) == 1);
    return 0;
}

static void reader_that_went_away_does_not_end_the_program(void **state)
{
    (void)state;
    child_run(speak_to_nobody, &result);
    assert_true(child_was_killed_by(&result, SIGPIPE));
}

static int speak_with_sigpipe_pending(void)
{
    sigset_t mask, pending;
    int ends[2];

    sigemptyset(&mask);
    sigaddset(&mask, SIGPIPE);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    CHILD_EXPECT(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    cca_log_init();
    close(ends[0]);
    raise(SIGPIPE);
    speak_in_every_way();
    sigpending(&pending);
    CHILD_EXPECT(sigismember(&pending, SIGPIPE) == 1);
    return 0;
}

static void sigpipe_of_the_program_stays_pending(void **state)
{
    (void)state;
    child_run(speak_with_sigpipe_pending, &result);
    assert_true(child_exited_with(&result, 0));
}

static int speak_to_be_kept(void)
{
    char text[400];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CHILD_EXPECT(cca_log_kept(0) == NULL && cca_log_kept(-1) == NULL);
    cca_log(CCA_LOG_INFO, "not kept");
    cca_log(CCA_LOG_WARN, "a\nb %d", 1);
    cca_log_and_keep(CCA_LOG_INFO, "not said");
    cca_log(CCA_LOG_ERROR, "%s", text);
    CHILD_EXPECT(strcmp(cca_log_kept(0), "a b 1") == 0);
    CHILD_EXPECT(strcmp(cca_log_kept(1), "not said") == 0);
    CHILD_EXPECT(strlen(cca_log_kept(2)) == 255 && cca_log_kept(3) == NULL);
    for (int i = 0; i < 100; i++) {
        cca_log(CCA_LOG_WARN, "%d", i);
    }
    CHILD_EXPECT(strcmp(cca_log_kept(63), "60") == 0 && cca_log_kept(64) == NULL);
    return 0;
}

static void the_first_warnings_are_kept(void **state)
{
    (void)state;
    child_run(speak_to_be_kept, &result);
    assert_true(child_exited_with(&result, 0));
    assert_string_equal(result.text, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_said_before_init),
    cmocka_unit_test(message_is_one_line_with_the_prefix),
    cmocka_unit_test(messages_above_the_level_are_dropped),
    cmocka_unit_test(one_last_line_follows_a_hundred_messages),
    cmocka_unit_test(threads_share_the_count_and_keep_lines_whole),
    cmocka_unit_test(once_is_once_for_each_place),
    cmocka_unit_test(long_message_is_cut_but_keeps_its_newline),
    cmocka_unit_test(closed_or_reused_descriptor_gets_nothing),
    cmocka_unit_test(program_without_stderr_stays_without),
    cmocka_unit_test(errno_is_preserved),
    cmocka_unit_test(reader_that_went_away_does_not_end_the_program),
    cmocka_unit_test(sigpipe_of_the_program_stays_pending),
    cmocka_unit_test(the_first_warnings_are_kept),
};

CCA_TEST_MAIN(tests)
