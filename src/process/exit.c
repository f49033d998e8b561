/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/reentry.h"
#include "process/dump.h"

/* How long the end of the process may wait for a snapshot that is being written. */
enum { EXIT_WAIT_MS = 5000 };

/* False when another snapshot is still being written. */
static bool write_last(struct cca_process *process)
{
    if (!cca_dump_claim(process, EXIT_WAIT_MS)) {
        cca_log(CCA_LOG_WARN, "no snapshot at exit: another one is still being written");
        return false;
    }
    /* The claim is kept: nothing may start behind this. */
    cca_dump_finish_pending(process);
    if ((process->config.dump_on & CCA_DUMP_ON_EXIT) != 0) {
        (void)cca_dump_write(process, "exit", NULL);
    }
    return true;
}

void cca_exit_finish(struct cca_process *process)
{
    bool is_settled;

    atomic_store_explicit(&process->dumps.is_stopping, true, memory_order_release);
    if (!cca_reentry_enter()) {
        /* A signal handler that calls exit interrupted this thread, perhaps under a lock of ours.
         */
        cca_log(CCA_LOG_WARN, "no snapshot at exit: the program ended inside an allocation");
        return;
    }
    is_settled = write_last(process);
    if (process->config.summary) {
        cca_summary_print(process, is_settled);
    }
    cca_reentry_leave();
}
