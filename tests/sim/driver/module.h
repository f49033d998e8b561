/* SPDX-License-Identifier: MIT */
/* Modules and libraries, one kind of object here, and the kernels in them. */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "image.h"

#include <cuda.h>
#include <stdbool.h>

#define SIM_MODULE_MAGIC 0x4d4f4455u
#define SIM_KERNEL_MAGIC 0x4b45524eu

struct CUmod_st {
    unsigned magic;
    struct CUmod_st *older;
    struct sim_image image;
    struct sim_kernel *kernels;
    struct sim_variable *variables;
};

/* What stands behind CUfunction and CUkernel alike. parameter_count is -1 when nobody knows it. */
struct sim_kernel {
    unsigned magic;
    char *name;
    struct CUmod_st *module;
    struct sim_kernel *next;
    const struct sim_builtin *builtin;
    int parameter_count;
    struct sim_parameter parameters[SIM_MAX_PARAMETERS];
    int attributes[CU_FUNC_ATTRIBUTE_MAX];
};

/* NULL when the handle is not one. */
struct CUmod_st *sim_module_of(const void *handle);
struct sim_kernel *sim_kernel_of(const void *handle);

#endif
