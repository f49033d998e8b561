/* SPDX-License-Identifier: MIT */
#include "block.h"
#include "defect.h"

#include <stdlib.h>

static struct sim_node *blocks;
static unsigned long long next_id = 1;

struct sim_block *sim_block_add(uint64_t address, size_t size_bytes, enum sim_block_kind kind)
{
    struct sim_block *block = calloc(1, sizeof(*block));

    block->node.key = address;
    block->node.end = address + size_bytes;
    block->size_bytes = size_bytes;
    block->kind = kind;
    block->id = SIM_DEFECT(buffer_ids_come_again) ? address : next_id++;
    block->references = 1;
    block->is_mapped = true;
    sim_tree_insert(&blocks, &block->node);
    return block;
}

struct sim_block *sim_block_find(uint64_t address)
{
    struct sim_block *block = (struct sim_block *)sim_tree_floor(blocks, address);

    return block != NULL && address < block->node.end ? block : NULL;
}

void sim_block_unmap(struct sim_block *block)
{
    if (block->is_mapped) {
        sim_tree_remove(&blocks, &block->node);
        block->is_mapped = false;
    }
}

void sim_block_remove(struct sim_block *block)
{
    sim_block_unmap(block);
    block->is_dead = true;
    sim_block_drop(block);
}

void sim_block_hold(struct sim_block *block)
{
    block->references++;
}

void sim_block_drop(struct sim_block *block)
{
    if (--block->references == 0) {
        free(block);
    }
}

struct sim_block *sim_block_next(uint64_t address)
{
    return (struct sim_block *)sim_tree_ceiling(blocks, address, 0);
}

bool sim_block_is_on_device(const struct sim_block *block)
{
    return block->kind <= SIM_BLOCK_IMPORTED;
}
