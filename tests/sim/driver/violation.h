/* SPDX-License-Identifier: MIT */
/* Reports of what a program must not do, with both parties. */
#ifndef SIM_VIOLATION_H
#define SIM_VIOLATION_H

#include "site.h"

#include <stdbool.h>
#include <stdint.h>

struct CUctx_st;

/* stream_id 0: a call of the host, in no stream. */
struct sim_party {
    const char *name;
    struct sim_site site;
    unsigned long long stream_id;
    uint64_t start;
    uint64_t end;
    bool is_write;
};

/* The running call as a party. */
struct sim_party sim_party_of_call(uint64_t start, uint64_t end);
/* Counts, prints and leaves the sticky error 700 in the context, as SIMCUDA_VIOLATIONS says. other
 * may be NULL. */
void sim_violation(struct CUctx_st *context, const char *what, const struct sim_party *party,
                   const struct sim_party *other);
uint64_t sim_violation_count(void);
void sim_violation_reset(void);

#endif
