/* SPDX-License-Identifier: MIT */
#include "base/ptrmap.h"

#include <errno.h>

#include "base/check.h"
#include "base/sysmem.h"

/* One page. */
enum { CAPACITY_FIRST = 256 };

/* Blocks are aligned to 512 bytes, segments to 2 MiB: the multiplication brings the bits that
 * differ to the top. */
static struct cca_ptrmap_shard *shard_of(struct cca_ptrmap *map, uint64_t addr)
{
    return &map->shards[((addr >> 9) * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
}

static size_t home_of(const struct cca_ptrmap_shard *shard, uint64_t addr)
{
    uint64_t hash = addr * UINT64_C(0xd6e8feb86659fd93);

    return (size_t)(hash ^ (hash >> 32)) & (shard->capacity - 1);
}

/* The slot that holds `addr`, or the empty one where it belongs. The table is never full. */
static struct cca_ptrmap_slot *probe(const struct cca_ptrmap_shard *shard, uint64_t addr)
{
    size_t mask = shard->capacity - 1;
    size_t i = home_of(shard, addr);

    while (shard->slots[i].addr != 0 && shard->slots[i].addr != addr) {
        i = (i + 1) & mask;
    }
    return &shard->slots[i];
}

static int grow(struct cca_ptrmap_shard *shard)
{
    struct cca_ptrmap_shard bigger = {
        .capacity = shard->capacity == 0 ? CAPACITY_FIRST : shard->capacity * 2,
    };

    bigger.slots = cca_sysmem_map(bigger.capacity * sizeof(bigger.slots[0]));
    if (bigger.slots == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < shard->capacity; i++) {
        if (shard->slots[i].addr != 0) {
            *probe(&bigger, shard->slots[i].addr) = shard->slots[i];
        }
    }
    cca_sysmem_unmap(shard->slots, shard->capacity * sizeof(shard->slots[0]));
    shard->slots = bigger.slots;
    shard->capacity = bigger.capacity;
    return 0;
}

void cca_ptrmap_init(struct cca_ptrmap *map)
{
    for (int i = 0; i < CCA_PTRMAP_SHARDS; i++) {
        map->shards[i] = (struct cca_ptrmap_shard){.slots = NULL};
        cca_lock_init(&map->shards[i].lock, CCA_RANK_PTRMAP + i);
    }
}

static int insert_locked(struct cca_ptrmap_shard *shard, uint64_t addr, void *value)
{
    struct cca_ptrmap_slot *slot;

    if (shard->capacity != 0 && probe(shard, addr)->addr != 0) {
        return -EEXIST;
    }
    if ((shard->used + 1) * 4 > shard->capacity * 3) {
        int rc = grow(shard);

        if (rc != 0) {
            return rc;
        }
    }
    slot = probe(shard, addr);
    slot->addr = addr;
    slot->value = value;
    shard->used++;
    return 0;
}

int cca_ptrmap_insert(struct cca_ptrmap *map, uint64_t addr, void *value)
{
    struct cca_ptrmap_shard *shard = shard_of(map, addr);
    int rc;

    CCA_ASSERT(addr != 0 && value != NULL);
    cca_lock_take(&shard->lock);
    rc = insert_locked(shard, addr, value);
    cca_lock_drop(&shard->lock);
    return rc;
}

void *cca_ptrmap_find(struct cca_ptrmap *map, uint64_t addr)
{
    struct cca_ptrmap_shard *shard = shard_of(map, addr);
    void *value = NULL;

    if (addr == 0) {
        return NULL;
    }
    cca_lock_take(&shard->lock);
    if (shard->capacity != 0) {
        value = probe(shard, addr)->value;
    }
    cca_lock_drop(&shard->lock);
    return value;
}

/* Closes the gap at `hole` so that every entry stays reachable from its home without tombstones. */
static void shift_back(struct cca_ptrmap_shard *shard, size_t hole)
{
    size_t mask = shard->capacity - 1;

    for (size_t i = (hole + 1) & mask; shard->slots[i].addr != 0; i = (i + 1) & mask) {
        size_t home = home_of(shard, shard->slots[i].addr);

        if (((i - home) & mask) >= ((i - hole) & mask)) {
            shard->slots[hole] = shard->slots[i];
            hole = i;
        }
    }
    shard->slots[hole] = (struct cca_ptrmap_slot){0};
}

void *cca_ptrmap_remove(struct cca_ptrmap *map, uint64_t addr)
{
    struct cca_ptrmap_shard *shard = shard_of(map, addr);
    void *value = NULL;

    if (addr == 0) {
        return NULL;
    }
    cca_lock_take(&shard->lock);
    if (shard->capacity != 0) {
        struct cca_ptrmap_slot *slot = probe(shard, addr);

        value = slot->value;
        if (value != NULL) {
            shift_back(shard, (size_t)(slot - shard->slots));
            shard->used--;
        }
    }
    cca_lock_drop(&shard->lock);
    return value;
}

size_t cca_ptrmap_count(struct cca_ptrmap *map)
{
    size_t count = 0;

    for (int i = 0; i < CCA_PTRMAP_SHARDS; i++) {
        cca_lock_take(&map->shards[i].lock);
        count += map->shards[i].used;
        cca_lock_drop(&map->shards[i].lock);
    }
    return count;
}

void cca_ptrmap_lock_all(struct cca_ptrmap *map)
{
    for (int i = 0; i < CCA_PTRMAP_SHARDS; i++) {
        cca_lock_take(&map->shards[i].lock);
    }
}

void cca_ptrmap_unlock_all(struct cca_ptrmap *map)
{
    for (int i = CCA_PTRMAP_SHARDS - 1; i >= 0; i--) {
        cca_lock_drop(&map->shards[i].lock);
    }
}

void cca_ptrmap_fini(struct cca_ptrmap *map)
{
    for (int i = 0; i < CCA_PTRMAP_SHARDS; i++) {
        struct cca_ptrmap_shard *shard = &map->shards[i];

        cca_sysmem_unmap(shard->slots, shard->capacity * sizeof(shard->slots[0]));
        shard->slots = NULL;
        shard->capacity = shard->used = 0;
    }
}
