/* SPDX-License-Identifier: MIT */
/* The rows of hooks.def as numbers and as a table. To be included before any CUDA header: those
 * rename some of the very names. */
#ifndef CCA_PRELOAD_ROWS_H
#define CCA_PRELOAD_ROWS_H

#include <stdbool.h>

#ifdef CUDA_VERSION
#error "preload/rows.h comes before the CUDA headers"
#endif

/* The rows, then the functions that hooks call themselves. */
enum cca_row {
#define ROW(name, door, action, since, is_per_thread, params, args) CCA_ROW_##name,
#include "preload/hooks.def"
    CCA_ROW_HOOKS,
    CCA_ROW_cudaGetDevice = CCA_ROW_HOOKS,
    CCA_ROW_cudaRuntimeGetVersion,
    CCA_ROWS
};

enum cca_door { CCA_DOOR_RUNTIME, CCA_DOOR_DRIVER };

/* What hooks.def says of them. */
enum cca_action {
    CCA_ACTION_SERVE,
    CCA_ACTION_STATE,
    CCA_ACTION_CAPTURE,
    CCA_ACTION_LOOKUP,
    CCA_ACTION_RETRY,
    CCA_ACTION_TRACK,
    CCA_ACTION_UNTRACK,
    CCA_ACTION_VALVE
};

struct cca_row_info {
    const char *name; /* as exported */
    enum cca_door door;
    enum cca_action action;
    int since;          /* as CUDA counts, 11020 = 11.2 */
    bool is_per_thread; /* a null stream is the thread's own */
    void *wrapper;      /* our exported function */
};

/* In the order of the enum; read only. */
extern const struct cca_row_info cca_rows[CCA_ROW_HOOKS];

/* Name of a row, those behind the hooks included. */
const char *cca_row_name(enum cca_row row);

#endif
