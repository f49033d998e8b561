/* SPDX-License-Identifier: MIT */
/* What the other headers of this folder stand on: the table of functions that the library exports,
 * and the types in it. Programs include cca.h. */
#ifndef CCA_CCA_TABLE_H
#define CCA_CCA_TABLE_H

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One statistic: as it is, the most it has been, and all that was ever added and taken away. */
struct cca_figure {
    int64_t current, peak, allocated, freed;
};

/* The same of everything, and of blocks above 1 MiB and up to it. */
struct cca_figures {
    struct cca_figure all, large_pool, small_pool;
};

/* The caller sets struct_bytes of every struct that the library fills to the size it was compiled
 * with; members that the library does not know are left as they are. */

/* All of torch.cuda.memory_stats; bytes where the name says so, else counts. */
struct cca_memory_figures {
    size_t struct_bytes;
    struct cca_figures allocation;     /* blocks handed out and not yet freed by the caller */
    struct cca_figures segment;        /* segments obtained from the driver */
    struct cca_figures active;         /* handed out, or waiting for work on the device */
    struct cca_figures inactive_split; /* free blocks that share their segment with others */
    struct cca_figures allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes;
    struct cca_figures requested_bytes; /* what the callers asked for, of the active blocks */
    struct cca_figure oversize_allocations, oversize_segments; /* of max_split_size or more */
    int64_t num_alloc_retries;    /* driver allocations tried again after a release of the cache */
    int64_t num_ooms;             /* requests that failed for want of memory */
    int64_t num_sync_all_streams; /* blocking waits for all outstanding events */
    int64_t num_device_alloc, num_device_free;
    int64_t num_oom_rejections; /* requests refused before the driver was asked */
    int64_t max_split_size;     /* the setting at the start, bytes; -1: unlimited */
};

/* What belongs to one stream or one pool, as it is now. */
struct cca_sums_info {
    size_t struct_bytes;
    int64_t segments, reserved_bytes; /* obtained from the driver for it */
    int64_t live_blocks, live_bytes;  /* handed out and not yet freed */
    int64_t pending_bytes;            /* freed, and waiting for work on the device */
    int64_t free_blocks, free_bytes;  /* that only it may take */
};

struct cca_pool_options {
    size_t struct_bytes;
    int use_on_oom; /* requests outside the pool may borrow its free blocks before they fail */
    int no_split;   /* blocks are handed out whole */
};

/* Which requests go to the pool between cca_pool_use_begin and cca_pool_use_end. */
enum cca_pool_use {
    CCA_POOL_USE_THREAD, /* all of the calling thread */
    CCA_POOL_USE_STREAM, /* those on the stream */
    CCA_POOL_USE_CAPTURE /* those on the stream, which is about to be captured, and those of
                            cca_my_malloc on streams that join its capture */
};

/* A request failed for want of memory. */
struct cca_oom_notice {
    size_t struct_bytes;
    int device;
    int is_rejection;        /* refused by CCA_OOM_REJECT: nothing was released or asked for */
    uint64_t bytes;          /* of the segment that could not be had */
    uint64_t limit_bytes;    /* or the device's memory where there is none */
    uint64_t reserved_bytes; /* held by the library */
    uint64_t free_bytes;     /* of the device; 0 for a rejection, which does not ask */
    uint64_t total_bytes;
};

/* One entry of the history, as torch.cuda.memory._snapshot shows it. */
struct cca_trace_notice {
    size_t struct_bytes;
    const char *action; /* "alloc", "free_requested", ...; lives as long as the process */
    const char *api;    /* what the program called: "cudaMalloc", ... */
    int device;
    uint32_t thread;      /* kernel thread id */
    uint64_t addr;        /* oom: free bytes of the device */
    uint64_t size;        /* bytes asked for; segments: their size */
    uint64_t block_bytes; /* size of the block or segment */
    uint64_t stream;      /* id, 0: the legacy default stream or none */
    uint64_t pool_id[2];  /* {0, 0}: the default pool */
    int64_t time_us;      /* unix */
};

