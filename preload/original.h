/* SPDX-License-Identifier: MIT */
/* Finds the genuine CUDA functions without meeting ourselves. Answers are cached for ever: what was
 * found stays loaded. Thread-safe; only a first look-up enters the loader (and may use malloc
 * there), and not even that once its one possible answer is known: see loader.h. No CUDA header is
 * needed here. */
#ifndef CCA_PRELOAD_ORIGINAL_H
#define CCA_PRELOAD_ORIGINAL_H

#include "preload/rows.h"

typedef int (*cudaGetDevice_fn)(int *device);
typedef int (*cudaRuntimeGetVersion_fn)(int *version);

/* The runtime function that the object around `caller` is bound to, or NULL. */
void *cca_original_runtime(enum cca_row row, const void *caller);

/* The driver function, or NULL. Loads libcuda.so.1 when nobody has. */
void *cca_original_driver(enum cca_row row);

/* A look-up gave this as the genuine driver function: calls go there from now on, unless references
 * by name mean another library's export. */
void cca_original_is_at(enum cca_row row, void *function);

/* Whether calls that this caller makes of its runtime are known to come back through the driver
 * door, and the note that they do. The caller must have been bound to a runtime function before. */
bool cca_original_is_reached(const void *caller);
void cca_original_set_reached(const void *caller);

/* libcuda.so.1, kept loaded from then on, or NULL. Unless it may be loaded, only where somebody has
 * done so; that leaves no error for dlerror. */
void *cca_original_driver_handle(bool may_load);

/* The driver functions of our own, or NULL as long as nobody has loaded libcuda.so.1, or when it
 * lacks one that we need. Filled once. */
struct cca_cuda_table;
const struct cca_cuda_table *cca_original_table(void);

/* Fills it early, if that can be done, from inside a look-up of the program: there the loader is
 * entered natively, too, and may be waited for. Nothing is said; leaves no error for dlerror. */
void cca_original_prepare(void);

#endif
