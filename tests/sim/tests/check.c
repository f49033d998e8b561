/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long checks;

void check_that(int is_true, const char *text, const char *file, int line)
{
    __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
    if (!is_true) {
        fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
        fflush(NULL);
        _exit(1);
    }
}

void check_equal(long long value, long long expected, const char *text, const char *file, int line)
{
    __atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
    if (value != expected) {
        fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", file, line, text, value, expected);
        fflush(NULL);
        _exit(1);
    }
}

static void set_variables(const char *variables)
{
    char *copy = strdup(variables != NULL ? variables : "");
    char *state;

    for (char *word = strtok_r(copy, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state)) {
        putenv(word);
    }
    /* putenv keeps the words. */
}

/* Runs one case in a process of its own; its number of checks comes through a pipe. */
static int run_case(const struct check_case *test, unsigned long *checks_out)
{
    int ends[2];
    int status;
    char number[16];

    if (pipe(ends) != 0) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        set_variables(test->variables);
        snprintf(number, sizeof(number), "%d", ends[1]);
        execl("/proc/self/exe", "case", test->name, number, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    if (read(ends[0], checks_out, sizeof(*checks_out)) != sizeof(*checks_out)) {
        *checks_out = 0;
    }
    close(ends[0]);
    if (waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_here(const struct check_case *test, int result_fd)
{
    test->run();
    if (write(result_fd, &checks, sizeof(checks)) < 0) {
        return 1;
    }
    close(result_fd);
    return 0;
}

int check_main(int argc, char **argv, const struct check_case *cases, size_t count)
{
    unsigned long total = 0;
    int failures = 0;

    for (size_t i = 0; argc == 3 && i < count; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            return run_here(&cases[i], atoi(argv[2]));
        }
    }
    for (size_t i = 0; i < count; i++) {
        unsigned long own = 0;
        int status = run_case(&cases[i], &own);
        int is_good = status == cases[i].exit_status;
        printf("%s %zu - %s (%lu checks)\n", is_good ? "ok" : "not ok", i + 1, cases[i].name, own);
        if (!is_good) {
            printf("# exit status %d, expected %d\n", status, cases[i].exit_status);
        }
        fflush(stdout);
        failures += !is_good;
        total += own;
    }
    printf("# %lu checks\n1..%zu\n", total, count);
    return failures != 0;
}
