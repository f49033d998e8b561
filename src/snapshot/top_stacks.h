/* SPDX-License-Identifier: MIT */
/* Who holds the live memory of a model: bytes, blocks and age by call stack. */
#ifndef CCA_SNAPSHOT_TOP_STACKS_H
#define CCA_SNAPSHOT_TOP_STACKS_H

#include "snapshot/model.h"

/* Live memory of one stack. */
struct cca_holder {
    uint64_t bytes, blocks;
    uint64_t marked_bytes, marked_blocks; /* of these, handed out since the last mark */
    uint64_t oldest_ns;                   /* when the oldest block was handed out; 0 = none */
    uint32_t stack;                       /* as the model's `stack` fields; 0 = none was kept */
};

/* Every holder of a device (-1: of all), the largest first; `count_out` of them. From the model's
 * arena; NULL when that is full. Only after cca_symbolize_model. */
CCA_MUST_CHECK struct cca_holder *cca_top_stacks(struct cca_model *model, int device,
                                                 size_t *count_out);

/* The stack of a holder on one line, "inner < outer < main", of at most `max` frames from the
 * innermost on. */
struct cca_text;
void cca_top_stacks_describe(const struct cca_model *model, uint32_t stack, size_t max,
                             struct cca_text *text);

#endif
