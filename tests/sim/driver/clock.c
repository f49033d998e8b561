/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <stdlib.h>
#include <string.h>

struct sim_clock sim_host_clock;

static void grow(struct sim_clock *clock, unsigned size)
{
    if (size > clock->size) {
        clock->numbers = realloc(clock->numbers, size * sizeof(*clock->numbers));
        memset(clock->numbers + clock->size, 0, (size - clock->size) * sizeof(*clock->numbers));
        clock->size = size;
    }
}

void sim_clock_set(struct sim_clock *clock, unsigned slot, uint64_t number)
{
    grow(clock, slot + 1);
    if (clock->numbers[slot] < number) {
        clock->numbers[slot] = number;
    }
}

void sim_clock_join(struct sim_clock *clock, const struct sim_clock *other)
{
    grow(clock, other->size);
    for (unsigned i = 0; i < other->size; i++) {
        if (clock->numbers[i] < other->numbers[i]) {
            clock->numbers[i] = other->numbers[i];
        }
    }
}

bool sim_clock_has(const struct sim_clock *clock, unsigned slot, uint64_t number)
{
    return slot < clock->size && clock->numbers[slot] >= number;
}

void sim_clock_fini(struct sim_clock *clock)
{
    free(clock->numbers);
    *clock = (struct sim_clock){0};
}
