/* SPDX-License-Identifier: MIT */
#include "suspicion.h"

#include <stdlib.h>

struct suspicion {
    struct suspicion *next;
    struct CUctx_st *context;
    const char *what;
    struct sim_clock later_clock;
    struct sim_clock earlier_clock;
    struct sim_suspect later;
    struct sim_suspect earlier;
};

static struct suspicion *suspicions;

static bool comes_before(const struct sim_suspect *one, const struct sim_suspect *other)
{
    return other->clock != NULL && sim_clock_has(other->clock, one->slot, one->number);
}

bool sim_suspects_are_ordered(const struct sim_suspect *later, const struct sim_suspect *earlier)
{
    return comes_before(earlier, later) || comes_before(later, earlier);
}

void sim_suspicion_add(struct CUctx_st *context, const char *what, const struct sim_suspect *later,
                       const struct sim_suspect *earlier)
{
    struct suspicion *suspicion = calloc(1, sizeof(*suspicion));

    suspicion->context = context;
    suspicion->what = what;
    suspicion->later = *later;
    suspicion->earlier = *earlier;
    sim_clock_join(&suspicion->later_clock, later->clock);
    suspicion->later.clock = &suspicion->later_clock;
    if (earlier->clock != NULL) {
        sim_clock_join(&suspicion->earlier_clock, earlier->clock);
    }
    suspicion->earlier.clock = &suspicion->earlier_clock;
    suspicion->next = suspicions;
    suspicions = suspicion;
}

void sim_suspicions_review(void)
{
    struct suspicion **link = &suspicions;

    while (*link != NULL) {
        struct suspicion *suspicion = *link;
        bool is_ordered = sim_suspects_are_ordered(&suspicion->later, &suspicion->earlier);
        if (!is_ordered && (sim_clock_is_open(suspicion->later.clock) ||
                            sim_clock_is_open(suspicion->earlier.clock))) {
            link = &suspicion->next;
            continue;
        }
        if (!is_ordered) {
            sim_violation(suspicion->context, suspicion->what, &suspicion->later.party,
                          &suspicion->earlier.party);
        }
        *link = suspicion->next;
        sim_clock_fini(&suspicion->later_clock);
        sim_clock_fini(&suspicion->earlier_clock);
        free(suspicion);
    }
}
