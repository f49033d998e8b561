/* SPDX-License-Identifier: MIT */
/* From addresses to blocks. The lock of call.h guards it. */
#ifndef SIM_PLACE_H
#define SIM_PLACE_H

#include "block.h"

/* A block's addresses lead to it until the removal. */
void sim_place_add(struct sim_block *block);
void sim_place_remove(struct sim_block *block);
/* The block that holds the address, or NULL. */
struct sim_block *sim_place_find(uint64_t address);
/* Does a block outside the devices' own space share bytes with [start, end)? */
bool sim_place_is_taken(uint64_t start, uint64_t end);

#endif
