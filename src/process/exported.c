/* SPDX-License-Identifier: MIT */
#include "process/exported.h"

#include <stddef.h>

#include "snapshot/sort.h"

struct pair {
    uint64_t addr, alloc_time_ns;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *left = a, *right = b;

    if (left->addr != right->addr) {
        return left->addr < right->addr ? -1 : 1;
    }
    return (left->alloc_time_ns > right->alloc_time_ns) -
           (left->alloc_time_ns < right->alloc_time_ns);
}

void cca_exported_add(struct cca_exported *exported, uint64_t addr, uint64_t alloc_time_ns)
{
    unsigned place = atomic_fetch_add(&exported->count, 1) % CCA_EXPORTED_MAX;

    atomic_store(&exported->blocks[place].addr, addr);
    atomic_store(&exported->blocks[place].alloc_time_ns, alloc_time_ns);
}

static bool has_pair(const struct pair *pairs, size_t count, const struct pair *wanted)
{
    while (count > 0) {
        const struct pair *middle = pairs + count / 2;
        int order = compare_pairs(wanted, middle);

        if (order == 0) {
            return true;
        }
        count = order < 0 ? count / 2 : count - count / 2 - 1;
        pairs = order < 0 ? pairs : middle + 1;
    }
    return false;
}

void cca_exported_mark(const struct cca_exported *exported, struct cca_model *model)
{
    unsigned noted = atomic_load(&exported->count);
    size_t count = noted < CCA_EXPORTED_MAX ? noted : CCA_EXPORTED_MAX;
    struct pair *pairs = count > 0 ? cca_model_array(model, count, sizeof(*pairs)) : NULL;

    if (pairs == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        pairs[i] = (struct pair){atomic_load(&exported->blocks[i].addr),
                                 atomic_load(&exported->blocks[i].alloc_time_ns)};
    }
    cca_sort(pairs, count, sizeof(*pairs), compare_pairs);
    for (size_t i = 0; i < model->block_count; i++) {
        struct cca_model_block *block = &model->blocks[i];

        block->is_exported = block->state == CCA_MODEL_ALLOCATED &&
                             has_pair(pairs, count,
                                      &(struct pair){block->address, block->alloc_time_ns});
    }
}
