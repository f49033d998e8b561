/* SPDX-License-Identifier: MIT */
/* The thread that writes snapshots. Signals only wake it; several that come while it works make at
 * least one more snapshot afterwards. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/reentry.h"
#include "process/dump.h"
#include "process/last_thread.h"

/* Symbol look-up and writers need little; the rest is room for the thread-local storage of the
 * program's libraries, which the C library takes from the stack. */
enum { THREAD_STACK_BYTES = 1 << 20, CLAIM_WAIT_MS = 100 };
enum { PAUSE_NS = 20000000 }; /* between looks for other threads, once main has ended */

static bool is_stopping(struct cca_process *process)
{
    return atomic_load_explicit(&process->dumps.is_stopping, memory_order_acquire);
}

static void serve(struct cca_process *process)
{
    struct cca_dumps *dumps = &process->dumps;

    while (!cca_dump_claim(process, CLAIM_WAIT_MS)) {
        if (is_stopping(process)) {
            return;
        }
    }
    if (!is_stopping(process)) {
        cca_dump_finish_pending(process);
        if (atomic_exchange_explicit(&dumps->signal_came, false, memory_order_acquire)) {
            (void)cca_dump_write(process, "signal", NULL);
        }
    }
    cca_dump_release(process);
}

/* False: all other threads have ended, and this one must not keep the process alive. */
static bool wait_for_work(struct cca_dumps *dumps)
{
    while (!cca_last_thread_main_has_ended()) {
        if (sem_wait(&dumps->wake) == 0) {
            return true;
        }
    }
    for (;;) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PAUSE_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (sem_timedwait(&dumps->wake, &until) == 0) {
            return true;
        }
        if (cca_last_thread_is_alone()) {
            return false;
        }
    }
}

static void *run(void *user)
{
    struct cca_process *process = user;

    pthread_setname_np(pthread_self(), "cca-dump");
    (void)cca_reentry_enter();
    for (;;) {
        if (!wait_for_work(&process->dumps)) {
            cca_reentry_leave(); /* the C library calls exit in this thread now */
            return NULL;
        }
        while (sem_trywait(&process->dumps.wake) == 0) {
        }
        serve(process);
    }
}

static int create(struct cca_process *process, size_t stack_bytes)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc = pthread_attr_init(&attr);

    if (rc != 0) {
        return -rc;
    }
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack_bytes != 0) {
        pthread_attr_setstacksize(&attr, stack_bytes);
    }
    rc = pthread_create(&thread, &attr, run, process);
    pthread_attr_destroy(&attr);
    return -rc;
}

int cca_dump_thread_start(struct cca_process *process)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = create(process, THREAD_STACK_BYTES);
    if (rc == -EINVAL) {
        rc = create(process, 0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) {
        atomic_store_explicit(&process->dumps.has_thread, true, memory_order_release);
    }
    return rc;
}
