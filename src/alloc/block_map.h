/* SPDX-License-Identifier: MIT */
/* Address -> live block of one heap, for exact addresses. Guarded by the heap lock.
 *
 * Open addressing with 8 bytes a slot: the block, and how far the slot is from where the block
 * belongs. Slots stay sorted by that place (Robin Hood), so a search ends at the first block that
 * belongs further on, a removal moves its followers back by one, and nearly every search reads one
 * line of the table and the block itself. */
#ifndef CCA_ALLOC_BLOCK_MAP_H
#define CCA_ALLOC_BLOCK_MAP_H

#include <errno.h>

#include "alloc/block.h"

struct cca_block_map {
    uint64_t *slots; /* distance + 1 in the upper 16 bits, 0 = empty; the block below */
    size_t capacity, used;
    size_t limit; /* of `used`, from which it grows */
};

#define CCA_BLOCK_MAP_STEP (UINT64_C(1) << 48) /* of distance, in a slot */

static inline struct cca_block *cca_block_map_block_in(uint64_t slot)
{
    return (struct cca_block *)(uintptr_t)(slot & (CCA_BLOCK_MAP_STEP - 1));
}

/* Addresses differ in few bits, often by a fixed step: half of a product would place some steps
 * close together. The upper bits choose. */
static inline size_t cca_block_map_home_of(const struct cca_block_map *map, uint64_t addr)
{
    __extension__ unsigned __int128 product = (unsigned __int128)addr *
                                              UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = (uint64_t)product ^ (uint64_t)(product >> 64);
    return (size_t)((__extension__(unsigned __int128) hash * map->capacity) >> 64);
}

static inline size_t cca_block_map_after(const struct cca_block_map *map, size_t i)
{
    return i + 1 == map->capacity ? 0 : i + 1;
}

/* Where the address is or belongs: the first slot of a block that is nearer to its own place, or an
 * empty one. `distance_out`: of that slot, for a block of this address. */
static inline struct cca_block *cca_block_map_search(const struct cca_block_map *map, uint64_t addr,
                                                     size_t *at_out, uint64_t *distance_out)
{
    struct cca_block *found = NULL;
    uint64_t distance = CCA_BLOCK_MAP_STEP;
    size_t i = cca_block_map_home_of(map, addr);
    for (; map->slots[i] >= distance;
         i = cca_block_map_after(map, i), distance += CCA_BLOCK_MAP_STEP) {
        struct cca_block *block = cca_block_map_block_in(map->slots[i]);
        if ((map->slots[i] ^ distance) < CCA_BLOCK_MAP_STEP && block->addr == addr) {
            found = block;
            break;
        }
    }
    *at_out = i;
    *distance_out = distance;
    return found;
}

/* Puts a block that is not there in where it belongs, and moves those behind it on. */
static inline void cca_block_map_place(struct cca_block_map *map, struct cca_block *block, size_t i,
                                       uint64_t distance)
{
    uint64_t moved = (uintptr_t)block | distance;
    for (; map->slots[i] != 0; i = cca_block_map_after(map, i)) {
        uint64_t slot = map->slots[i];
        map->slots[i] = moved;
        moved = slot + CCA_BLOCK_MAP_STEP;
        /* In a table that is three quarters full distances stay far below a hundred. */
        CCA_ASSERT(moved > slot);
    }
    map->slots[i] = moved;
    map->used++;
}

/* Room for more; false when memory is refused. */
bool cca_block_map_grow(struct cca_block_map *map) CCA_MUST_CHECK;
void cca_block_map_fini(struct cca_block_map *map);

/* 0; -EEXIST when its address is there already; -ENOMEM. */
CCA_MUST_CHECK static inline int cca_block_map_insert(struct cca_block_map *map,
                                                      struct cca_block *block)
{
    CCA_ASSERT((uintptr_t)block < CCA_BLOCK_MAP_STEP);
    size_t at;
    uint64_t distance;
    if (CCA_UNLIKELY(map->used >= map->limit) && !cca_block_map_grow(map)) {
        return -ENOMEM;
    }
    if (CCA_UNLIKELY(cca_block_map_search(map, block->addr, &at, &distance) != NULL)) {
        return -EEXIST;
    }
    cca_block_map_place(map, block, at, distance);
    return 0;
}

/* The block that begins at the address, or NULL; remove takes it out. */
static inline struct cca_block *cca_block_map_find(const struct cca_block_map *map, uint64_t addr)
{
    size_t at;
    uint64_t distance;
    return map->used == 0 ? NULL : cca_block_map_search(map, addr, &at, &distance);
}

static inline struct cca_block *cca_block_map_remove(struct cca_block_map *map, uint64_t addr)
{
    size_t at;
    uint64_t distance;
    struct cca_block *block = map->used == 0 ? NULL
                                             : cca_block_map_search(map, addr, &at, &distance);
    if (block == NULL) {
        return NULL;
    }
    size_t next = cca_block_map_after(map, at);
    for (; map->slots[next] >= 2 * CCA_BLOCK_MAP_STEP;
         at = next, next = cca_block_map_after(map, next)) {
        map->slots[at] = map->slots[next] - CCA_BLOCK_MAP_STEP;
    }
    map->slots[at] = 0;
    map->used--;
    return block;
}

#endif
