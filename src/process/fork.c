/* SPDX-License-Identifier: MIT */
/* A forked child cannot use CUDA once its parent did: there the library goes quiet. A child of a
 * parent that never had a context may start on its own. */
#include <pthread.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/loader_gate.h"
#include "base/reentry.h"
#include "observe/unwind.h"
#include "process/state.h"

/* How long a fork may wait for the dump thread to leave the loader's list. */
enum { DUMP_WAIT_MS = 2000 };

static CCA_THREAD_LOCAL bool closed_gate, holds_process, holds_dumps;

/* The child of a fork that falls into dl_iterate_phdr on the dump thread would inherit the loader's
 * lock as taken. */
static bool take_dump_lock(struct cca_process *process)
{
    for (int i = 0; i < DUMP_WAIT_MS; i++) {
        if (cca_lock_try(&process->dumps.lock)) {
            return true;
        }
        cca_clock_sleep_us(1000);
    }
    return false;
}

static void prepare(void)
{
    struct cca_process *process = cca_process_state();
    struct cca_allocator *allocator;

    closed_gate = cca_process_is_active();
    if (closed_gate) {
        (void)cca_loader_gate_close();
    }
    /* A signal handler that forks may have interrupted this very thread under one of our locks. */
    holds_process = cca_process_is_active() && !cca_reentry_inside();
    if (!holds_process) {
        return;
    }
    cca_lock_take(&process->lock);
    holds_dumps = take_dump_lock(process);
    allocator = atomic_load_explicit(&process->allocator, memory_order_acquire);
    if (allocator != NULL) {
        cca_allocator_fork_prepare(allocator);
    }
}

static void parent(void)
{
    struct cca_process *process = cca_process_state();
    struct cca_allocator *allocator = atomic_load_explicit(&process->allocator,
                                                           memory_order_acquire);

    if (holds_process) {
        if (allocator != NULL) {
            cca_allocator_fork_parent(allocator);
        }
        if (holds_dumps) {
            cca_lock_drop(&process->dumps.lock);
        }
        cca_lock_drop(&process->lock);
        holds_process = holds_dumps = false;
    }
    if (closed_gate) {
        cca_loader_gate_open();
        closed_gate = false;
    }
}

/* Memory of the parent's heaps and dumps is left as it is: pages are shared until written. */
static void go_quiet(struct cca_process *process, struct cca_allocator *allocator)
{
    atomic_store_explicit(&process->is_active, false, memory_order_release);
    cca_unwind_stop();
    if (allocator != NULL && holds_process) {
        cca_allocator_fork_child(allocator);
    }
    cca_signals_remove(process);
    atomic_store_explicit(&process->dumps.is_stopping, true, memory_order_relaxed);
    atomic_store_explicit(&process->dumps.has_thread, false, memory_order_relaxed);
    atomic_store_explicit(&process->dumps.pending, NULL, memory_order_relaxed);
}

/* The thread that forked is the one that holds the locks on both sides; only what it could not have
 * in time belongs to a thread that the child lacks. */
static void drop_dump_lock(struct cca_process *process)
{
    if (holds_dumps) {
        cca_lock_drop(&process->dumps.lock);
    } else {
        cca_lock_reset(&process->dumps.lock);
    }
}

static void child(void)
{
    struct cca_process *process = cca_process_state();
    struct cca_allocator *allocator = atomic_load_explicit(&process->allocator,
                                                           memory_order_acquire);
    bool was_used = allocator != NULL ||
                    atomic_load_explicit(&process->start, memory_order_acquire) != CCA_START_NEVER;

    cca_loader_gate_reset();
    closed_gate = false;
    if (!cca_process_is_active()) {
        return;
    }
    /* Locks that were not taken for the fork are left as they are: nothing takes them any more, and
     * the code that was interrupted under one of them may still give it back. */
    if (was_used || !holds_process) {
        go_quiet(process, allocator);
    } else {
        cca_identity_renew(&process->identity);
        /* The child has none of the parent's memory, and the accounts are the one thing that is in
         * use before the first call is served. */
        cca_unmanaged_init(&process->unmanaged);
    }
    if (holds_process) {
        drop_dump_lock(process);
        cca_lock_drop(&process->lock);
    }
    holds_process = holds_dumps = false;
    cca_process_forget_thread();
}

void cca_fork_register(void)
{
    /* Without room for handlers a fork does without them. */
    (void)pthread_atfork(prepare, parent, child);
}
