/* SPDX-License-Identifier: MIT */
/* Statistics, with the names and meanings of torch.cuda.memory_stats. See cca.h for what holds for
 * all functions. */
#ifndef CCA_CCA_STATS_H
#define CCA_CCA_STATS_H

#include "cca_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes in blocks that the program holds now (block sizes, hence at least what it asked for).
 * 0 when absent, and for a device that has not been used. As torch.cuda.memory_allocated. */
static inline uint64_t cca_memory_allocated(int device)
{
    CCA_API_1_CALL_(memory_allocated, 0, (device));
}

/* The most bytes that cca_memory_allocated has been, since the start or the last
 * cca_reset_peak_memory_stats. 0 as above. As torch.cuda.max_memory_allocated. */
static inline uint64_t cca_max_memory_allocated(int device)
{
    CCA_API_1_CALL_(max_memory_allocated, 0, (device));
}

/* Bytes obtained from the driver and not given back: the program's blocks and the cache.
 * 0 as above. As torch.cuda.memory_reserved. */
static inline uint64_t cca_memory_reserved(int device)
{
    CCA_API_1_CALL_(memory_reserved, 0, (device));
}

/* The most bytes that cca_memory_reserved has been, as for cca_max_memory_allocated. 0 as above.
 * As torch.cuda.max_memory_reserved. */
static inline uint64_t cca_max_memory_reserved(int device)
{
    CCA_API_1_CALL_(max_memory_reserved, 0, (device));
}

/* One number of torch.cuda.memory_stats, by its key there: "allocated_bytes.all.peak",
 * "num_alloc_retries", ... Bytes or a count, as the key's name says. Those of a pool of
 * cca_pool_create: "reserved_bytes_by_private_pools.0_POOL.all.current". `*value_out` is written
 * only on success.
 *   -EINVAL  `key` or `value_out` is NULL, or `device` is negative
 *   -ENODEV  the device has not been used
 *   -ENOENT  there is no such key
 *   -EBUSY   called by a signal handler that interrupted the library in this thread
 *   -ENOMEM  no memory to copy the figures of the pools
 *   -ENOSYS  absent */
static inline int cca_stat_value(int device, const char *key, int64_t *value_out)
{
    CCA_API_1_CALL_(stat_value, -ENOSYS, (device, key, value_out));
}

/* The key with this position, from 0, in alphabetical order; the keys of pools are not among them.
 *   -EINVAL  `name_out` is NULL
 *   -ENOENT  there are not as many keys
 *   -ERANGE  the name does not fit into `name_bytes` (64 are enough)
 *   -ENOSYS  absent */
static inline int cca_stat_name(unsigned index, char *name_out, size_t name_bytes)
{
    CCA_API_1_CALL_(stat_name, -ENOSYS, (index, name_out, name_bytes));
}

/* All of them at one instant, nested. `figures_out->struct_bytes` is set by the caller.
 * -EINVAL, -ENODEV, -EBUSY, -ENOSYS as above. As torch.cuda.memory_stats_as_nested_dict. */
static inline int cca_memory_stats(int device, struct cca_memory_figures *figures_out)
{
    CCA_API_1_CALL_(memory_stats, -ENOSYS, (device, figures_out));
}

/* All of them at one instant, flat: calls `fn` for every key in alphabetical order, those of pools
 * included, on this thread with no lock held. The key's text is valid during the call.
 * -EINVAL, -ENODEV, -EBUSY, -ENOMEM, -ENOSYS as above. As torch.cuda.memory_stats. */
static inline int cca_each_stat(int device, cca_stat_fn fn, void *user)
{
    CCA_API_1_CALL_(each_stat, -ENOSYS, (device, fn, user));
}

/* Sets every peak of the device, those of pools included, to the current value. -EINVAL, -ENODEV,
 * -EBUSY, -ENOSYS as above. As torch.cuda.reset_peak_memory_stats. */
static inline int cca_reset_peak_memory_stats(int device)
{
    CCA_API_1_CALL_(reset_peak_memory_stats, -ENOSYS, (device));
}

/* Sets to 0 what only grows: the totals allocated and freed, and the counts of retries and
 * failures. -EINVAL, -ENODEV, -EBUSY, -ENOSYS as above. As
 * torch.cuda.reset_accumulated_memory_stats. */
static inline int cca_reset_accumulated_memory_stats(int device)
{
    CCA_API_1_CALL_(reset_accumulated_memory_stats, -ENOSYS, (device));
}

/* Bytes of the largest free block of the device, whichever pool and stream it belongs to: no larger
 * request is served without asking the driver. 0 where there is none. Takes time in proportion to
 * the number of free blocks. -EINVAL, -ENODEV, -EBUSY, -ENOSYS as above. */
static inline int cca_largest_free_block(int device, uint64_t *bytes_out)
{
    CCA_API_1_CALL_(largest_free_block, -ENOSYS, (device, bytes_out));
}

/* What belongs to a stream of the device now; 0 throughout for one that has never asked for memory.
 * `stream`: a cudaStream_t or CUstream. Asks the driver which stream that is (no wait), and takes
 * time in proportion to the number of blocks.
 *   -EINVAL  `sums_out` is NULL or too short, or the stream is not one of the device
 *   -ENODEV, -EBUSY as above
 *   -ENOSYS  absent, or the driver (before 12.0) cannot tell streams apart */
static inline int cca_stream_stats(int device, void *stream, struct cca_sums_info *sums_out)
{
    CCA_API_1_CALL_(stream_stats, -ENOSYS, (device, CCA_STREAM_(stream), sums_out));
}

#ifdef __cplusplus
}
#endif

#endif
