/* SPDX-License-Identifier: MIT */
/* Memory pools: chunks reserved from a device, handed out and taken back in stream order. */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "block.h"
#include "context.h"
#include "ranges.h"

/* used_bytes <= reserved_bytes; reserved - used lies in free, or waits for frees that have not run:
 * the pending blocks, whose memory a stream that is after the free may have already. */
struct CUmemPoolHandle_st {
    unsigned magic;
    int device;
    bool is_default;
    bool is_destroyed;
    bool is_imported;
    int handle_types;
    uint64_t max_bytes;
    /* The devices that may touch its memory. */
    unsigned access;
    bool may_follow_event;
    bool may_be_opportunistic;
    bool may_add_dependencies;
    uint64_t threshold_bytes;
    uint64_t reserved_bytes;
    uint64_t reserved_high_bytes;
    uint64_t used_bytes;
    uint64_t used_high_bytes;
    struct sim_ranges free;
    struct sim_pending_free *pending;
    struct CUmemPoolHandle_st *older;
};

bool sim_pool_is_valid(CUmemoryPool pool);
struct CUmemPoolHandle_st *sim_pool_create(int device);
struct CUmemPoolHandle_st *sim_pool_of_device(int device);
/* Memory for an operation that goes into queue, or NULL: the device is full. */
struct sim_block *sim_pool_take(struct CUmemPoolHandle_st *pool, size_t size_bytes,
                                struct sim_queue *queue);
/* A free of the block was put into its queue as that operation. */
void sim_pool_expect(struct sim_block *block, struct sim_op *op);
/* The block's memory is free now. */
void sim_pool_give(struct sim_block *block);
/* Somebody synchronised: pools go back to their thresholds. */
void sim_pool_settle(int device);

#endif
