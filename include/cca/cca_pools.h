/* SPDX-License-Identifier: MIT */
/* Private pools: memory that serves only the requests routed to it, such as those of one graph. See
 * cca.h for what holds for all functions. */
#ifndef CCA_CCA_POOLS_H
#define CCA_CCA_POOLS_H

#include "cca_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A new pool of the device. It lives until cca_pool_destroy: for as long as graphs that were
 * captured into it may run. `options` may be NULL. `*pool_out` is never 0.
 *   -EINVAL  `pool_out` is NULL, `options` is too short, or `device` is negative
 *   -ENODEV  the device has not been used
 *   -ENOMEM, -EBUSY (inside the library), -ENOSYS (absent)
 * As torch.cuda.MemPool. */
static inline int cca_pool_create(int device, const struct cca_pool_options *options,
                                  uint64_t *pool_out)
{
    CCA_API_1_CALL_(pool_create, -ENOSYS, (device, options, pool_out));
}

/* Nobody needs the pool any more: its free memory goes back to the driver, at once where the device
 * is done with everything, else with all other idle memory; blocks that are live stay valid, and
 * their memory follows. Makes CUDA calls, and does not wait for the device.
 * -ENOENT: there is no such pool; -EBUSY also while it is in use; others as above. */
static inline int cca_pool_destroy(int device, uint64_t pool)
{
    CCA_API_1_CALL_(pool_destroy, -ENOSYS, (device, pool));
}

/* From now on requests go to the pool: see enum cca_pool_use; cudaMalloc and cudaMallocAsync are
 * routed like cca_my_malloc, but cudaMallocAsync on a stream that is being captured is the
 * driver's own (memory of the graph). Of several uses the newest that takes a request counts.
 * `stream` is read for STREAM and CAPTURE.
 *
 * A capture: CCA_POOL_USE_CAPTURE before cudaStreamBeginCapture, cca_pool_use_end after
 * cudaStreamEndCapture. In between nothing of the device is waited for or given back, and blocks
 * freed with uses on other streams come back after the end (or earlier: CCA_GRAPH_CAPTURE_REUSE).
 * Work that is captured on memory outside of such a pool keeps it only as long as it is live.
 *   -EINVAL  no such use, or the stream is not one of the device
 *   -ENOENT  there is no such pool
 *   -EEXIST  it is in use already
 *   others as above; -ENOSYS also when the driver (before 12.0) cannot tell streams apart
 * As torch.cuda.use_mem_pool and torch.cuda.graph. */
static inline int cca_pool_use_begin(int device, uint64_t pool, enum cca_pool_use use, void *stream)
{
    CCA_API_1_CALL_(pool_use_begin, -ENOSYS, (device, pool, (int)use, CCA_STREAM_(stream)));
}

/* The end of that use, on any thread. -ENOENT: there is none. */
static inline int cca_pool_use_end(int device, uint64_t pool)
{
    CCA_API_1_CALL_(pool_use_end, -ENOSYS, (device, pool));
}

/* What the pool holds now, and what it has reserved as a statistic. Either may be NULL.
 * -ENOENT, -EINVAL (`sums_out` is too short), -ENODEV, -EBUSY, -ENOSYS as above. */
static inline int cca_pool_stats(int device, uint64_t pool, struct cca_sums_info *sums_out,
                                 struct cca_figures *reserved_out)
{
    CCA_API_1_CALL_(pool_stats, -ENOSYS, (device, pool, sums_out, reserved_out));
}

/* Writes a snapshot of the pool alone: its segments and its events. `path` and the errors as for
 * cca_dump_snapshot; -ENOENT: there is no such pool. As torch.cuda.MemPool.snapshot. */
static inline int cca_pool_snapshot(int device, uint64_t pool, const char *path)
{
    CCA_API_1_CALL_(pool_snapshot, -ENOSYS, (device, pool, path));
}

#ifdef __cplusplus
}
#endif

#endif
