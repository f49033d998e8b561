/* SPDX-License-Identifier: MIT */
/* Checks for the simulator's own tests. A program is a table of cases; each runs in a process of
 * its own with its own SIMCUDA_ variables, and says how that process must end. */
#ifndef SIM_CHECK_H
#define SIM_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* variables: "NAME=value NAME=value" or NULL. */
struct check_case {
    const char *name;
    void (*run)(void);
    const char *variables;
    int exit_status;
};

#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(value, expected) \
    check_equal((long long)(value), (long long)(expected), #value, __FILE__, __LINE__)
/* A call of the driver or the runtime that must succeed. */
#define OK(call) CHECK_EQ(call, 0)

#define CHECK_MAIN(cases)                                                       \
    int main(int argc, char **argv)                                             \
    {                                                                           \
        return check_main(argc, argv, cases, sizeof(cases) / sizeof(*(cases))); \
    }

void check_that(int is_true, const char *text, const char *file, int line);
void check_equal(long long value, long long expected, const char *text, const char *file, int line);
int check_main(int argc, char **argv, const struct check_case *cases, size_t count);

#endif
