/* SPDX-License-Identifier: MIT */
/* A naive account of who uses which memory, and the device under it: streams run their work in
 * order and independently of each other, events see exactly what was submitted before them. It
 * shares nothing with the allocator, and ends the test where memory has two unordered users. */
#ifndef CCA_TEST_MODEL_H
#define CCA_TEST_MODEL_H

#include "alloc/allocator_internal.h"
#include "support/test.h"

enum {
    MODEL_STREAMS_MAX = 48,
    MODEL_LIVE_MAX = 160,
    MODEL_USES_MAX = 8192,
    MODEL_EVENTS_MAX = 4096,
    MODEL_ALLOCS_MAX = 4096,
    MODEL_RESERVATIONS_MAX = 256,
    MODEL_NO_STREAM = -1
};

/* A piece of work on a range of memory, number `at` of its stream. */
struct model_use {
    uint64_t start, end;
    int stream;
    uint32_t at;
    bool is_freed; /* its memory by a call that waits natively */
};

struct model_block {
    uint64_t addr;
    size_t bytes;
    int stream;        /* whose order it was allocated in, or MODEL_NO_STREAM */
    uint64_t recorded; /* bit per stream */
};

struct model {
    /* The device. */
    uint32_t submitted[MODEL_STREAMS_MAX], done[MODEL_STREAMS_MAX];
    int stream_count;
    struct {
        uint32_t seen[MODEL_STREAMS_MAX];
        unsigned generation;
    } events[MODEL_EVENTS_MAX];
    unsigned event_count, generation;
    struct {
        uint64_t addr, bytes;
        uint64_t devices; /* others that may use it, where it is mapped */
        bool is_mapped;
    } allocs[MODEL_ALLOCS_MAX];
    unsigned alloc_count; /* pages that were mapped count one by one */
    bool can_map;
    uint64_t reserved_start[MODEL_RESERVATIONS_MAX], reserved_bytes[MODEL_RESERVATIONS_MAX];
    int reservation_count;
    uint64_t memory_bytes, used_bytes, next_addr;
    bool has_context_events;
    bool frees_wait;     /* the driver's free waits for running work, and may be used so */
    bool no_recording;   /* a stream is being captured: recording and waiting are errors */
    bool no_interfering; /* and so are queries and frees; else frees wait, as the program's own */
    int fail_allocs, fail_events; /* as many calls to come */
    /* The program. */
    struct model_block live[MODEL_LIVE_MAX];
    int live_count;
    struct model_use uses[MODEL_USES_MAX];
    int use_count;
};

void model_init(struct model *model, uint64_t memory_bytes);
struct cca_device model_device(struct model *model);

/* Stream ids of the allocator are those of the model plus one. */
static inline cca_key model_key(int stream)
{
    return stream == MODEL_NO_STREAM ? CCA_KEY_READY : (cca_key)stream + 1;
}

/* The allocator gave this out: checks that it is fresh memory of ours and that everybody who used
 * it before is done or comes before in the stream's order. */
void model_handed_out(struct model *model, uint64_t addr, size_t bytes, int stream);
struct model_block model_take(struct model *model, int index);

/* Work on the block goes to the stream; false when too much is under way already. */
bool model_work(struct model *model, const struct model_block *block, int stream);

/* Every mapped page is open to the devices of the mask, and to no other. */
void model_check_access(const struct model *model, uint64_t devices);

/* Bit per stream with unfinished work on the block. */
uint64_t model_users(const struct model *model, const struct model_block *block);

/* The program frees the block by a call that waits natively. */
void model_freed(struct model *model, const struct model_block *block);

void model_finish(struct model *model, int stream, uint32_t count);
void model_finish_all(struct model *model);

/* The context is gone with its memory and events. */
void model_reset(struct model *model);

#endif
