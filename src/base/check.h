/* SPDX-License-Identifier: MIT */
/* Three strengths of assertion.
 *   CCA_ASSERT    debug builds only: broken invariants of ours; prints and aborts
 *   CCA_DEBUG_FULL marks walks that are too slow for every debug build (CCA_VERIFY=1 turns them on)
 *   CCA_EXPECT    all builds: evaluates to the condition and says once per place, in the log, that
 *                 it failed; the caller goes on on a safe path. Never aborts the host program. */
#ifndef CCA_BASE_CHECK_H
#define CCA_BASE_CHECK_H

#include <stdbool.h>

#include "base/compiler.h"

#ifdef NDEBUG
#define CCA_ASSERT(cond) ((void)sizeof((cond) ? 1 : 0))
#else
#define CCA_ASSERT(cond) (CCA_LIKELY(cond) ? (void)0 : cca_check_failed(#cond, __FILE__, __LINE__))
#endif

#define CCA_EXPECT(cond)                                      \
    (CCA_LIKELY(cond) ? true : __extension__({                \
        static int said_;                                     \
        cca_expect_failed(&said_, #cond, __FILE__, __LINE__); \
        false;                                                \
    }))

/* Prints the broken condition and aborts. */
CCA_COLD _Noreturn void cca_check_failed(const char *cond, const char *file, int line);

/* Prints the broken condition once per `said`. */
CCA_COLD void cca_expect_failed(int *said, const char *cond, const char *file, int line);

#endif
