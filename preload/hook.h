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
}

/* A free that got no enter: it came from inside a call of ours on the same thread, as from a signal
 * handler, while the block's lock may be held. Memory of ours stays live then and the free counts
 * as done: given to the driver it would take a whole segment along. */
bool cca_hook_must_keep(uint64_t addr);

/* The real free of memory that was only accounted for, which the estimate of CCA_MODE=count hears
 * of: begins before it, and ended after it with its result, which is returned. */
struct cca_passing {
    int token; /* -1: nothing is known of the address */
    uint64_t began_ns;
};

static inline struct cca_passing cca_hook_pass_begins(uint64_t addr,
                                                      const struct cca_request *request)
{
    struct cca_passing passing = {.token = cca_process_passed_free(addr, request)};
    passing.began_ns = passing.token >= 0 ? cca_clock_ns() : 0;
    return passing;
}

static inline int cca_hook_pass_ended(const struct cca_passing *passing, int result)
{
    if (passing->token >= 0) {
        cca_process_passed_free_took(passing->token, cca_clock_ns() - passing->began_ns);
    }
    return result;
}

/* A free through any door: what the allocator decided. `request` is described already. */
enum cca_free_result cca_hook_free(enum cca_row row, uint64_t addr,
                                   const struct cca_request *request);

#endif
