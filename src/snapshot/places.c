/* SPDX-License-Identifier: MIT */
#include "snapshot/places.h"

#include <errno.h>

static void measure(struct cca_places *places)
{
    uint64_t end = 0;

    for (size_t i = 0; i < places->count; i++) {
        const struct cca_module *module = &places->lives[i].module;

        end = module->end > end ? module->end : end;
        places->ends[i] = end;
        if (module->is_unloaded) {
            bool is_first = places->unsure_end == 0;

            places->unsure_start = is_first ? module->start : places->unsure_start;
            places->unsure_end = module->end > places->unsure_end ? module->end
                                                                  : places->unsure_end;
        }
    }
}

int cca_places_init(struct cca_places *places, struct cca_module_log *log, struct cca_arena *arena)
{
    int rc;

    *places = (struct cca_places){0};
    if (log == NULL) {
        return 0;
    }
    rc = cca_module_log_copy(log, arena, &places->lives, &places->count);
    if (rc != 0) {
        return rc;
    }
    places->ends = cca_arena_take(arena, places->count * sizeof(*places->ends));
    if (places->ends == NULL && places->count != 0) {
        places->count = 0;
        return -ENOMEM;
    }
    places->is_complete = atomic_load_explicit(&log->refused, memory_order_relaxed) == 0;
    measure(places);
    return 0;
}

/* How many lives start below a return address. */
static size_t rank_of(const struct cca_places *places, uint64_t pc)
{
    size_t low = 0, high = places->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (places->lives[middle].module.start < pc) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int cca_places_find(const struct cca_places *places, uint64_t pc, uint32_t stack)
{
    for (size_t i = rank_of(places, pc); i > 0 && places->ends[i - 1] >= pc; i--) {
        const struct cca_module_life *life = &places->lives[i - 1];

        if (pc <= life->module.end && stack >= life->first_stack && stack < life->end_stack) {
            return (int)(i - 1);
        }
    }
    return -1;
}
