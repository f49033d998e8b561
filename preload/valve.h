/* SPDX-License-Identifier: MIT */
/* The valve: what is not handled yet ends caching for the process, so that nothing becomes unsafe.
 * No CUDA header is needed here. */
#ifndef CCA_PRELOAD_VALVE_H
#define CCA_PRELOAD_VALVE_H

#include "preload/original.h"
#include "process/process.h"

/* Ends caching on behalf of a row. Before the first context there is nothing to end: then it is
 * remembered. */
void cca_valve_stop(enum cca_row row);

/* When a context comes up and the allocator exists: what was remembered takes effect, captures that
 * are under way included. */
void cca_valve_replay(void);

/* After the real destruction of a stream, with its result, which is returned: a capture on it is
 * over. Outside enter and leave. */
int cca_valve_after_destroy(void *stream, int result);

#endif
