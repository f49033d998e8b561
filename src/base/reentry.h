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

static inline bool cca_reentry_inside(void)
{
    return cca_reentry_depth != 0;
}

#endif
