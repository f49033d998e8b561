/* SPDX-License-Identifier: MIT */
/* What happens before what. Every queue of work has a slot and numbers its operations; a clock
 * holds for each slot the number up to which everything is known to be over.
 *
 * An operation comes before another when the other's clock has reached its number. One more clock,
 * the host's, holds what some thread of the host has seen to be complete: threads can tell each
 * other by means that are not seen here, so all of them share it. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct sim_clock {
    uint64_t *numbers;
    unsigned size;
};

extern struct sim_clock sim_host_clock;

void sim_clock_set(struct sim_clock *clock, unsigned slot, uint64_t number);
void sim_clock_join(struct sim_clock *clock, const struct sim_clock *other);
bool sim_clock_has(const struct sim_clock *clock, unsigned slot, uint64_t number);
void sim_clock_fini(struct sim_clock *clock);

#endif
