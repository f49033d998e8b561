/* SPDX-License-Identifier: MIT */
#include "block.h"

#include "defect.h"
#include "place.h"

#include <stdlib.h>

static struct sim_block *first;
/* Blocks to use again, linked by next. */
static struct sim_block *spare;
static unsigned long long next_id = 1;

static struct sim_block *create(void)
{
    struct sim_block *block = spare;

    if (block == NULL) {
        return calloc(1, sizeof(*block));
    }
    spare = block->next;
    *block = (struct sim_block){0};
    return block;
}

struct sim_block *sim_block_add(uint64_t address, size_t size_bytes, enum sim_block_kind kind)
{
    struct sim_block *block = create();

    block->node.key = address;
    block->node.end = address + size_bytes;
    block->size_bytes = size_bytes;
    block->identity = address;
    block->kind = kind;
    block->id = SIM_DEFECT(buffer_ids_come_again) ? address : next_id++;
    block->references = 1;
    block->is_mapped = true;
    block->next = first;
    if (first != NULL) {
        first->previous = block;
    }
    first = block;
    sim_place_add(block);
    return block;
}

struct sim_block *sim_block_find(uint64_t address)
{
    return sim_place_find(address);
}

void sim_block_unmap(struct sim_block *block)
{
    if (!block->is_mapped) {
        return;
    }
    block->is_mapped = false;
    sim_place_remove(block);
    if (block->next != NULL) {
        block->next->previous = block->previous;
    }
    if (block->previous != NULL) {
        block->previous->next = block->next;
    } else {
        first = block->next;
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
        block->next = spare;
        spare = block;
    }
}

struct sim_block *sim_block_first(void)
{
    return first;
}

bool sim_block_is_on_device(const struct sim_block *block)
{
    return block->kind <= SIM_BLOCK_IMPORTED;
}

uint64_t sim_block_identity(const struct sim_block *block, uint64_t address)
{
    return block != NULL && !SIM_DEFECT(mappings_are_apart)
               ? block->identity + (address - block->node.key)
               : address;
}
