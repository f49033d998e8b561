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

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "cca_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table behind the functions below; programs do not use it directly. Later versions only add
 * members at the end. */
struct cca_api_1_table {
    size_t struct_bytes; /* of the table that the library was built with */
    const char *(*version)(void);
    uint64_t (*memory_allocated)(int device);
    uint64_t (*max_memory_allocated)(int device);
    uint64_t (*memory_reserved)(int device);
    uint64_t (*max_memory_reserved)(int device);
    int (*stat_value)(int device, const char *key, int64_t *value_out);
    int (*reset_peak_memory_stats)(int device);
    int (*reset_accumulated_memory_stats)(int device);
    int (*empty_cache)(void);
    int (*dump_snapshot)(const char *path);
};

/* The table, or NULL when the library is absent. Looked up once per translation unit. */
static inline const struct cca_api_1_table *cca_api_1_find_(void)
{
    static const struct cca_api_1_table *table;
    static int is_looked_up;

    if (!__atomic_load_n(&is_looked_up, __ATOMIC_ACQUIRE)) {
        /* RTLD_DEFAULT, which <dlfcn.h> names only for GNU sources. */
        const struct cca_api_1_table *found = (const struct cca_api_1_table *)dlsym((void *)0,
                                                                                    "cca_api_1");

        __atomic_store_n(&table, found, __ATOMIC_RELAXED);
        __atomic_store_n(&is_looked_up, 1, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&table, __ATOMIC_RELAXED);
}

/* Whether the library in this process has the function. */
#define CCA_API_1_HAS_(table, member) \
    ((table) != NULL &&               \
     (table)->struct_bytes >= offsetof(struct cca_api_1_table, member) + sizeof((table)->member))

/* 1 when the library is in this process, in whatever mode; 0 when it is absent. */
static inline int cca_loaded(void)
{
    return cca_api_1_find_() != NULL;
}

/* The version of the library in this process, such as "0.1.0"; NULL when it is absent. What the
 * program was compiled with is CCA_VERSION_STRING. */
static inline const char *cca_version(void)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, version) ? table->version() : NULL;
}

/* Bytes in blocks that the program holds now (block sizes, hence at least what it asked for).
 * 0 when absent, and for a device that has not been used. As torch.cuda.memory_allocated. */
static inline uint64_t cca_memory_allocated(int device)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, memory_allocated) ? table->memory_allocated(device) : 0;
}

/* The most bytes that cca_memory_allocated has been, since the start or the last
 * cca_reset_peak_memory_stats. 0 as above. As torch.cuda.max_memory_allocated. */
static inline uint64_t cca_max_memory_allocated(int device)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, max_memory_allocated) ? table->max_memory_allocated(device) : 0;
}

/* Bytes obtained from the driver and not given back: the program's blocks and the cache.
 * 0 as above. As torch.cuda.memory_reserved. */
static inline uint64_t cca_memory_reserved(int device)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, memory_reserved) ? table->memory_reserved(device) : 0;
}

/* The most bytes that cca_memory_reserved has been, as for cca_max_memory_allocated. 0 as above.
 * As torch.cuda.max_memory_reserved. */
static inline uint64_t cca_max_memory_reserved(int device)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, max_memory_reserved) ? table->max_memory_reserved(device) : 0;
}

/* One number of torch.cuda.memory_stats, by its key there: "allocated_bytes.all.peak",
 * "num_alloc_retries", ... Bytes or a count, as the key's name says. `*value_out` is written only
 * on success.
 *   -EINVAL  `key` or `value_out` is NULL, or `device` is negative
 *   -ENODEV  the device has not been used
 *   -ENOENT  there is no such key
 *   -EBUSY   called by a signal handler that interrupted the library in this thread
 *   -ENOSYS  absent */
static inline int cca_stat_value(int device, const char *key, int64_t *value_out)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, stat_value) ? table->stat_value(device, key, value_out) : -ENOSYS;
}

/* Sets every peak of the device to the current value. -EINVAL, -ENODEV, -EBUSY, -ENOSYS as
 * above. As torch.cuda.reset_peak_memory_stats. */
static inline int cca_reset_peak_memory_stats(int device)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, reset_peak_memory_stats) ? table->reset_peak_memory_stats(device)
                                                          : -ENOSYS;
}

/* Sets to 0 what only grows: the totals allocated and freed, and the counts of retries and
 * failures. -EINVAL, -ENODEV, -EBUSY, -ENOSYS as above. As
 * torch.cuda.reset_accumulated_memory_stats. */
static inline int cca_reset_accumulated_memory_stats(int device)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, reset_accumulated_memory_stats)
               ? table->reset_accumulated_memory_stats(device)
               : -ENOSYS;
}

/* Gives every wholly free segment of every device back to the driver. This one makes CUDA calls: it
 * may wait for the devices, for blocks that were just freed at most CCA_OOM_WAIT_MS. 0 also where
 * nothing could be given back; -ENODEV when no device has been used; -ENOSYS when absent. As
 * torch.cuda.empty_cache. */
static inline int cca_empty_cache(void)
{
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, empty_cache) ? table->empty_cache() : -ENOSYS;
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
    const struct cca_api_1_table *table = cca_api_1_find_();

    return CCA_API_1_HAS_(table, dump_snapshot) ? table->dump_snapshot(path) : -ENOSYS;
}

#ifdef __cplusplus
}
#endif

#endif
