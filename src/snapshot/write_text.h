/* SPDX-License-Identifier: MIT */
/* The snapshot for people: per device PyTorch's table of statistics, what the cache did, and the
 * call stacks that hold most live memory. */
#ifndef CCA_SNAPSHOT_WRITE_TEXT_H
#define CCA_SNAPSHOT_WRITE_TEXT_H

#include "base/sink.h"
#include "snapshot/model.h"

/* Errors stick in the sink; the caller finishes it. */
void cca_write_text(struct cca_model *model, struct cca_sink *sink);

#endif
