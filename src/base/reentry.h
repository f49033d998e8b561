/* SPDX-License-Identifier: MIT */
/* "This thread is inside the library": what it calls from there passes through unhooked. */
#ifndef CCA_BASE_REENTRY_H
#define CCA_BASE_REENTRY_H

#include <stdbool.h>

#include "base/compiler.h"

extern CCA_THREAD_LOCAL int cca_reentry_depth;

/* False when the thread is inside already; then leave must not be called. */
static inline bool cca_reentry_enter(void)
{
    if (cca_reentry_depth != 0) {
        return false;
    }
    cca_reentry_depth = 1;
    return true;
}

static inline void cca_reentry_leave(void)
{
    cca_reentry_depth = 0;
}

/* Around a call of ours that may wait: a signal handler that leaves by exit from there, or frees,
 * finds the thread outside, as in the program's own calls. Only with no lock held. Returns what
 * resume takes. */
static inline int cca_reentry_suspend(void)
{
    int depth = cca_reentry_depth;
    cca_reentry_depth = 0;
    return depth;
}

static inline void cca_reentry_resume(int depth)
{
    cca_reentry_depth = depth;
}

static inline bool cca_reentry_inside(void)
{
    return cca_reentry_depth != 0;
}

#endif
