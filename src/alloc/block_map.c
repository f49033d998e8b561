/* SPDX-License-Identifier: MIT */
#include "alloc/block_map.h"

#include "base/sysmem.h"

enum { CAPACITY_FIRST = 512 }; /* one page */

bool cca_block_map_grow(struct cca_block_map *map)
{
    struct cca_block_map bigger = {
        .capacity = map->capacity == 0 ? CAPACITY_FIRST : map->capacity + map->capacity / 4};
    bigger.slots = cca_sysmem_map(bigger.capacity * sizeof(bigger.slots[0]));
    if (bigger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i] != 0) {
            struct cca_block *block = cca_block_map_block_in(map->slots[i]);
            size_t at;
            uint64_t distance;
            (void)cca_block_map_search(&bigger, block->addr, &at, &distance);
            cca_block_map_place(&bigger, block, at, distance);
        }
    }
    bigger.limit = bigger.capacity / 4 * 3;
    cca_block_map_fini(map);
    *map = bigger;
    return true;
}

void cca_block_map_fini(struct cca_block_map *map)
{
    cca_sysmem_unmap(map->slots, map->capacity * sizeof(map->slots[0]));
    *map = (struct cca_block_map){0};
}