/* An allocation, a free, or one that failed: what a profiler draws. */
struct cca_memory_report {
    size_t struct_bytes;
    int device;
    int is_oom;
    uint64_t addr; /* of the block; 0: out of memory */
    int64_t bytes; /* size of the block, negative: freed; out of memory: what was tried */
    uint64_t total_allocated; /* held by the program on the device, after this */
    uint64_t total_reserved;  /* held by the library, from the driver, after this */
    uint64_t lost;            /* reports of the same call that were left out before this one */
};

struct cca_history_options {
    size_t struct_bytes;
    const char *enabled;      /* "off" (also NULL), "state" (one entry), "all" */
    const char *context;      /* call stacks: "none" (also NULL), "state", "alloc", "all" */
    uint64_t max_entries;     /* of each device; 0: as CCA_MAX_ENTRIES says */
    int clear_history;        /* what is there is forgotten first */
    const char *skip_actions; /* as CCA_SKIP_ACTIONS; NULL: none */
};

typedef void (*cca_frame_fn)(void *user, uint64_t address, const char *name, const char *filename,
                             int line);
typedef void (*cca_stat_fn)(void *user, const char *key, int64_t value);
typedef void (*cca_oom_observer_fn)(void *user, const struct cca_oom_notice *notice);
typedef void (*cca_trace_tracker_fn)(void *user, const struct cca_trace_notice *notice);
typedef int (*cca_free_memory_callback_fn)(void *user, int device, uint64_t bytes);
typedef void (*cca_memory_reporter_fn)(void *user, const struct cca_memory_report *report);

/* The table behind the functions of the other headers; programs do not use it directly. Later
 * versions only add members at the end. */
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
    int (*stat_name)(unsigned index, char *name_out, size_t name_bytes);
    int (*memory_stats)(int device, struct cca_memory_figures *figures_out);
    int (*each_stat)(int device, cca_stat_fn fn, void *user);
    int (*largest_free_block)(int device, uint64_t *bytes_out);
    int (*stream_stats)(int device, void *stream, struct cca_sums_info *sums_out);
    int (*set_settings)(const char *text);
    int (*set_memory_fraction)(int device, double fraction);
    double (*get_memory_fraction)(int device);
    void *(*my_malloc)(ptrdiff_t bytes, int device, void *stream);
    void (*my_free)(void *ptr, ptrdiff_t bytes, int device, void *stream);
    int (*record_stream)(void *ptr, void *stream);
    int (*pool_create)(int device, const struct cca_pool_options *options, uint64_t *pool_out);
    int (*pool_destroy)(int device, uint64_t pool);
    int (*pool_use_begin)(int device, uint64_t pool, int use, void *stream);
    int (*pool_use_end)(int device, uint64_t pool);
    int (*pool_stats)(int device, uint64_t pool, struct cca_sums_info *sums_out,
                      struct cca_figures *reserved_out);
    int (*pool_snapshot)(int device, uint64_t pool, const char *path);
    int (*attach_oom_observer)(cca_oom_observer_fn fn, void *user);
    int (*attach_trace_tracker)(cca_trace_tracker_fn fn, void *user);
    int (*attach_free_memory_callback)(cca_free_memory_callback_fn fn, void *user);
    int (*record_memory_history)(const struct cca_history_options *options);
    int (*mark)(const char *text);
    int (*set_user_metadata)(const char *text);
    const char *(*get_user_metadata)(void);
    int (*annotate)(const void *ptr, const char *text);
    int (*annotation)(int device, const char *name, int is_end);
    int (*allocation_traceback)(const void *ptr, cca_frame_fn fn, void *user);
    int (*snapshot_to_fd)(int fd, const char *format);
    int (*set_memory_reporter)(cca_memory_reporter_fn fn, void *user);
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

/* The body of a function: the member's answer, or what is said when the library lacks it. */
#define CCA_API_1_CALL_(member, absent, arguments)            \
    const struct cca_api_1_table *table_ = cca_api_1_find_(); \
    return CCA_API_1_HAS_(table_, member) ? table_->member arguments : (absent)

/* With per-thread default streams a null stream means the thread's own. */
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define CCA_STREAM_(stream) ((stream) != NULL ? (stream) : (void *)2)
#else
#define CCA_STREAM_(stream) (stream)
#endif

#ifdef __cplusplus
}
#endif

#endif
