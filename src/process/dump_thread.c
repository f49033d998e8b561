/* SPDX-License-Identifier: MIT */
/* The thread that writes snapshots and does what else takes time. Handlers and hooks only wake it;
 * several signals that come while it works make at least one more snapshot afterwards. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/reentry.h"
#include "observe/observer.h"
#include "process/dump.h"
#include "process/last_thread.h"
#include "process/timers.h"

enum { CLAIM_WAIT_MS = 100, ABORT_LOCK_MS = 500 };
enum { PAUSE_NS = 20000000 }; /* between looks for other threads, once main has ended */

static bool is_stopping(struct cca_process *process)
{
    return atomic_load_explicit(&process->dumps.is_stopping, memory_order_acquire);
}

bool cca_dump_thread_ask(struct cca_process *process, unsigned wanted)
{
    struct cca_dumps *dumps = &process->dumps;

    if (!atomic_load_explicit(&dumps->has_thread, memory_order_acquire)) {
        return false;
    }
    atomic_fetch_or_explicit(&dumps->wanted, wanted, memory_order_release);
    return sem_post(&dumps->wake) == 0;
}

static void reset_peak(void *user, struct cca_observer *observer)
{
    (void)user;
    cca_stats_reset_peak(&observer->stats);
}

static void control(struct cca_process *process, unsigned wanted)
{
    struct cca_allocator *allocator = cca_process_allocator();

    if (allocator == NULL) {
        return;
    }
    if ((wanted & CCA_WANT_TRIM) != 0) {
        cca_allocator_empty_cache(allocator);
        cca_log(CCA_LOG_INFO, "idle cache given back on request");
    }
    for (int i = 0; (wanted & CCA_WANT_RESET_PEAKS) != 0 && i < CCA_DEVICES_MAX; i++) {
        (void)cca_allocator_with_observer(allocator, i, reset_peak, NULL);
    }
    (void)process;
}

/* The claim is held. */
static void write_wanted(struct cca_process *process, unsigned wanted)
{
    cca_dump_finish_pending(process);
    if ((wanted & CCA_WANT_ABORT_DUMP) != 0) {
        (void)cca_dump_write_within(process, "abort", NULL, ABORT_LOCK_MS);
    }
    if ((wanted & CCA_WANT_TERM_DUMP) != 0) {
        (void)cca_dump_write(process, "term", NULL);
    }
    if ((wanted & CCA_WANT_DUMP) != 0) {
        (void)cca_dump_write(process, "signal", NULL);
    }
}

/* As if the program had never been asked: by the signal's default action. */
static void end_by(int number)
{
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    kill(getpid(), number);
}

static void serve(struct cca_process *process)
{
    unsigned wanted = atomic_exchange_explicit(&process->dumps.wanted, 0, memory_order_acquire);
    bool has_claim = false;

    while (!is_stopping(process) && !(has_claim = cca_dump_claim(process, CLAIM_WAIT_MS))) {
    }
    if (has_claim && !is_stopping(process)) {
        write_wanted(process, wanted);
        cca_timers_write(process);
    }
    if (has_claim) {
        cca_dump_release(process);
    }
    if ((wanted & CCA_WANT_ABORT_DUMP) != 0) {
        atomic_fetch_add(&process->dumps.aborts_done, 1);
    }
    if ((wanted & CCA_WANT_TERM_DUMP) != 0) {
        end_by(SIGTERM);
    }
    if (!is_stopping(process)) {
        control(process, wanted);
        cca_timers_trim(process);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Until it is woken, or until `deadline_ns` of cca_clock_ns; 0: for ever. False: it was not woken.
 */
static bool wait_until(struct cca_process *process, uint64_t deadline_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                                   .tv_nsec = (long)(deadline_ns % 1000000000)};
    int rc;

    do {
        rc = deadline_ns == 0 ? sem_wait(&process->dumps.wake)
                              : sem_clockwait(&process->dumps.wake, CLOCK_MONOTONIC, &until);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* False: all other threads have ended, and this one must not keep the process alive. */
static bool wait_for_work(struct cca_process *process)
{
    uint64_t due_ns = cca_timers_next_ns(process);

    if (!cca_last_thread_main_has_ended() && wait_until(process, due_ns)) {
        return true;
    }
    while (cca_last_thread_main_has_ended() && (due_ns == 0 || cca_clock_ns() < due_ns)) {
        if (wait_until(process, earlier(due_ns, cca_clock_ns() + PAUSE_NS))) {
            return true;
        }
        if (cca_last_thread_is_alone()) {
            return false;
        }
    }
    return true;
}

static void *run(void *user)
{
    struct cca_process *process = user;

    pthread_setname_np(pthread_self(), "cca-dump");
    (void)cca_reentry_enter();
    cca_timers_start(process);
    while (wait_for_work(process)) {
        while (sem_trywait(&process->dumps.wake) == 0) {
        }
        serve(process);
    }
    cca_reentry_leave(); /* the C library calls exit in this thread now */
    return NULL;
}

int cca_dump_thread_start(struct cca_process *process)
{
    int rc = cca_helper_thread_start(run, process);

    if (rc == 0) {
        atomic_store_explicit(&process->dumps.has_thread, true, memory_order_release);
    }
    return rc;
}
