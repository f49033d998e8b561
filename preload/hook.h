/* SPDX-License-Identifier: MIT */
/* What every hook shares: the rows of hooks.def as prototypes, function types and numbers, and the
 * frame of a call. No CUDA header may be included together with this one (see hooks.def). */
#ifndef CCA_PRELOAD_HOOK_H
#define CCA_PRELOAD_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/reentry.h"
#include "device/cuda_error.h"
#include "preload/original.h"
#include "process/process.h"
#include "process/reports.h"

struct cca_access;
struct cca_array_shape;
struct cca_array3d_shape;
struct cca_physical_shape;

/* clang-format off */
#define ROW(name, door, action, since, is_per_thread, params, args) \
    CCA_EXPORT int name params;                                     \
    typedef int(*name##_fn) params;
#include "preload/hooks.def"
/* clang-format on */

/* The genuine function of a row as `caller` would have reached it, typed; NULL when there is none.
 */
#define CCA_RUNTIME(name, caller) ((name##_fn)cca_original_runtime(CCA_ROW_##name, caller))
#define CCA_DRIVER(name)          ((name##_fn)cca_original_driver(CCA_ROW_##name))

/* Calls it, or answers as CUDA does when it cannot start. */
#define CCA_FORWARD_RUNTIME(name, caller, ...)                              \
    __extension__({                                                         \
        name##_fn real_ = CCA_RUNTIME(name, caller);                        \
        real_ != NULL ? real_(__VA_ARGS__) : (int)CCA_CUDA_NOT_INITIALIZED; \
    })
#define CCA_FORWARD_DRIVER(name, ...)                                       \
    __extension__({                                                         \
        name##_fn real_ = CCA_DRIVER(name);                                 \
        real_ != NULL ? real_(__VA_ARGS__) : (int)CCA_CUDA_NOT_INITIALIZED; \
    })

/* The same inside a hook's enter and leave: the real function may wait, and for that time the
 * thread is outside. */
#define CCA_OUTSIDE_DRIVER(name, ...)                        \
    __extension__({                                          \
        int depth_ = cca_reentry_suspend();                  \
        int result_ = CCA_FORWARD_DRIVER(name, __VA_ARGS__); \
        cca_reentry_resume(depth_);                          \
        result_;                                             \
    })

/* Where the program called from. Only in the exported function itself. */
#define CCA_CALLER() __builtin_return_address(0)

static inline void cca_hook_count(enum cca_row row, enum cca_coverage what)
{
    cca_process_count((int)row, what);
}

/* Starts our part of a call: false when the library is inactive or this thread is inside it
 * already; then the call is only forwarded, and cca_hook_leave must not be called. Nothing that may
 * call back into the program or wait without end happens before leave. */
static inline bool cca_hook_enter(enum cca_row row)
{
    if (!cca_process_is_active() || !cca_reentry_enter()) {
        return false;
    }
    cca_hook_count(row, CCA_COVERAGE_SEEN);
    return true;
}

/* The same for a second part, after the real call. */
static inline bool cca_hook_enter_again(void)
{
    return cca_process_is_active() && cca_reentry_enter();
}

static inline void cca_hook_leave(void)
{
    cca_reentry_leave();
    cca_reports_flush();
}

#endif
