/* SPDX-License-Identifier: MIT */
/* The copied state of the process that a snapshot is written from: plain arrays, one arena, no
 * pointer into anything live. Filled in three steps on one thread: capture copies devices,
 * segments, blocks and history under the locks, with the stack table's ids; cca_model_sort orders
 * them; cca_symbolize_model names the stacks, with no lock held. Writers then only read. Texts
 * belong to the arena or live as long as the process; NULL is written as an empty text. */
#ifndef CCA_SNAPSHOT_MODEL_H
#define CCA_SNAPSHOT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/sysmem.h"
#include "observe/modules.h"
#include "observe/pool_table.h"
#include "observe/stats.h"
#include "observe/texts.h"
#include "observe/trace_ring.h"
#include "observe/unwind.h"
#include "snapshot/places.h"

enum { CCA_MODEL_DIVISIONS = 16 };

enum cca_model_state { CCA_MODEL_INACTIVE, CCA_MODEL_ALLOCATED, CCA_MODEL_PENDING_FREE };

struct cca_model_block {
    uint64_t address, size;
    uint64_t requested_size; /* of the last hand-out; 0 if there was none */
    uint64_t alloc_time_ns;  /* cca_clock_ns; 0 = never handed out */
    uint32_t stack;          /* see cca_model */
    uint32_t thread;
    enum cca_model_state state;
    bool is_exported; /* to another process, and not freed since */
};

/* Identity: the segment's blocks, in address order, cover it without gaps. */
struct cca_model_segment {
    int device; /* ordinal */
    bool is_small, is_expandable;
    uint64_t address, total_size;
    uint64_t stream;
    uint64_t pool_id[2]; /* {0, 0} = default */
    uint64_t context;    /* id of the context that owns it */
    uint32_t stack;      /* of the driver allocation; see cca_model */
    size_t first_block;  /* in cca_model.blocks; contiguous */
    size_t block_count;
};

/* What passed through to the driver, and what caching would have made of it (CCA_MODE=count). */
struct cca_model_estimate {
    int64_t allocs, frees, alloc_ns, free_ns;
    int64_t hits, driver_allocs, driver_frees, reserved_peak;
};

struct cca_model_device {
    int ordinal;
    bool is_partial;                  /* its lock could not be had in time: parts are missing */
    uint64_t total_bytes, free_bytes; /* as the driver says, not adjusted; 0 and 0 = unknown */
    uint64_t pending_bytes;           /* freed, waiting for the device */
    uint64_t limit_bytes;             /* the most that may be held now; 0: no limit */
    double memory_fraction;           /* of the device's memory, that the limit comes of */
    uint64_t free_time_ns;            /* when free_bytes was asked for; 0 = never */
    uint64_t peak_time_ns;    /* when allocated_bytes was last at its maximum; 0 = not known */
    uint64_t skipped_entries; /* not kept since the settings say so */
    uint64_t cut_entries;     /* of the lost ones, those only the snapshot leaves out */
    uint64_t lost_entries;    /* events recorded but not in `entries`: overwritten, refused, cut */
    struct cca_stats stats;
    struct cca_counters counters;
    struct cca_model_estimate estimate; /* where the model has one */
    struct cca_unwind_counts unwind;
    struct cca_pool_row *pools; /* [i]: of the pool that events call i + 1 */
    size_t pool_count;
    struct cca_trace_entry *entries; /* oldest first; .stack: see cca_model */
    size_t entry_count;
};

/* One for each distinct return address that occurs, or for each module that was there. */
struct cca_model_frame {
    const char *name, *filename;
    uint64_t address;
    int line; /* 0 = not known */
    int life; /* in `places`, of the module it was in; -1 = none */
};

struct cca_model_stack {
    size_t first; /* in cca_model.stack_frames, innermost first */
    size_t count;
};

/* Calls through one hook: seen at all, served from the cache, passed to CUDA. missed: look-ups that
 * handed out another form of the function than is known here. */
struct cca_model_hook {
    const char *api;
    const char *door; /* "runtime", "driver" */
    uint64_t seen, served, passed, missed;
};

struct cca_model_setting {
    const char *name, *value;
};

/* `allocator_settings` as PyTorch writes it. Whether the history overflowed follows from the
 * devices' lost_entries. */
struct cca_model_allocator_settings {
    const char *conf_text;
    int64_t max_split_size; /* bytes, -1 = unlimited */
    double garbage_collection_threshold;
    bool expandable_segments;
    bool release_lock_on_cudamalloc;
    bool pinned_use_cuda_host_register;
    bool graph_capture_record_stream_reuse;
    int64_t pinned_num_register_threads;
    int64_t roundup_power2_divisions[CCA_MODEL_DIVISIONS]; /* [i]: sizes from 2^i MiB */
    int64_t trace_alloc_max_entries;
};

/* Memory that is not ours, by the call it was obtained with and the object that made it. */
struct cca_model_unmanaged {
    int device;
    const char *api, *library;
    uint64_t bytes, count;
};

