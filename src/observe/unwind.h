/* SPDX-License-Identifier: MIT */
/* Return addresses of the calling thread, by libunwind's unw_backtrace out of a privately loaded
 * library (RTLD_LOCAL: linking it would break C++ exceptions in some host programs). Never called
 * under a lock or in a signal handler. Holds no file descriptor and reads or writes none. */
#ifndef CCA_OBSERVE_UNWIND_H
#define CCA_OBSERVE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* How captures went, for the snapshot; counted without locks. */
struct cca_unwind_counts {
    uint64_t captures;
    uint64_t missing;   /* of these, without any frame */
    uint64_t truncated; /* of these, as deep as was asked for: there may be more frames */
    uint64_t
        fallback;  /* of these, by libgcc since libunwind could not be used any more, or at all */
    uint64_t slow; /* of these, above 5 us, after a thread's first 64 (x86-64 only) */
};

enum cca_unwind_method {
    CCA_UNWIND_AUTO, /* libunwind, else libgcc */
    CCA_UNWIND_LIBUNWIND,
    CCA_UNWIND_LIBGCC,
    CCA_UNWIND_FRAME_POINTERS, /* right only in code that keeps them */
    CCA_UNWIND_NONE
};

/* Loads and tests the unwinder; call once, outside any lock, at the first CUDA context. False when
 * there is none: captures then return 0 frames. `why_out` says what happened, for the log. Uses
 * malloc inside the loader. */
bool cca_unwind_start(enum cca_unwind_method method, const char **why_out);

/* What takes the stacks: "libunwind", "libgcc", "fp" or "none". */
const char *cca_unwind_name(void);

/* At most `max` (and 128) return addresses, innermost first, without the `skip` (at most 31)
 * innermost ones (the library's own); with skip 0 the first one lies in the caller. Returns 0 when
 * there is no unwinder, when the thread is inside a capture already, while another thread forks (a
 * capture may walk the loader's list, see base/loader_gate.h), or after cca_unwind_stop. Leaves
 * errno alone. No malloc but for a thread's first call. */
CCA_NOINLINE int cca_unwind_capture(uintptr_t *pcs, int max, int skip);

/* Before a module is unloaded: libunwind keeps in every thread how it walked where that was, and
 * nothing makes it forget. So what cca_unwind_distrust needs is made ready. Enters the loader. */
void cca_unwind_foresee_unload(void);

/* Something else lies now where a module was unloaded: from here on stacks are taken by libgcc,
 * which keeps nothing, or not at all. Does nothing where no such memory is kept. From any thread,
 * outside a capture; waits for nothing. */
void cca_unwind_distrust(void);

/* Where that was not foreseen, and stacks are not taken for that reason: takes them again. Enters
 * the loader. */
void cca_unwind_repair(void);

/* From now on every capture returns 0: in a forked child. Async-signal-safe. */
void cca_unwind_stop(void);

struct cca_unwind_counts cca_unwind_counts(void);

#endif
