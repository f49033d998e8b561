/* SPDX-License-Identifier: MIT */
#include "snapshot/idmap.h"

#include <stdbool.h>

enum { FIRST_SLOTS = 1024 };

void cca_idmap_init(struct cca_idmap *map, struct cca_arena *arena)
{
    *map = (struct cca_idmap){.arena = arena};
}

/* The slot of the key, or the empty one where it belongs. */
static struct cca_idmap_slot *probe(struct cca_idmap_slot *slots, size_t slot_count, uint64_t key)
{
    size_t mask = slot_count - 1;
    size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;

    while (slots[i].key != 0 && slots[i].key != key) {
        i = (i + 1) & mask;
    }
    return &slots[i];
}

static bool grow(struct cca_idmap *map)
{
    size_t slot_count = map->slot_count > 0 ? map->slot_count * 2 : FIRST_SLOTS;
    struct cca_idmap_slot *slots = cca_arena_take(map->arena, slot_count * sizeof(*slots));

    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->slot_count; i++) {
        if (map->slots[i].key != 0) {
            *probe(slots, slot_count, map->slots[i].key) = map->slots[i];
        }
    }
    map->slots = slots;
    map->slot_count = slot_count;
    return true;
}

uint32_t *cca_idmap_at(struct cca_idmap *map, uint64_t key)
{
    struct cca_idmap_slot *slot = map->slot_count > 0 ? probe(map->slots, map->slot_count, key)
                                                      : NULL;

    if (slot == NULL || slot->key == 0) {
        if (map->used >= map->slot_count / 2) {
            if (!grow(map)) {
                return NULL;
            }
            slot = probe(map->slots, map->slot_count, key);
        }
        slot->key = key;
        map->used++;
    }
    return &slot->value;
}
