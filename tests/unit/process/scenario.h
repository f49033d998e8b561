/* SPDX-License-Identifier: MIT */
/* One test case in a process of its own: the library's state is one per process and starts once.
 * The process runs in an empty folder, its stderr is kept. */
#ifndef CCA_TEST_SCENARIO_H
#define CCA_TEST_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/allocator.h"

struct outcome {
    int status;           /* exit status, or 128 + signal */
    int files;            /* in the folder afterwards, hidden ones too */
    int hidden;           /* of these */
    char messages[16384]; /* stderr */
    char first_file[256];
};

/* Runs `fn` and then the library's exit, with `variables` ("NAME=value", ends with NULL; may be
 * NULL) in the environment, in which nothing else starts with CCA_. What the scenario checks
 * itself, it checks by CHECK. */
struct outcome run_scenario(void (*fn)(void), const char *const *variables);

/* Inside a scenario: ends the process with a message that fails the test. */
#define CHECK(cond) ((cond) ? (void)0 : scenario_failed(__FILE__, __LINE__, #cond))
_Noreturn void scenario_failed(const char *file, int line, const char *cond);

/* Loads, brings a context of a plain device up, and returns its heap. */
struct cca_heap *load_with_context(void);
/* The second part of it. */
struct cca_heap *bring_context_up(void);

/* Serves one request as a hook does; the address, or 0. */
uint64_t hook_alloc(struct cca_heap *heap, size_t bytes);
void hook_free(uint64_t addr);

/* Makes every later allocation of the plain device fail. */
void fail_device_allocations(void);

/* Waits until the folder holds at least `count` complete files; false after ten seconds. */
bool wait_for_files(int count);
int count_files(void);
int count_entries(const char *folder);
int count_occurrences(const char *text, const char *part);

/* The status of a child, as in struct outcome. */
int wait_for_child(int pid);

#endif
