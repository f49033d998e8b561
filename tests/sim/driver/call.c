/* SPDX-License-Identifier: MIT */
#include "call.h"

#include "config.h"
#include "context.h"
#include "defect.h"
#include "space.h"
#include "violation.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t sim_mutex = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct sim_call *current_call;
static _Thread_local bool is_in_host_function;
static _Thread_local bool is_in_kernel;
static bool is_forked_child;
bool sim_is_noting;
static _Thread_local char noted[512];
static FILE *trace_file;

static int compare_name(const void *name, const void *row)
{
    return strcmp(name, ((const struct sim_function *)row)->name);
}

/* The rows are sorted by name. */
struct sim_function *sim_function_find(const char *name)
{
    return bsearch(name, sim_functions, sim_function_count, sizeof(*sim_functions), compare_name);
}

bool sim_function_is_absent(const struct sim_function *function)
{
    return function->is_taken_away || function->version > sim_config.driver_version;
}

/* Reads "function:key=value:key=value,..." and hands each pair to set. */
static void each_rule(const char *text, void (*set)(struct sim_function *, const char *, uint64_t))
{
    char *copy = strdup(text != NULL ? text : "");
    char *rule_state;

    for (char *rule = strtok_r(copy, ", ", &rule_state); rule != NULL;
         rule = strtok_r(NULL, ", ", &rule_state)) {
        char *part_state;
        char *part = strtok_r(rule, ":", &part_state);
        struct sim_function *function = part != NULL ? sim_function_find(part) : NULL;
        if (function == NULL) {
            fprintf(stderr, "simcuda: no function %s\n", part != NULL ? part : "");
            continue;
        }
        set(function, "", 0);
        while ((part = strtok_r(NULL, ":", &part_state)) != NULL) {
            char *value = strchr(part, '=');
            if (value != NULL) {
                *value++ = '\0';
                set(function, part, sim_config_size(value, 0));
            }
        }
    }
    free(copy);
}

static void set_failure(struct sim_function *function, const char *key, uint64_t value)
{
    if (strcmp(key, "n") == 0) {
        function->fail_at = __atomic_load_n(&function->calls, __ATOMIC_RELAXED) + value;
    } else if (strcmp(key, "every") == 0) {
        function->fail_every = value;
    } else if (strcmp(key, "random") == 0) {
        function->fail_random = value;
    } else if (strcmp(key, "above") == 0) {
        function->fail_above = value;
    } else if (strcmp(key, "sticky") == 0) {
        function->is_fail_sticky = value != 0;
    } else if (strcmp(key, "code") == 0) {
        function->fail_code = (CUresult)value;
    } else {
        function->fail_code = CUDA_ERROR_OUT_OF_MEMORY;
    }
}

static void set_slow(struct sim_function *function, const char *key, uint64_t value)
{
    if (strcmp(key, "us") == 0) {
        function->slow_us = value;
    }
}

static void set_without(struct sim_function *function, const char *key, uint64_t value)
{
    (void)key;
    (void)value;
    function->is_taken_away = true;
}

void sim_set_failures(const char *text)
{
    for (unsigned i = 0; i < sim_function_count; i++) {
        sim_functions[i].fail_at = 0;
        sim_functions[i].fail_every = 0;
        sim_functions[i].fail_random = 0;
        sim_functions[i].fail_above = 0;
        sim_functions[i].is_fail_sticky = false;
    }
    each_rule(text, set_failure);
}

void sim_set_slow(const char *text)
{
    for (unsigned i = 0; i < sim_function_count; i++) {
        sim_functions[i].slow_us = 0;
    }
    each_rule(text, set_slow);
}

/* A sticky one is the end of the current context. */
static CUresult injected_failure(const struct sim_function *function, uint64_t count)
{
    bool is_due = (function->fail_at != 0 && count == function->fail_at) ||
                  (function->fail_every != 0 && count % function->fail_every == 0) ||
                  (function->fail_random != 0 && sim_random() % function->fail_random == 0);
    struct CUctx_st *context = sim_context_current();

    if (context != NULL && function->fail_above != 0) {
        is_due |= sim_space_total_bytes(context->device) - sim_space_free_bytes(context->device) >=
                  function->fail_above;
    }

    if (is_due && context != NULL && function->is_fail_sticky) {
        context->sticky = function->fail_code;
    }
    return is_due ? function->fail_code : CUDA_SUCCESS;
}

static void trace(const struct sim_call *call, CUresult result)
{
    if (trace_file != NULL) {
        fprintf(trace_file, "%s %d%s\n", call->function->name, (int)result, noted);
        fflush(trace_file);
    }
}

void sim_call_note(const char *format, ...)
{
    va_list arguments;

    if (trace_file != NULL) {
        va_start(arguments, format);
        vfprintf(trace_file, format, arguments);
        va_end(arguments);
        fflush(trace_file);
    }
}

