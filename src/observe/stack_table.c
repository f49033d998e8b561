/* SPDX-License-Identifier: MIT */
#include "observe/stack_table.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/sysmem.h"

_Static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "a record's words are addresses");

/* An id is the index of the record's header word; word 0 stays unused so that no id is 0. */
static const uint64_t first_word = 1;

/* What a retired stack leaves in its slot: not empty, and like no stack, since word 0 is 0. */
static const uint64_t retired = UINT64_C(1) << 32;

static inline uint64_t mix(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return lane ^ lane >> 32;
}

/* Four independent lanes: the multiplications of one need not wait for each other. */
static uint64_t hash_stack(const uintptr_t *pcs, int depth)
{
    uint64_t lanes[4] = {1, 2, 3, (uint64_t)depth};
    int i = 0;

    for (; i + 4 <= depth; i += 4) {
        lanes[0] = mix(lanes[0], pcs[i]);
        lanes[1] = mix(lanes[1], pcs[i + 1]);
        lanes[2] = mix(lanes[2], pcs[i + 2]);
        lanes[3] = mix(lanes[3], pcs[i + 3]);
    }
    for (; i < depth; i++) {
        lanes[0] = mix(lanes[0], pcs[i]);
    }
    return mix(mix(mix(lanes[0], lanes[1]), lanes[2]), lanes[3]);
}

static inline uint64_t header_of(uint64_t hash, int depth)
{
    return hash >> 32 << 32 | (uint32_t)depth;
}

static bool is_same(const struct cca_stack_table *table, uint64_t slot, uint64_t header,
                    const uintptr_t *pcs, int depth)
{
    const uint64_t *record = &table->words[(uint32_t)slot];

    return slot >> 32 == header >> 32 && record[0] == header &&
           memcmp(&record[1], pcs, (size_t)depth * sizeof(pcs[0])) == 0;
}

/* Cuts a record from the arena and fills it; its id, or 0 when the arena is full. */
static uint32_t write_record(struct cca_stack_table *table, uint64_t header, const uintptr_t *pcs,
                             int depth)
{
    uint64_t need = (uint64_t)depth + 1;
    uint64_t start = atomic_load_explicit(&table->words_used, memory_order_relaxed);

    do {
        if (start + need > table->word_capacity) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&table->words_used, &start, start + need,
                                                    memory_order_relaxed, memory_order_relaxed));
    table->words[start] = header;
    memcpy(&table->words[start + 1], pcs, (size_t)depth * sizeof(pcs[0]));
    return (uint32_t)start;
}

int cca_stack_table_init(struct cca_stack_table *table, size_t slot_count, size_t arena_bytes)
{
    *table = (struct cca_stack_table){0};
    size_t slots = 2;

    while (slots < slot_count) {
        slots *= 2;
    }
    size_t words = arena_bytes / sizeof(uint64_t);
    if (words > UINT32_MAX) {
        words = UINT32_MAX;
    }
    table->slots = cca_sysmem_reserve(slots * sizeof(table->slots[0]));
    if (table->slots == NULL) {
        return -ENOMEM;
    }
    table->words = cca_sysmem_reserve((words + 1) * sizeof(uint64_t));
    if (table->words == NULL) {
        cca_sysmem_unmap(table->slots, slots * sizeof(table->slots[0]));
        table->slots = NULL;
        return -ENOMEM;
    }
    table->slot_count = slots;
    table->word_capacity = words;
    atomic_store_explicit(&table->words_used, first_word, memory_order_relaxed);
    return 0;
}

