/* SPDX-License-Identifier: MIT */
/* What happened lately, for reports: the last few thousand uses of memory, allocations, frees,
 * steps of streams and waits of the host. Nothing is kept when sim_config does not record. The
 * lock of call.h guards it. */
#ifndef SIM_TIMELINE_H
#define SIM_TIMELINE_H

#include "violation.h"

/* What goes by this name happens now. */
enum sim_happening {
    SIM_HAPPENS_READ,
    SIM_HAPPENS_WRITE,
    SIM_HAPPENS_BIRTH,
    SIM_HAPPENS_END,
    SIM_HAPPENS_STEP,
    SIM_HAPPENS_WAIT
};

/* stream_id 0: in no stream. A step or a wait has no bytes. */
void sim_timeline_add(enum sim_happening what, const char *name, unsigned long long stream_id,
                      uint64_t start, uint64_t end);
/* The memory ends, for the report of who uses it after that. */
void sim_timeline_bury(uint64_t start, uint64_t end, const struct sim_party *by);
/* The same, by the running call. */
void sim_timeline_bury_now(uint64_t start, uint64_t end);
/* Who ended the memory at the address last, or NULL. */
const struct sim_party *sim_timeline_end_of(uint64_t address);
/* Prints what there was with the parties' bytes, and the steps and waits of their streams, the
 * oldest first. other may be NULL. */
void sim_timeline_print(const struct sim_party *party, const struct sim_party *other);

#endif
