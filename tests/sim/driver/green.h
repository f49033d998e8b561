/* SPDX-License-Identifier: MIT */
/* Green contexts: part of a device's multiprocessors, with streams of their own inside the primary
 * context. Memory, modules and events belong to the primary one. */
#ifndef SIM_GREEN_H
#define SIM_GREEN_H

#include "context.h"

/* Never freed, so a stale handle can be told. It ends with the life of the primary context that it
 * was made in. view is what cuCtxFromGreenCtx gives: a handle that can be made current. legacy: the
 * default stream; marks and floor as in a context. */
struct CUgreenCtx_st {
    unsigned magic;
    bool is_destroyed;
    struct CUctx_st *primary;
    unsigned long long primary_id;
    unsigned long long id;
    unsigned multiprocessors;
    struct CUctx_st view;
    struct sim_queue *legacy;
    struct sim_queue *marks;
    struct sim_op *floor;
    struct sim_clock floor_clock;
    struct CUgreenCtx_st *older;
};

/* NULL: not one, or not alive. */
struct CUgreenCtx_st *sim_green_of(CUgreenCtx handle);
/* The green context whose view the handle is, alive or not; NULL for another context. */
struct CUgreenCtx_st *sim_green_of_view(CUcontext handle);
bool sim_green_is_alive(const struct CUgreenCtx_st *green);
/* A queue in the green context. */
struct sim_queue *sim_green_queue(struct CUgreenCtx_st *green);

#endif
