/* SPDX-License-Identifier: MIT */
/* The document, whatever its format: keys, order and meaning are PyTorch's snapshot, with ours
 * under `cca` and at the end of each dict. */
#ifndef CCA_SNAPSHOT_WALK_H
#define CCA_SNAPSHOT_WALK_H

#include "snapshot/model.h"
#include "snapshot/writer.h"

/* Writes the whole document; the model is sorted and symbolized. */
void cca_walk_model(const struct cca_model *model, struct cca_writer *writer);

/* How many ids the walk gives to writer->shared_begin: 0 to this minus one. */
size_t cca_walk_shared_count(const struct cca_model *model);

#endif
