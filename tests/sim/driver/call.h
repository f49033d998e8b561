/* SPDX-License-Identifier: MIT */
/* What happens around every exported function: counting, injected failures and delays, the one lock
 * of the simulator, the refusal inside host functions, and the list of functions nobody wrote.
 * Everything behind an exported entry runs with the lock held; only engine.c lets go of it, to wait
 * and to run host functions. */
#ifndef SIM_CALL_H
#define SIM_CALL_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One row per exported function, generated. introduced 0: no version is known. */
struct sim_function {
    const char *name;
    const char *base;
    int version;
    int per_thread;
    void (*entry)(void);
    uint64_t calls;
    bool is_unwritten_called;
    bool is_taken_away;
    uint64_t fail_at;
    uint64_t fail_every;
    uint64_t fail_random;
    uint64_t fail_above;
    bool is_fail_sticky;
    CUresult fail_code;
    uint64_t slow_us;
};

struct sim_error_name {
    int code;
    const char *name;
    const char *text;
};

/* The call a thread is in. A host function may nest calls, so entries keep the outer one. */
struct sim_call {
    struct sim_function *function;
    const void *caller;
    struct sim_call *outer;
    bool is_locked;
};

extern struct sim_function sim_functions[];
extern const unsigned sim_function_count;
extern const struct sim_error_name sim_error_names[];

extern pthread_mutex_t sim_mutex;

/* A result other than success ends the call with that result. */
CUresult sim_call_begin(struct sim_call *call, struct sim_function *function, const void *caller);
/* The arguments of the call that is about to begin, for the trace. */
extern bool sim_is_noting;
void sim_call_arguments(unsigned count, const char *const *names, const uint64_t *values);
CUresult sim_call_end(struct sim_call *call, CUresult result);
CUresult sim_call_unwritten(struct sim_call *call);

/* The innermost call of this thread: does stream 0 mean the per-thread stream, who called, what. */
bool sim_call_is_per_thread(void);
const void *sim_call_caller(void);
const char *sim_call_name(void);
/* Marks this thread as inside a host function. */
void sim_call_set_in_host_function(bool is_inside);

/* The same, for a function that stands in for a kernel and runs with the lock held. */
void sim_call_set_in_kernel(bool is_inside);
bool sim_call_is_in_kernel(void);

struct sim_function *sim_function_find(const char *name);
bool sim_function_is_absent(const struct sim_function *function);
/* A line of its own in the trace, when there is one. */
void sim_call_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "name:n=3:code=2,name:every=7,name:random=9:sticky=1,name:above=1G"; NULL or "" takes all rules
 * back. */
void sim_set_failures(const char *text);
void sim_set_slow(const char *text);

#endif