/* A region of a profiler: see cca_annotation_begin. */
struct cca_model_annotation {
    uint64_t time_ns;
    int device;
    bool is_end;
    const char *name;
};

/* Why a request failed; `device` -1: the snapshot is not about one. */
struct cca_model_oom {
    int device;
    uint64_t requested_bytes; /* what the caller asked for */
    uint64_t segment_bytes;   /* what the driver was asked for; 0 = was not asked */
    uint64_t limit_bytes;     /* 0 = none */
    uint64_t largest_free_bytes;
    uint64_t stranded_bytes; /* free, in segments that are partly in use */
    const char *advice;      /* which setting would help, "" = none would */
};

/* Every `stack` field holds a stack table id until cca_symbolize_model, afterwards 1 + the index in
 * `stacks`; 0 = none, before and after. */
struct cca_model {
    struct cca_arena arena; /* owns every array */

    const char *version;             /* the library's own */
    const char *host, *program;      /* program: path of the executable */
    const char *const *command_line; /* argv, or none when it was asked to be left out */
    size_t command_line_count;
    int pid, rank;                       /* rank: -1 = none */
    int64_t start_time_us, dump_time_us; /* unix */
    int64_t wall_base_us;                /* unix time in us where cca_clock_ns is 0 */
    const char *cause;                   /* "signal", "exit", "oom", ... */
    int driver_version, runtime_version; /* as CUDA numbers them; 0 = not known */

    struct cca_model_hook *hooks;
    size_t hook_count;
    struct cca_model_setting *settings;
    size_t setting_count;
    const char **messages; /* what was said to the user, oldest first */
    size_t message_count;
    struct cca_model_allocator_settings allocator_settings;

    bool has_estimate;
    const char *unwinder;   /* what takes call stacks */
    const char *symbolized; /* "none", "names" or "lines" */
    uint64_t mark_ns;       /* cca_clock_ns of the program's last mark; 0 = none */
    bool is_partial;        /* a device is */
    struct cca_model_oom oom;
    const struct cca_texts *texts; /* of the entries' `metadata`; insert-only, NULL = no texts */
    struct cca_model_unmanaged *unmanaged;
    size_t unmanaged_count;
    struct cca_model_annotation *annotations; /* oldest first */
    size_t annotation_count;

    uint64_t only_pool[2]; /* all that was kept, {0, 0}: everything; see cca_model_keep_pool */
    struct cca_model_device *devices; /* ascending by ordinal once sorted, each ordinal once */
    size_t device_count;
    struct cca_model_segment *segments; /* by device, then address, once sorted */
    size_t segment_count;
    struct cca_model_block *blocks;
    size_t block_count;

    /* From here on filled by cca_symbolize_model. */
    struct cca_modules modules; /* loaded now */
    struct cca_places places;
    const struct cca_module **gone; /* unloaded, and frames are in them */
    size_t gone_count;
    struct cca_model_frame *frames;
    size_t frame_count;
    uint32_t *stack_frames; /* indices in `frames` */
    size_t stack_frame_count;
    struct cca_model_stack *stacks;
    size_t stack_count;
};

/* Zeroes the model and reserves address space for its arena; -ENOMEM. */
int cca_model_init(struct cca_model *model, size_t reserve_bytes) CCA_MUST_CHECK;
void cca_model_fini(struct cca_model *model);

/* `count` zeroed items from the arena, not NULL for 0; NULL when it is full. */
CCA_MUST_CHECK void *cca_model_array(struct cca_model *model, size_t count, size_t item_bytes);

/* Who holds the device: total - free = reserved + unmanaged + other; reserved = allocated + pending
 * + cached. The driver was asked at another moment, so nothing is taken for less than 0. */
struct cca_model_shares {
    uint64_t reserved, allocated, cached, unmanaged, other;
};
struct cca_model_shares cca_model_shares(const struct cca_model *model,
                                         const struct cca_model_device *device);

/* A copy of the text, or "" when `text` is NULL or the arena is full. */
/* Leaves of the model only what belongs to one private pool of a device: its segments, its events,
 * its figures. The device's own statistics stay, and are those of the whole device. */
void cca_model_keep_pool(struct cca_model *model, int device, const uint64_t id[2]);

const char *cca_model_text(struct cca_model *model, const char *text);

/* Orders devices by ordinal, segments by device and address, and each segment's blocks by
 * address. No lock needed, no memory taken. */
void cca_model_sort(struct cca_model *model);

/* Unix microseconds of a cca_clock_ns value. */
static inline int64_t cca_model_wall_us(const struct cca_model *model, uint64_t time_ns)
{
    return model->wall_base_us + (int64_t)(time_ns / 1000);
}

/* The stack of a `stack` field, or NULL. Only after cca_symbolize_model. */
static inline const struct cca_model_stack *cca_model_stack_of(const struct cca_model *model,
                                                               uint32_t stack)
{
    return stack != 0 && stack <= model->stack_count ? &model->stacks[stack - 1] : NULL;
}

#endif
