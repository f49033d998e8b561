/* SPDX-License-Identifier: MIT */
/* Runs a function in a forked child whose descriptor 2 is a pipe, for tests of what ends a process,
 * of process-wide state and of messages. */
#ifndef CCA_TEST_CHILD_H
#define CCA_TEST_CHILD_H

#include "support/test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct child_result {
    int status; /* of waitpid */
    size_t len;
    char text[65536]; /* what it wrote to descriptor 2 */
};

/* `body` returns the exit status. At most 64 KiB of output are kept. */
static inline void child_run(int (*body)(void), struct child_result *result)
{
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(body());
    }
    close(ends[1]);
    result->len = 0;
    for (;;) {
        ssize_t n = read(ends[0], result->text + result->len,
                         sizeof(result->text) - 1 - result->len);

        if (n <= 0) {
            break;
        }
        result->len += (size_t)n;
    }
    result->text[result->len] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &result->status, 0), pid);
}

static inline bool child_exited_with(const struct child_result *result, int code)
{
    return WIFEXITED(result->status) && WEXITSTATUS(result->status) == code;
}

static inline bool child_was_killed_by(const struct child_result *result, int number)
{
    return WIFSIGNALED(result->status) && WTERMSIG(result->status) == number;
}

/* In a child: leaves with a status that names the line. */
#define CHILD_EXPECT(cond)                                                      \
    do {                                                                        \
        if (!(cond)) {                                                          \
            dprintf(STDOUT_FILENO, "# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
            _exit(99);                                                          \
        }                                                                       \
    } while (0)

#endif
