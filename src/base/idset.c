/* SPDX-License-Identifier: MIT */
#include "base/idset.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/sysmem.h"

enum { FIRST_CAPACITY = 512 };

static size_t mapping_bytes(size_t capacity)
{
    return capacity / 2 * sizeof(uint64_t) + capacity * sizeof(uint32_t);
}

/* Where the number's position is, or the empty slot where it would be. */
static uint32_t *slot_of(const struct cca_idset *set, uint64_t id)
{
    size_t mask = set->capacity - 1,
           at = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
    while (set->slots[at] != 0 && set->items[set->slots[at] - 1] != id) {
        at = (at + 1) & mask;
    }
    return &set->slots[at];
}

static int grow(struct cca_idset *set)
{
    struct cca_idset larger = {.capacity = set->capacity == 0 ? FIRST_CAPACITY : set->capacity * 2};
    larger.items = cca_sysmem_map(mapping_bytes(larger.capacity));
    if (larger.items == NULL) {
        return -ENOMEM;
    }
    larger.slots = (uint32_t *)(larger.items + larger.capacity / 2);
    for (; larger.count < set->count; larger.count++) {
        uint64_t id = set->items[larger.count];
        *slot_of(&larger, id) = (uint32_t)larger.count + 1;
        larger.items[larger.count] = id;
    }
    cca_idset_fini(set);
    *set = larger;
    return 0;
}

int cca_idset_add(struct cca_idset *set, uint64_t id)
{
    CCA_ASSERT(id != 0);
    if (cca_idset_has(set, id)) {
        return 0;
    }
    if (set->count >= set->capacity / 2 && grow(set) != 0) {
        return -ENOMEM;
    }
    *slot_of(set, id) = (uint32_t)set->count + 1;
    set->items[set->count++] = id;
    return 1;
}

bool cca_idset_has(const struct cca_idset *set, uint64_t id)
{
    return set->count != 0 && *slot_of(set, id) != 0;
}

void cca_idset_clear(struct cca_idset *set)
{
    if (set->count != 0) {
        memset(set->slots, 0, set->capacity * sizeof(*set->slots));
        set->count = 0;
    }
}

void cca_idset_fini(struct cca_idset *set)
{
    cca_sysmem_unmap(set->items, mapping_bytes(set->capacity));
    *set = (struct cca_idset){0};
}
