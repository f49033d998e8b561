/* SPDX-License-Identifier: MIT */
/* Allocation in stream order, the cache, and its settings. See cca.h for what holds for all
 * functions. */
#ifndef CCA_CCA_MEMORY_H
#define CCA_CCA_MEMORY_H

#include "cca_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory for work on a stream, from the cache: at least `bytes` bytes, aligned to 512. Never waits
 * but where it would otherwise fail, then at most CCA_OOM_WAIT_MS. NULL: no memory, `bytes` is 0 or
 * less, the device has not been used by this process (any CUDA call that brings its context up is
 * enough), the stream is not one of the device, called inside the library, or absent: then the
 * program calls cudaMallocAsync itself. Served also while the program captures graphs and after
 * caching has ended; with CCA_MODE=count straight from the driver.
 *
 * The library exports a function of the same name and type, and one for cca_my_free: the two that
 * torch.cuda.memory.CUDAPluggableAllocator wants. */
static inline void *cca_my_malloc(ptrdiff_t bytes, int device, void *stream)
{
    CCA_API_1_CALL_(my_malloc, NULL, (bytes, device, CCA_STREAM_(stream)));
}

/* Gives memory of cca_my_malloc back; usable again at once by requests on the stream that it was
 * allocated for. `stream`: on which the last use was; another stream than that of the allocation
 * counts as one more that used it (cca_record_stream). Memory of cudaMalloc is freed as by
 * cudaFree. `bytes` and `device` are not used. NULL is ignored; an address that is no live block,
 * with one line on stderr. Never waits, but for memory of cudaMalloc. */
static inline void cca_my_free(void *ptr, ptrdiff_t bytes, int device, void *stream)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    if (CCA_API_1_HAS_(table, my_free)) {
        table->my_free(ptr, bytes, device, CCA_STREAM_(stream));
    }
}

/* The memory is used on this stream, too: once freed in stream order it is not handed out before
 * all work that this stream has been given until the free is over. The stream must live until then;
 * inside a capture until the free. A pointer that is not the start of a live block is ignored, and
 * so is the stream of the allocation itself. Asks the driver which stream that is (no wait).
 * -EINVAL: `ptr` is NULL, or there is no such stream; -ENODEV, -EBUSY, -ENOSYS as
 * for cca_stream_stats. As torch.Tensor.record_stream. */
static inline int cca_record_stream(void *ptr, void *stream)
{
    CCA_API_1_CALL_(record_stream, -ENOSYS, (ptr, CCA_STREAM_(stream)));
}

/* Gives every wholly free segment of every device back to the driver. This one makes CUDA calls: it
 * may wait for the devices, for blocks that were just freed at most CCA_OOM_WAIT_MS. 0 also where
 * nothing could be given back, as while a capture is open; -ENODEV when no device has been used;
 * -EBUSY inside the library; -ENOSYS when absent. As torch.cuda.empty_cache. */
static inline int cca_empty_cache(void)
{
    CCA_API_1_CALL_(empty_cache, -ENOSYS, ());
}

/* New settings in PyTorch's grammar, as CCA_CONF: "max_split_size_mb:512,backend:native". A string
 * first sets max_split_size, max_non_split_rounding, roundup_power2_divisions and
 * garbage_collection_threshold back to their defaults, whatever gave them; all other settings keep
 * their value unless the string names them. Memory that is there stays as it was cut.
 *   -EINVAL  an item is wrong or unknown (one line on stderr for each): nothing has changed
 *   -E2BIG   longer than 1023 characters
 *   -ENODEV  the library is off, or the process was forked
 *   -EBUSY   called inside the library
 *   -ENOSYS  absent
 * Before any device has been used the settings are kept for those to come. As
 * torch.cuda.memory._set_allocator_settings. */
static inline int cca_set_settings(const char *text)
{
    CCA_API_1_CALL_(set_settings, -ENOSYS, (text));
}

/* The most of the device's memory that the process may hold through the library, from 0 to 1; 1: no
 * limit but CCA_MEMORY_LIMIT. What is held above it already stays. Asks the driver for the size.
 * -EINVAL, -ENODEV, -EBUSY, -ENOSYS as above. As torch.cuda.set_per_process_memory_fraction. */
static inline int cca_set_memory_fraction(int device, double fraction)
{
    CCA_API_1_CALL_(set_memory_fraction, -ENOSYS, (device, fraction));
}

/* The fraction; 1 for a device that has not been used, and when absent. As
 * torch.cuda.get_per_process_memory_fraction. */
static inline double cca_get_memory_fraction(int device)
{
    CCA_API_1_CALL_(get_memory_fraction, 1, (device));
}

#ifdef __cplusplus
}
#endif

#endif
