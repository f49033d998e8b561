/* SPDX-License-Identifier: MIT */
/* Kernels that the simulator knows by name: they say what they touch and really compute.
 *
 *   sim_fill(void *p, size_t bytes, int value)
 *   sim_fill_slow(void *p, size_t bytes, int value, unsigned us)
 *   sim_copy(void *dst, const void *src, size_t bytes)
 *   sim_add(int *p, size_t n, int v)
 *   sim_spin(unsigned us)
 *   sim_set_condition(cudaGraphConditionalHandle handle, unsigned value)
 *   sim_loop(cudaGraphConditionalHandle handle, unsigned *left)   one less is left, and that is the
 *     condition */
#ifndef SIM_BUILTIN_H
#define SIM_BUILTIN_H

#include "engine.h"
#include "image.h"

struct sim_builtin {
    const char *name;
    /* -1: the code tells, if anything does. */
    int parameter_count;
    unsigned char sizes[SIM_MAX_PARAMETERS];
    /* See stand_in.h; declare and run are not for these. */
    bool is_stand_in;
    void (*declare)(struct sim_op *op, const void *const *arguments);
    void (*run)(struct sim_op *op);
};

/* By plain name or by the mangled name of a C++ function of that name; NULL when unknown. */
const struct sim_builtin *sim_builtin_find(const char *name);
/* Is the symbol the name itself, or what C++ makes of it? */
bool sim_builtin_is_named(const char *symbol, const char *name);
int sim_builtin_parameters(const struct sim_builtin *builtin,
                           struct sim_parameter parameters[SIM_MAX_PARAMETERS]);

#endif
