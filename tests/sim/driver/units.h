/* SPDX-License-Identifier: MIT */
/* The small blocks of a device: runs of units of 512 bytes inside chunks that they share. Best fit,
 * the run freed last first among equals. Every call takes the same few steps, however many runs
 * there are. Units are numbered from the start of the device's space. The lock of call.h guards it.
 */
#ifndef SIM_UNITS_H
#define SIM_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_CHUNK_UNITS 4096u

struct sim_unit_chunk;

/* heads[n] is the first of the free runs of n + 1 units. has: which n have one; has_any: which
 * words of has are not zero. */
struct sim_units {
    struct sim_unit_chunk **chunks;
    unsigned heads[SIM_CHUNK_UNITS];
    uint64_t has[SIM_CHUNK_UNITS / 64];
    uint64_t has_any;
};

void sim_units_init(struct sim_units *units, unsigned chunk_count);
/* A new chunk, all of it free. */
void sim_units_add(struct sim_units *units, unsigned chunk);
/* false: no run is long enough. */
bool sim_units_take(struct sim_units *units, unsigned count, unsigned *first_out);
/* true: with that, all of the chunk was free, and it is no longer one of these. */
bool sim_units_give(struct sim_units *units, unsigned first, unsigned count);

#endif
