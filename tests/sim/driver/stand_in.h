/* SPDX-License-Identifier: MIT */
/* Kernels for which a test has named host functions (simcuda_set_kernel). */
#ifndef SIM_STAND_IN_H
#define SIM_STAND_IN_H

#include "builtin.h"
#include "work.h"

struct simcuda_kernel;

void sim_stand_in_set(const struct simcuda_kernel *kernel);
/* The latest for a name; NULL: there is none. */
const struct sim_builtin *sim_stand_in_find(const char *name);
/* Ranges and work of a launch of builtin, which stand_in_find gave. */
void sim_stand_in_reach(const struct sim_builtin *builtin, const struct sim_kernel_work *work,
                        struct sim_op *op);

#endif
