/* SPDX-License-Identifier: MIT */
/* What happens before what. Every queue of work has a slot and numbers its operations; a clock
 * holds for each slot the number up to which everything is known to be over.
 *
 * An operation comes before another when the other's clock has reached its number. One more clock,
 * the host's, holds what some thread of the host has seen to be complete: threads can tell each
 * other by means that are not seen here, so all of them share it.
 *
 * Streams also tell each other things by words in memory. That order is real, but CUDA does not see
 * it, so a clock keeps it apart. And it may be known later than it is needed: a wait for a word
 * that nobody has written yet leaves a promise in the clock, and what the write comes after fills
 * it. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct sim_promise;

struct sim_numbers {
    uint64_t *values;
    unsigned size;
};

/* words is NULL unless a word has given order. */
struct sim_clock {
    struct sim_numbers seen;
    struct sim_word_order *words;
};

extern struct sim_clock sim_host_clock;

void sim_clock_set(struct sim_clock *clock, unsigned slot, uint64_t number);
void sim_clock_join(struct sim_clock *clock, const struct sim_clock *other);
/* The other's order holds, but by a word. */
void sim_clock_join_by_word(struct sim_clock *clock, const struct sim_clock *other);
/* Only what both have. */
void sim_clock_meet(struct sim_clock *clock, const struct sim_clock *other);
bool sim_clock_has(const struct sim_clock *clock, unsigned slot, uint64_t number);
/* The same as CUDA sees it: words give no order. */
bool sim_clock_has_seen(const struct sim_clock *clock, unsigned slot, uint64_t number);
/* Does it hold a promise that is not kept? */
bool sim_clock_is_open(const struct sim_clock *clock);
void sim_clock_fini(struct sim_clock *clock);

/* Held once by the caller; clocks hold it too. */
struct sim_promise *sim_promise_create(void);
void sim_promise_drop(struct sim_promise *promise);
void sim_clock_promise(struct sim_clock *clock, struct sim_promise *promise);
/* The promised order is that of the clock; nothing happens when that has the promise in it, as in
 * a program whose streams wait for each other in a circle. */
void sim_promise_keep(struct sim_promise *promise, const struct sim_clock *clock);
bool sim_promise_is_kept(const struct sim_promise *promise);

#endif