void sim_call_arguments(unsigned count, const char *const *names, const uint64_t *values)
{
    size_t length = 0;

    for (unsigned i = 0; i < count && length < sizeof(noted); i++) {
        length += (size_t)snprintf(noted + length, sizeof(noted) - length, " %s=0x%llx", names[i],
                                   (unsigned long long)values[i]);
    }
}

CUresult sim_call_begin(struct sim_call *call, struct sim_function *function, const void *caller)
{
    uint64_t count = __atomic_add_fetch(&function->calls, 1, __ATOMIC_RELAXED);

    *call = (struct sim_call){.function = function, .caller = caller, .outer = current_call};
    current_call = call;
    if (is_forked_child) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (sim_function_is_absent(function)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    uint64_t slow_us = __atomic_load_n(&function->slow_us, __ATOMIC_RELAXED);
    if (slow_us != 0) {
        struct timespec wait = {(time_t)(slow_us / 1000000), (long)(slow_us % 1000000) * 1000};
        nanosleep(&wait, NULL);
    }
    if (is_in_kernel) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    if (is_in_host_function && !SIM_DEFECT(host_functions_call_cuda)) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    pthread_mutex_lock(&sim_mutex);
    call->is_locked = true;
    return injected_failure(function, count);
}

CUresult sim_call_end(struct sim_call *call, CUresult result)
{
    if (call->is_locked) {
        trace(call, result);
        pthread_mutex_unlock(&sim_mutex);
    }
    current_call = call->outer;
    return result;
}

CUresult sim_call_unwritten(struct sim_call *call)
{
    call->function->is_unwritten_called = true;
    return CUDA_ERROR_NOT_SUPPORTED;
}

bool sim_call_is_per_thread(void)
{
    return current_call != NULL && current_call->function->per_thread != 0;
}

const void *sim_call_caller(void)
{
    return current_call != NULL ? current_call->caller : NULL;
}

const char *sim_call_name(void)
{
    return current_call != NULL ? current_call->function->name : "control";
}

void sim_call_set_in_kernel(bool is_inside)
{
    is_in_kernel = is_inside;
}

bool sim_call_is_in_kernel(void)
{
    return is_in_kernel;
}

void sim_call_set_in_host_function(bool is_inside)
{
    is_in_host_function = is_inside;
}

/* A child of a process that has used the driver may not; there is no executor and the mutex may be
 * locked by a thread that it does not have. One forked earlier is as good as new. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&sim_mutex, NULL);
    is_forked_child = sim_is_initialized;
}

/* The path with %p replaced by the process id. */
static FILE *open_output(const char *path)
{
    char name[4096];
    const char *mark = strstr(path, "%p");

    if (mark != NULL) {
        snprintf(name, sizeof(name), "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2);
    } else {
        snprintf(name, sizeof(name), "%s", path);
    }
    return fopen(name, "we");
}

static void write_log(void)
{
    FILE *out = open_output(sim_config.log_path);

    if (out == NULL) {
        fprintf(stderr, "simcuda: cannot write %s\n", sim_config.log_path);
        return;
    }
    for (unsigned i = 0; i < sim_function_count; i++) {
        if (sim_functions[i].calls != 0) {
            fprintf(out, "%s %llu\n", sim_functions[i].name,
                    (unsigned long long)sim_functions[i].calls);
        }
    }
    fprintf(out, "violations %llu\n", (unsigned long long)sim_violation_count());
    fclose(out);
}

static void print_unwritten(void)
{
    bool is_first = true;

    for (unsigned i = 0; i < sim_function_count; i++) {
        if (sim_functions[i].is_unwritten_called) {
            fprintf(stderr, "%s%s", is_first ? "simcuda: not written: " : " ",
                    sim_functions[i].name);
            is_first = false;
        }
    }
    if (!is_first) {
        fputc('\n', stderr);
    }
}

__attribute__((constructor)) static void start(void)
{
    sim_config_read();
    if (sim_config.without != NULL) {
        each_rule(sim_config.without, set_without);
    }
    sim_set_failures(sim_config.fail);
    sim_set_slow(sim_config.slow);
    if (sim_config.trace_path != NULL) {
        trace_file = open_output(sim_config.trace_path);
        sim_is_noting = sim_config.is_tracing_arguments;
    }
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* The executor may sit in a host function or the process may leave in the middle of a call, so the
 * lock is asked for only for a while. */
__attribute__((destructor)) static void finish(void)
{
    struct timespec deadline;

    if (is_forked_child) {
        return;
    }
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 2;
    bool is_locked = pthread_mutex_timedlock(&sim_mutex, &deadline) == 0;
    print_unwritten();
    if (sim_config.log_path != NULL) {
        write_log();
    }
    bool is_fatal = sim_violation_count() != 0 && sim_config.violations == SIM_VIOLATION_FATAL;
    if (is_locked) {
        pthread_mutex_unlock(&sim_mutex);
    }
    if (is_fatal) {
        fflush(NULL);
        _exit(97);
    }
}
