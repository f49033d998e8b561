/* SPDX-License-Identifier: MIT */
/* The C interface of cca, for programs that want to take part.
 *
 * Everything here is `static inline` over one table of functions, looked up by name in the running
 * process at first use: a program needs no link flag, no CUDA header, and runs unchanged when the
 * library is not there. Then every function returns what its text says for "absent".
 *
 * Unless a function says otherwise: it may be called from any thread; it takes locks of the library
 * for moments only and calls nothing of the program; it makes no CUDA call and never waits for a
 * device; errors are 0 or a negative errno; errno itself is not touched. No function may be called
 * from a signal handler, nor from a CUDA host function or stream callback.
 *
 * `device` is the ordinal as cudaGetDevice reports it, from 0. There is no "current device": that
 * would take a CUDA call.
 *
 * Works as C11 and as C++17, in position-independent, fixed-address and static programs (in static
 * ones the library is always absent). */
#ifndef CCA_CCA_H
#define CCA_CCA_H

#include "cca_history.h"
#include "cca_memory.h"
#include "cca_observers.h"
#include "cca_pools.h"
#include "cca_stats.h"
#include "cca_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 1 when the library is in this process, in whatever mode; 0 when it is absent. */
static inline int cca_loaded(void)
{
    return cca_api_1_find_() != NULL;
}

/* The version of the library in this process, such as "0.1.0"; NULL when it is absent. What the
 * program was compiled with is CCA_VERSION_STRING. */
static inline const char *cca_version(void)
{
    CCA_API_1_CALL_(version, NULL, ());
}

/* Writes a snapshot now, on the calling thread; it is complete when the function returns. `path`:
 * as CCA_DUMP_FILE, without the suffix of the format, which is added; an existing file is not
 * overwritten, `-1`, `-2` is put before the suffix. NULL: where CCA_DUMP_FILE says.
 * Takes the time that writing a file takes; no lock of the library is held meanwhile.
 *   -ENODEV  no device has been used
 *   -EBUSY   another snapshot did not end for seconds
 *   -ENOSYS  absent
 *   or the error of writing the file.
 * As torch.cuda.memory._dump_snapshot. */
static inline int cca_dump_snapshot(const char *path)
{
    CCA_API_1_CALL_(dump_snapshot, -ENOSYS, (path));
}

#ifdef __cplusplus
}
#endif

#endif
