/* SPDX-License-Identifier: MIT */
/* The part of the document that PyTorch's snapshots lack: process, settings, statistics, modules.
 */
#ifndef CCA_SNAPSHOT_WALK_OWN_H
#define CCA_SNAPSHOT_WALK_OWN_H

#include "snapshot/model.h"
#include "snapshot/writer.h"

/* Writes the key `cca` and its value. The lists `stats` and `counters` are indexed by ordinal; the
 * items of `devices` name theirs. */
void cca_walk_own(const struct cca_model *model, struct cca_writer *writer);

#endif
