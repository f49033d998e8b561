/* SPDX-License-Identifier: MIT */
#include "violation.h"

#include "call.h"
#include "config.h"
#include "context.h"
#include "timeline.h"

#include <stdio.h>
#include <unistd.h>

#define MAX_PRINTED 100

static uint64_t count;

struct sim_party sim_party_of_call(uint64_t start, uint64_t end)
{
    struct sim_party party = {
        .name = sim_call_name(), .start = start, .end = end, .is_write = true};

    sim_site_take(&party.site);
    return party;
}

static void print_party(const char *role, const struct sim_party *party)
{
    char stream[32] = "host";
    char place[256];

    if (party->stream_id != 0) {
        snprintf(stream, sizeof(stream), "stream %llu", party->stream_id);
    }
    sim_site_describe(party->site.caller, place, sizeof(place));
    dprintf(STDERR_FILENO,
            "simcuda: violation:   %s %s, %s, %s 0x%llx..0x%llx, thread %d, from %s\n", role,
            party->name, stream, party->is_write ? "writes" : "reads",
            (unsigned long long)party->start, (unsigned long long)party->end, party->site.thread,
            place);
    for (unsigned i = 0; i < party->site.frame_count; i++) {
        sim_site_describe(party->site.frames[i], place, sizeof(place));
        dprintf(STDERR_FILENO, "simcuda: violation:     #%u %s\n", i, place);
    }
}

void sim_violation(struct CUctx_st *context, const char *what, const struct sim_party *party,
                   const struct sim_party *other)
{
    count++;
    if (sim_config.violations == SIM_VIOLATION_IGNORE) {
        return;
    }
    if (context == NULL) {
        context = sim_context_current();
    }
    if (context != NULL && context->sticky == CUDA_SUCCESS) {
        context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (count > MAX_PRINTED) {
        return;
    }
    dprintf(STDERR_FILENO, "simcuda: violation: %s\n", what);
    print_party("by", party);
    if (other != NULL) {
        print_party("with", other);
        if (party->start >= other->end || other->start >= party->end) {
            dprintf(STDERR_FILENO,
                    "simcuda: violation:   both addresses lead to the same memory\n");
        }
    }
    sim_timeline_print(party, other);
}

uint64_t sim_violation_count(void)
{
    return count;
}

void sim_violation_reset(void)
{
    count = 0;
}
