/* SPDX-License-Identifier: MIT */
/* Reports of allocations and frees to a profiler of the program's: see cca_set_memory_reporter. */
#ifndef CCA_PROCESS_REPORTS_H
#define CCA_PROCESS_REPORTS_H

#include "base/compiler.h"

struct cca_allocator;
struct cca_process;

/* What this thread has to deliver. */
extern CCA_THREAD_LOCAL int cca_reports_waiting;

void cca_reports_deliver(void);

/* After the guard was left: nothing is held any more. */
static inline void cca_reports_flush(void)
{
    if (CCA_UNLIKELY(cca_reports_waiting != 0)) {
        cca_reports_deliver();
    }
}

/* Once there is an allocator; the process's lock is held. */
void cca_reports_attach(struct cca_process *process, struct cca_allocator *allocator);

#endif
