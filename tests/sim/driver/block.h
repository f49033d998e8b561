/* SPDX-License-Identifier: MIT */
/* Blocks: every piece of memory that CUDA knows, by address. */
#ifndef SIM_BLOCK_H
#define SIM_BLOCK_H

#include "tree.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

enum sim_block_kind {
    SIM_BLOCK_DEVICE,
    SIM_BLOCK_POOL,
    SIM_BLOCK_GRAPH,
    SIM_BLOCK_MAPPED,
    SIM_BLOCK_ARRAY,
    SIM_BLOCK_IMPORTED,
    SIM_BLOCK_MANAGED,
    SIM_BLOCK_HOST,
    SIM_BLOCK_REGISTERED
};

struct sim_queue;

/* [node.key, node.end) is the block. A block is dead once its memory is given back; operations that
 * were enqueued for it hold references and can tell. is_freeing: a free waits in a stream. Those
 * that can be found by their address are in one list. */
struct sim_block {
    struct sim_node node;
    struct sim_block *previous;
    struct sim_block *next;
    enum sim_block_kind kind;
    int device;
    struct CUctx_st *context;
    struct CUmemPoolHandle_st *pool;
    struct sim_graph_memory *graph_memory;
    char *payload;
    size_t size_bytes;
    size_t rounded_bytes;
    /* What the checks call the first byte: mappings of the same memory have it in common. */
    uint64_t identity;
    unsigned flags;
    unsigned long long id;
    unsigned references;
    /* Of mapped memory: the devices that may use it. */
    unsigned accessors;
    /* Uses in captures that go on. */
    unsigned captured_uses;
    bool is_mapped;
    bool is_dead;
    bool is_freeing;
    bool is_sync_memops;
};

struct sim_block *sim_block_add(uint64_t address, size_t size_bytes, enum sim_block_kind kind);
/* The live block that holds the address, or NULL. */
struct sim_block *sim_block_find(uint64_t address);
/* Out of the address map; the memory stays live for what was enqueued before. */
void sim_block_unmap(struct sim_block *block);
/* No longer live. Drops the reference that the block was born with. */
void sim_block_remove(struct sim_block *block);
void sim_block_hold(struct sim_block *block);
void sim_block_drop(struct sim_block *block);
/* Any block that has an address, for walks along next. */
struct sim_block *sim_block_first(void);
/* In memory.c: its free as an operation of a queue. */
CUresult sim_block_free_in_order(struct sim_block *block, struct sim_queue *queue,
                                 const char *name);
bool sim_block_is_on_device(const struct sim_block *block);
/* What the checks call the byte at an address in the block; the address itself when that is NULL.
 */
uint64_t sim_block_identity(const struct sim_block *block, uint64_t address);

#endif
