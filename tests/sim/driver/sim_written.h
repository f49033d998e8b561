/* SPDX-License-Identifier: MIT */
/* Which rows of sim_functions have a body; generated with them. */
#ifndef SIM_WRITTEN_H
#define SIM_WRITTEN_H

#include <stdbool.h>

bool sim_is_written(unsigned index);

#endif
