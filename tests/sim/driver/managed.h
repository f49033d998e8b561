/* SPDX-License-Identifier: MIT */
/* Managed memory: what programs advise about it, and prefetches and discards. It lies where host
 * and devices see it alike, so advice moves nothing; it is remembered and can be asked for. */
#ifndef SIM_MANAGED_H
#define SIM_MANAGED_H

#include "block.h"

/* The memory ends, and what was said of it. */
void sim_managed_forget(const struct sim_block *block);

#endif
