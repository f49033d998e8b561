/* SPDX-License-Identifier: MIT */
/* The snapshot as JSON: the keys of the pickle, tuples as lists, whole numbers of up to 64 bits
 * written as they are. */
#ifndef CCA_SNAPSHOT_WRITE_JSON_H
#define CCA_SNAPSHOT_WRITE_JSON_H

#include "base/sink.h"
#include "snapshot/model.h"

/* Errors stick in the sink; the caller finishes it. */
void cca_write_json(struct cca_model *model, struct cca_sink *sink);

#endif
