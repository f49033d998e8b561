/* SPDX-License-Identifier: MIT */
#include "stand_in.h"

#include "../sim.h"
#include "access.h"
#include "call.h"
#include "module.h"

#include <stdlib.h>

#define MAX_RANGES 64

/* Never freed: kernels keep the builtin. */
struct stand_in {
    struct sim_builtin builtin;
    struct simcuda_kernel kernel;
    struct stand_in *older;
};

static struct stand_in *newest;

/* What a launch takes along: its own copy of the arguments. */
struct launch {
    const struct stand_in *stand_in;
    struct sim_work work;
};

void sim_stand_in_set(const struct simcuda_kernel *kernel)
{
    struct stand_in *stand_in = calloc(1, sizeof(*stand_in));

    stand_in->kernel = *kernel;
    stand_in->builtin.name = kernel->name;
    stand_in->builtin.is_stand_in = true;
    stand_in->builtin.parameter_count = kernel->parameter_sizes != NULL
                                            ? (int)kernel->parameter_count
                                            : -1;
    for (unsigned i = 0;
         kernel->parameter_sizes != NULL && i < kernel->parameter_count && i < SIM_MAX_PARAMETERS;
         i++) {
        stand_in->builtin.sizes[i] = kernel->parameter_sizes[i];
    }
    stand_in->older = newest;
    newest = stand_in;
}

const struct sim_builtin *sim_stand_in_find(const char *name)
{
    for (struct stand_in *stand_in = newest; stand_in != NULL; stand_in = stand_in->older) {
        if (sim_builtin_is_named(name, stand_in->kernel.name)) {
            return &stand_in->builtin;
        }
    }
    return NULL;
}

static void run(struct sim_op *op)
{
    const struct launch *launch = op->data;
    const struct sim_kernel_work *work = &launch->work.kernel;

    if (launch->stand_in->kernel.run != NULL) {
        sim_call_set_in_kernel(true);
        launch->stand_in->kernel.run(work->arguments, work->grid, work->block);
        sim_call_set_in_kernel(false);
    }
}

static void drop(struct sim_op *op)
{
    struct launch *launch = op->data;

    sim_work_fini(&launch->work);
    free(launch);
}

void sim_stand_in_reach(const struct sim_builtin *builtin, const struct sim_kernel_work *work,
                        struct sim_op *op)
{
    const struct stand_in *stand_in = (const struct stand_in *)builtin;
    struct simcuda_range ranges[MAX_RANGES];
    struct sim_work all = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *work};
    struct launch *launch = calloc(1, sizeof(*launch));
    unsigned count = 0;

    launch->stand_in = stand_in;
    sim_work_copy(&launch->work, &all);
    op->data = launch;
    op->run = run;
    op->drop = drop;
    if (stand_in->kernel.ranges != NULL) {
        sim_call_set_in_kernel(true);
        count = stand_in->kernel.ranges(work->arguments, ranges, MAX_RANGES);
        sim_call_set_in_kernel(false);
    }
    for (unsigned i = 0; i < count && i < MAX_RANGES; i++) {
        sim_op_reach(op, ranges[i].address, ranges[i].size_bytes, ranges[i].is_write);
    }
}
