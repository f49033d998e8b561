/* SPDX-License-Identifier: MIT */
/* What happens by the clock: snapshots at intervals, the metrics file, the trim of an idle cache.
 * All of it on the dump thread, which asks when to come next. */
#ifndef CCA_PROCESS_TIMERS_H
#define CCA_PROCESS_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

struct cca_process;

/* Whether the settings want anything by the clock. */
bool cca_timers_are_wanted(const struct cca_process *process);

void cca_timers_start(struct cca_process *process);

/* When to look again, in cca_clock_ns; 0 = never. */
uint64_t cca_timers_next_ns(const struct cca_process *process);

/* Writes the files that are due; the claim on dumps is held. */
void cca_timers_write(struct cca_process *process);

/* Gives idle cache back when that is due; the claim is not held, CUDA calls are made. */
void cca_timers_trim(struct cca_process *process);

#endif
