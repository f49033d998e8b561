/* SPDX-License-Identifier: MIT */
/* The driver functions that the library calls itself, found at run time. A table is filled once,
 * before it is shared, and never changes afterwards. */
#ifndef CCA_DEVICE_CUDA_TABLE_H
#define CCA_DEVICE_CUDA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "base/compiler.h"

struct cca_cuda_table {
#define REQUIRED(field, name, params) CUresult(CUDAAPI *field) params;
#define OPTIONAL(field, name, params) CUresult(CUDAAPI *field) params;
#include "device/cuda_symbols.def"
#undef REQUIRED
#undef OPTIONAL
    int driver_version; /* as cuDriverGetVersion reports it, 12050 = 12.5 */
};

/* The address of an exported function of the driver, or NULL. */
typedef void *(*cca_cuda_look_up_fn)(void *user, const char *name);

/* Fills the table, or leaves it untouched and returns -ENOENT when a required function is missing
 * (its name in *missing_out) or the driver does not tell its version. */
int cca_cuda_table_fill(struct cca_cuda_table *table_out, cca_cuda_look_up_fn look_up, void *user,
                        const char **missing_out) CCA_MUST_CHECK;

/* Whether one event can stand behind all streams of a context (12.5 or later). */
bool cca_cuda_table_has_context_events(const struct cca_cuda_table *table);

/* Whether streams can be told apart (12.0 or later). */
bool cca_cuda_table_has_stream_ids(const struct cca_cuda_table *table);

#endif
