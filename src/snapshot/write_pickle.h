/* SPDX-License-Identifier: MIT */
/* The snapshot as a pickle of protocol 2, in the subset of opcodes that every reader of PyTorch's
 * snapshots knows. Keys, stable texts, stacks and frames are written once and referred to. */
#ifndef CCA_SNAPSHOT_WRITE_PICKLE_H
#define CCA_SNAPSHOT_WRITE_PICKLE_H

#include "base/sink.h"
#include "snapshot/model.h"

/* Errors stick in the sink; the caller finishes it. Takes tables from the model's arena; when that
 * is full the file grows, nothing else. */
void cca_write_pickle(struct cca_model *model, struct cca_sink *sink);

#endif