/* Takes a place in the table, which is kept at most half full so that probing stays short. */
static bool take_place(struct cca_stack_table *table)
{
    uint64_t stacks = atomic_load_explicit(&table->stacks, memory_order_relaxed);

    do {
        if (stacks >= table->slot_count / 2) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&table->stacks, &stacks, stacks + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Publishes the stack in the first free slot from `index` on. Another thread may put the same stack
 * there first: then its id is the answer and our record is lost space. */
static uint32_t insert(struct cca_stack_table *table, size_t index, uint64_t header,
                       const uintptr_t *pcs, int depth)
{
    size_t mask = table->slot_count - 1;

    if (!take_place(table)) {
        return 0;
    }
    uint32_t id = write_record(table, header, pcs, depth);
    while (id != 0) {
        uint64_t seen = 0;
        uint64_t fresh = header >> 32 << 32 | id;
        if (atomic_compare_exchange_strong_explicit(&table->slots[index], &seen, fresh,
                                                    memory_order_release, memory_order_acquire)) {
            return id;
        }
        if (is_same(table, seen, header, pcs, depth)) {
            id = (uint32_t)seen;
            break;
        }
        index = (index + 1) & mask;
    }
    atomic_fetch_sub_explicit(&table->stacks, 1, memory_order_relaxed);
    return id;
}

/* The id, or 0 and the free slot at which the search ended. */
static uint32_t search(const struct cca_stack_table *table, uint64_t hash, const uintptr_t *pcs,
                       int depth, size_t *index_out)
{
    uint64_t header = header_of(hash, depth);
    size_t mask = table->slot_count - 1;
    size_t index = (size_t)hash & mask;

    for (;; index = (index + 1) & mask) {
        uint64_t slot = atomic_load_explicit(&table->slots[index], memory_order_acquire);
        if (slot == 0) {
            *index_out = index;
            return 0;
        }
        if (is_same(table, slot, header, pcs, depth)) {
            return (uint32_t)slot;
        }
    }
}

uint32_t cca_stack_table_find(const struct cca_stack_table *table, const uintptr_t *pcs, int depth)
{
    size_t ignored;

    return depth > 0 && table->slot_count != 0
               ? search(table, hash_stack(pcs, depth), pcs, depth, &ignored)
               : 0;
}

uint32_t cca_stack_table_intern(struct cca_stack_table *table, const uintptr_t *pcs, int depth)
{
    uint32_t id = 0;

    if (depth <= 0) {
        return 0;
    }
    if (table->slot_count != 0) {
        uint64_t hash = hash_stack(pcs, depth);
        size_t index;

        id = search(table, hash, pcs, depth, &index);
        if (id == 0) {
            id = insert(table, index, header_of(hash, depth), pcs, depth);
        }
    }
    if (id == 0) {
        atomic_fetch_add_explicit(&table->refused, 1, memory_order_relaxed);
    }
    return id;
}

const uintptr_t *cca_stack_table_get(const struct cca_stack_table *table, uint32_t id,
                                     int *depth_out)
{
    uint64_t used = atomic_load_explicit(&table->words_used, memory_order_relaxed);

    *depth_out = 0;
    if (id < first_word || id >= used) {
        return NULL;
    }
    uint32_t depth = (uint32_t)table->words[id];
    if (depth > INT32_MAX || id + UINT64_C(1) + depth > used) {
        return NULL;
    }
    *depth_out = (int)depth;
    return (const uintptr_t *)&table->words[id + 1];
}

uint32_t cca_stack_table_next(const struct cca_stack_table *table)
{
    return (uint32_t)atomic_load_explicit(&table->words_used, memory_order_acquire);
}

static bool calls_from(uintptr_t pc, uintptr_t start, uintptr_t end)
{
    return pc > start && pc <= end; /* the call lies before its return address */
}

void cca_stack_table_retire(struct cca_stack_table *table, uintptr_t start, uintptr_t end)
{
    for (size_t i = 0; i < table->slot_count; i++) {
        uint64_t slot = atomic_load_explicit(&table->slots[i], memory_order_acquire);
        int depth;
        const uintptr_t *pcs = cca_stack_table_get(table, (uint32_t)slot, &depth);

        for (int at = 0; at < depth; at++) {
            if (calls_from(pcs[at], start, end)) {
                atomic_store_explicit(&table->slots[i], retired, memory_order_release);
                break;
            }
        }
    }
}

void cca_stack_table_each(const struct cca_stack_table *table, uintptr_t start, uintptr_t end,
                          void (*each)(void *user, uintptr_t pc), void *user)
{
    for (size_t i = 0; i < table->slot_count; i++) {
        uint64_t slot = atomic_load_explicit(&table->slots[i], memory_order_acquire);
        int depth;
        const uintptr_t *pcs = cca_stack_table_get(table, (uint32_t)slot, &depth);

        for (int at = 0; at < depth; at++) {
            if (calls_from(pcs[at], start, end)) {
                each(user, pcs[at]);
            }
        }
    }
}

void cca_stack_table_fini(struct cca_stack_table *table)
{
    cca_sysmem_unmap(table->slots, table->slot_count * sizeof(table->slots[0]));
    cca_sysmem_unmap(table->words, (table->word_capacity + 1) * sizeof(uint64_t));
    *table = (struct cca_stack_table){0};
}
