/* SPDX-License-Identifier: MIT */
/* The valve: what is not handled yet ends caching for the process, so that nothing becomes unsafe.
 * No CUDA header is needed here. */
#ifndef CCA_PRELOAD_VALVE_H
#define CCA_PRELOAD_VALVE_H

#include "preload/original.h"
#include "process/process.h"

/* Ends caching on behalf of a row, or for a reason of static storage. Before the first context
 * there is nothing to end: then it is remembered. */
void cca_valve_stop(enum cca_row row);
void cca_valve_stop_because(const char *reason);

/* When a context comes up and the allocator exists: what was remembered takes effect. */
void cca_valve_replay(void);

#endif
