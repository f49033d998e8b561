/* SPDX-License-Identifier: MIT */
/* Pairs of operations that meet in the same bytes and may be found to be ordered yet: one of them
 * stands behind a wait for a word that nobody has written so far. */
#ifndef SIM_SUSPICION_H
#define SIM_SUSPICION_H

#include "clock.h"
#include "violation.h"

/* One of the two. clock: what comes before it. */
struct sim_suspect {
    unsigned slot;
    uint64_t number;
    const struct sim_clock *clock;
    struct sim_party party;
};

/* Is one of them known to come before the other? */
bool sim_suspects_are_ordered(const struct sim_suspect *later, const struct sim_suspect *earlier);
/* Reports the pair when no promise is left that could order them. Copies what it needs; earlier has
 * no clock when there is no promise in it. */
void sim_suspicion_add(struct CUctx_st *context, const char *what, const struct sim_suspect *later,
                       const struct sim_suspect *earlier);
/* Some promise was kept. */
void sim_suspicions_review(void);

#endif
