/* SPDX-License-Identifier: MIT */
#include "run.h"

#include "access.h"
#include "call.h"
#include "config.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Ready operations in real time, the earliest end first. */
static struct sim_op **heap;
static unsigned heap_count;
static unsigned heap_room;
static pthread_cond_t heap_changed;
/* Grows when an operation is done; a futex that threads of the program wait on. A condition
 * variable would not do: a thread that leaves its wait for good, because a signal handler calls
 * exit, blocks every later broadcast. The others are waited on by threads without signals alone. */
static uint32_t done_count;
static unsigned waiter_count;
static bool is_executor_started;
/* Host functions that are due, in order. */
static struct sim_op *host_head;
static struct sim_op *host_tail;
static pthread_cond_t host_changed = PTHREAD_COND_INITIALIZER;
/* What else is to be called on that thread, the last one first. */
struct host_call {
    struct host_call *next;
    void (*function)(void *);
    void *data;
};
static struct host_call *host_calls;
static bool is_host_thread_started;
/* Virtual time stands where the latest operation ended. */
static uint64_t virtual_now_ns = 1;
/* The closure that a thread in virtual time is running, while it runs. */
static struct sim_op **runnable;
static unsigned runnable_count;
static unsigned runnable_room;

uint64_t sim_now_ns(void)
{
    struct timespec now;

    if (sim_config.is_virtual) {
        return virtual_now_ns;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t random_state;

void sim_seed(uint64_t seed)
{
    sim_config.seed = seed;
    random_state = 0;
}

uint64_t sim_random(void)
{
    random_state += 0x9e3779b97f4a7c15u + sim_config.seed;
    uint64_t value = random_state;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static void heap_set(unsigned index, struct sim_op *op)
{
    heap[index] = op;
    op->heap_index = index;
}

static void heap_push(struct sim_op *op)
{
    if (heap_count == heap_room) {
        heap_room = heap_room == 0 ? 64 : heap_room * 2;
        heap = realloc(heap, heap_room * sizeof(struct sim_op *));
    }
    unsigned index = heap_count++;
    while (index > 0 && heap[(index - 1) / 2]->end_ns > op->end_ns) {
        heap_set(index, heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    heap_set(index, op);
}

static struct sim_op *heap_pop(void)
{
    struct sim_op *first = heap[0];
    struct sim_op *last = heap[--heap_count];
    unsigned index = 0;

    for (;;) {
        unsigned child = 2 * index + 1;
        if (child >= heap_count) {
            break;
        }
        if (child + 1 < heap_count && heap[child + 1]->end_ns < heap[child]->end_ns) {
            child++;
        }
        if (heap[child]->end_ns >= last->end_ns) {
            break;
        }
        heap_set(index, heap[child]);
        index = child;
    }
    if (heap_count > 0) {
        heap_set(index, last);
    }
    return first;
}

/* How long until an operation that is not due is looked at again. */
#define LOOK_AGAIN_NS 50000

/* Does it wait for something that is no operation? A dead block is for run_one to find. */
static bool is_blocked(const struct sim_op *op)
{
    return op->is_due != NULL && !op->is_broken && !sim_access_has_died(op) && !op->is_due(op);
}

static void announce_done(void)
{
    __atomic_add_fetch(&done_count, 1, __ATOMIC_RELEASE);
    if (waiter_count != 0) {
        syscall(SYS_futex, &done_count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

/* Lets go of the lock until some operation is done, or for no reason. */
static void wait_done(void)
{
    uint32_t seen = __atomic_load_n(&done_count, __ATOMIC_ACQUIRE);

    waiter_count++;
    pthread_mutex_unlock(&sim_mutex);
    syscall(SYS_futex, &done_count, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    pthread_mutex_lock(&sim_mutex);
    waiter_count--;
}

static void run_one(struct sim_op *op)
{
    op->state = SIM_OP_RUNNING;
    op->is_unfinished = false;
    if (op->run != NULL && !op->is_broken && sim_access_is_live(op)) {
        if (op->is_host_function) {
            sim_clock_join(&sim_host_clock, &op->clock);
            pthread_mutex_unlock(&sim_mutex);
            sim_call_set_in_host_function(true);
            op->run(op);
            sim_call_set_in_host_function(false);
            pthread_mutex_lock(&sim_mutex);
        } else {
            op->run(op);
        }
    }
    if (virtual_now_ns < op->end_ns) {
        virtual_now_ns = op->end_ns;
    }
    if (op->is_unfinished) {
        op->start_ns = op->end_ns;
        sim_run_ready(op, false);
        return;
    }
    sim_op_finish(op);
    announce_done();
}

static void run_host_call(void)
{
    struct host_call *call = host_calls;

    host_calls = call->next;
    pthread_mutex_unlock(&sim_mutex);
    sim_call_set_in_host_function(true);
    call->function(call->data);
    sim_call_set_in_host_function(false);
    free(call);
    pthread_mutex_lock(&sim_mutex);
}

static void *run_host_functions(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&sim_mutex);
    for (;;) {
        struct sim_op *op = host_head;
        if (host_calls != NULL) {
            run_host_call();
        } else if (op == NULL) {
            pthread_cond_wait(&host_changed, &sim_mutex);
        } else {
            host_head = op->next_host;
            run_one(op);
        }
    }
    return NULL;
}

/* With all signals masked: handlers belong to the program's threads. */
static void start_thread(void *(*body)(void *))
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, body, NULL) != 0) {
        abort();
    }
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void wake_host_thread(void)
{
    if (!is_host_thread_started) {
        is_host_thread_started = true;
        start_thread(run_host_functions);
    }
    pthread_cond_signal(&host_changed);
}

static void hand_to_host_thread(struct sim_op *op)
{
    op->next_host = NULL;
    if (host_head == NULL) {
        host_head = op;
    } else {
        host_tail->next_host = op;
    }
    host_tail = op;
    wake_host_thread();
}

void sim_call_on_host_thread(void (*function)(void *), void *data)
{
    struct host_call *call = calloc(1, sizeof(*call));

    *call = (struct host_call){.next = host_calls, .function = function, .data = data};
    host_calls = call;
    wake_host_thread();
}

static void *execute(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&sim_mutex);
    for (;;) {
        if (heap_count == 0) {
            pthread_cond_wait(&heap_changed, &sim_mutex);
            continue;
        }
        uint64_t due = heap[0]->end_ns;
        if (due > sim_now_ns()) {
            struct timespec until = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};
            pthread_cond_timedwait(&heap_changed, &sim_mutex, &until);
            continue;
        }
        struct sim_op *op = heap_pop();
        if (is_blocked(op)) {
            op->end_ns = sim_now_ns() + LOOK_AGAIN_NS;
            heap_push(op);
        } else if (op->is_host_function) {
            hand_to_host_thread(op);
        } else {
            run_one(op);
        }
    }
    return NULL;
}

static void start_executor(void)
{
    pthread_condattr_t attributes;

    is_executor_started = true;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&heap_changed, &attributes);
    pthread_condattr_destroy(&attributes);
    start_thread(execute);
}

void sim_run_ready(struct sim_op *op, bool may_run)
{
    op->state = SIM_OP_READY;
    op->end_ns = op->start_ns + op->delay_ns;
    if (sim_config.is_virtual) {
        if (op->is_marked) {
            if (runnable_count == runnable_room) {
                runnable_room = runnable_room == 0 ? 64 : runnable_room * 2;
                runnable = realloc(runnable, runnable_room * sizeof(struct sim_op *));
            }
            runnable[runnable_count++] = op;
        }
        return;
    }
    if (may_run && !op->is_host_function && op->end_ns <= sim_now_ns() && heap_count == 0 &&
        !is_blocked(op)) {
        run_one(op);
        return;
    }
    if (!is_executor_started) {
        start_executor();
    }
    heap_push(op);
    pthread_cond_signal(&heap_changed);
}

/* Marks what target waits for, itself included; leaves the runnable ones in the list. */
static void mark_closure(struct sim_op *target)
{
    struct sim_op **stack = malloc(sizeof(struct sim_op *));
    unsigned count = 1;
    unsigned room = 1;

    stack[0] = target;
    while (count > 0) {
        struct sim_op *op = stack[--count];
        if (op->is_marked || op->state == SIM_OP_DONE || op->state == SIM_OP_RUNNING) {
            continue;
        }
        op->is_marked = true;
        if (op->state == SIM_OP_READY) {
            sim_run_ready(op, false);
        }
        if (count + op->waits_for_count > room) {
            room = 2 * (count + op->waits_for_count);
            stack = realloc(stack, room * sizeof(struct sim_op *));
        }
        for (unsigned i = 0; i < op->waits_for_count; i++) {
            stack[count++] = op->waits_for[i];
        }
    }
    free(stack);
}

/* Runs an operation that nobody has asked for; false when there is none. */
static bool run_unmarked(void)
{
    for (struct sim_op *op = sim_pending_first(); op != NULL; op = op->next_pending) {
        if (op->state == SIM_OP_READY && !op->is_marked && !is_blocked(op)) {
            op->is_marked = true;
            run_one(op);
            return true;
        }
    }
    return false;
}

/* Runs one of the runnable operations, by lot; false when there is none. If they all wait for a
 * word, others that may write it get their turn, and after them the host. */
static bool run_any(void)
{
    struct timespec moment = {0, LOOK_AGAIN_NS};
    unsigned start = runnable_count != 0 ? (unsigned)(sim_random() % runnable_count) : 0;

    for (unsigned i = 0; i < runnable_count; i++) {
        unsigned index = (start + i) % runnable_count;
        struct sim_op *op = runnable[index];
        if (!is_blocked(op)) {
            runnable[index] = runnable[--runnable_count];
            run_one(op);
            return true;
        }
    }
    if (runnable_count == 0) {
        return false;
    }
    if (!run_unmarked()) {
        pthread_mutex_unlock(&sim_mutex);
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&sim_mutex);
    }
    return true;
}

/* Another thread in virtual time may have taken what this one needs and be in a host function:
 * then wait for it. The marks of several threads may mix; each runs what is runnable. */
static void wait_virtual(struct sim_op *const *ops, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        mark_closure(ops[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        while (ops[i]->state != SIM_OP_DONE) {
            if (!run_any()) {
                wait_done();
            }
        }
    }
}

void sim_wait_many(struct sim_op *const *ops, unsigned count)
{
    if (sim_config.is_virtual) {
        wait_virtual(ops, count);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        while (ops[i]->state != SIM_OP_DONE) {
            wait_done();
        }
    }
}

void sim_wait(struct sim_op *op)
{
    sim_wait_many(&op, 1);
}

void sim_query_progress(void)
{
    if (!sim_config.is_virtual || sim_config.progress == 0 ||
        sim_random() % sim_config.progress != 0) {
        return;
    }
    run_unmarked();
}

void sim_advance_all(void)
{
    unsigned count = 0;
    struct sim_op **ops = calloc(sim_pending() + 1, sizeof(struct sim_op *));

    for (struct sim_op *op = sim_pending_first(); op != NULL; op = op->next_pending) {
        sim_op_hold(op);
        ops[count++] = op;
    }
    sim_wait_many(ops, count);
    for (unsigned i = 0; i < count; i++) {
        sim_op_drop(ops[i]);
    }
    free(ops);
}

/* Work that waits in one kind of time is finished in that kind. */
void sim_set_virtual(bool is_virtual)
{
    if (is_virtual != sim_config.is_virtual) {
        sim_advance_all();
        if (is_virtual) {
            virtual_now_ns = sim_now_ns();
        }
        sim_config.is_virtual = is_virtual;
    }
}
