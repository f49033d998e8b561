/* SPDX-License-Identifier: MIT */
/* How large a snapshot will be, before it is written. */
#ifndef CCA_SNAPSHOT_SIZE_H
#define CCA_SNAPSHOT_SIZE_H

#include <stdint.h>

#include "snapshot/model.h"

/* Bytes of the file, within a third where it has thousands of events; the model is symbolized. A
 * pickle holds every stack once, JSON wherever it is used. */
uint64_t cca_size_of_pickle(const struct cca_model *model);
uint64_t cca_size_of_json(const struct cca_model *model);
uint64_t cca_size_of_text(const struct cca_model *model);

#endif
