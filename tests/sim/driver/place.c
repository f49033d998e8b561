/* SPDX-License-Identifier: MIT */
#include "place.h"

#include "space.h"
#include "units.h"

#include <stdlib.h>

/* What lies in one chunk of a device: one block over all of it, or a block for each unit. */
struct chunk {
    struct sim_block *whole;
    struct sim_block **units;
};

static struct chunk *chunks;
/* Blocks at other addresses. */
static struct sim_node *others;

/* Lets the units [first, end) lead to the block, or for NULL to nothing. */
static void set(size_t first, size_t end, struct sim_block *block)
{
    while (first < end) {
        struct chunk *chunk = &chunks[first / SIM_CHUNK_UNITS];
        size_t offset = first % SIM_CHUNK_UNITS;
        size_t count = SIM_CHUNK_UNITS - offset < end - first ? SIM_CHUNK_UNITS - offset
                                                              : end - first;
        if (count == SIM_CHUNK_UNITS) {
            chunk->whole = block;
        } else {
            if (chunk->units == NULL) {
                chunk->units = calloc(SIM_CHUNK_UNITS, sizeof(struct sim_block *));
            }
            for (size_t i = 0; i < count; i++) {
                chunk->units[offset + i] = block;
            }
        }
        first += count;
    }
}

/* false: the block lies elsewhere. */
static bool set_units(const struct sim_block *block, struct sim_block *target)
{
    size_t first;

    if (!sim_space_locate(block->node.key, &first)) {
        return false;
    }
    if (chunks == NULL) {
        chunks = calloc(sim_space_units() / SIM_CHUNK_UNITS, sizeof(*chunks));
    }
    size_t count = (block->size_bytes + SIM_UNIT_BYTES - 1) / SIM_UNIT_BYTES;
    set(first, first + count, target);
    return true;
}

void sim_place_add(struct sim_block *block)
{
    if (!set_units(block, block)) {
        sim_tree_insert(&others, &block->node);
    }
}

void sim_place_remove(struct sim_block *block)
{
    if (!set_units(block, NULL)) {
        sim_tree_remove(&others, &block->node);
    }
}

struct sim_block *sim_place_find(uint64_t address)
{
    struct sim_block *block;
    size_t unit;

    if (!sim_space_locate(address, &unit)) {
        block = (struct sim_block *)sim_tree_floor(others, address);
    } else if (chunks == NULL) {
        block = NULL;
    } else {
        const struct chunk *chunk = &chunks[unit / SIM_CHUNK_UNITS];
        block = chunk->whole != NULL || chunk->units == NULL ? chunk->whole
                                                             : chunk->units[unit % SIM_CHUNK_UNITS];
    }
    return block != NULL && address < block->node.end ? block : NULL;
}

bool sim_place_is_taken(uint64_t start, uint64_t end)
{
    struct sim_node *next = sim_tree_ceiling(others, start, 0);

    return sim_place_find(start) != NULL || (next != NULL && next->key < end);
}
