/* SPDX-License-Identifier: MIT */
/* What the rest asks of memory that other processes gave. */
#ifndef SIM_IPC_H
#define SIM_IPC_H

#include "block.h"

/* Ends one use of memory from another process's pool; false: it is not of a pool. */
bool sim_ipc_free(struct sim_block *block);
void sim_ipc_forget_context(struct CUctx_st *context);

#endif
