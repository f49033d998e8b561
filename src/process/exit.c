/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/reentry.h"
#include "observe/observer.h"
#include "process/dump.h"
#include "process/leaks.h"
#include "process/metrics.h"
#include "snapshot/capture.h"

/* How long the end of the process may wait for a snapshot that is being written. */
enum { EXIT_WAIT_MS = 5000 };

static void count_live(void *user, struct cca_observer *observer)
{
    *(int64_t *)user += observer->stats.allocation[CCA_STAT_ALL].current;
}

static bool has_leaks(void)
{
    struct cca_allocator *allocator = cca_process_allocator();
    int64_t live = 0;

    for (int i = 0; allocator != NULL && i < CCA_DEVICES_MAX; i++) {
        (void)cca_allocator_with_observer(allocator, i, count_live, &live);
    }
    return live > 0;
}

/* The claim is held. The last copy with its stacks named, and written where that is wanted; NULL
 * when nobody needs it. */
static struct cca_dump_job *write_last(struct cca_process *process)
{
    bool is_written = (process->config.dump_on & CCA_DUMP_ON_EXIT) != 0;
    struct cca_dump_job *job;

    cca_dump_finish_pending(process);
    if (process->config.metrics_file[0] != '\0') {
        cca_metrics_write(process);
    }
    if (!is_written && !(process->config.summary && has_leaks())) {
        return NULL;
    }
    job = cca_dump_copy(process, "exit", CCA_CAPTURE_LOCK_MS);
    if (job == NULL) {
        cca_log(CCA_LOG_WARN, "no snapshot: not enough memory to copy the state");
        return NULL;
    }
    cca_dump_name(process, job);
    if (is_written) {
        (void)cca_dump_write_files(process, job, NULL);
    }
    return job;
}

void cca_exit_finish(struct cca_process *process)
{
    struct cca_dump_job *job = NULL;
    bool is_settled;

    atomic_store_explicit(&process->dumps.is_stopping, true, memory_order_release);
    if (!cca_reentry_enter()) {
        /* A signal handler that calls exit interrupted this thread, perhaps under a lock of ours.
         */
        cca_log(CCA_LOG_WARN, "no snapshot at exit: the program ended inside an allocation");
        return;
    }
    /* The claim is kept: nothing may start behind this. */
    is_settled = cca_dump_claim(process, EXIT_WAIT_MS);
    if (is_settled) {
        job = write_last(process);
    } else {
        cca_log(CCA_LOG_WARN, "no snapshot at exit: another one is still being written");
    }
    if (process->config.summary) {
        cca_summary_print(process, is_settled, job != NULL ? cca_dump_model(job) : NULL);
    }
    cca_process_log_coverage();
    cca_dump_discard(job);
    cca_reentry_leave();
}
