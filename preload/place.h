/* SPDX-License-Identifier: MIT */
/* Where the streams that callers of the public interface name belong: cca_place_fn of
 * process/process.h. No CUDA header is needed here. */
#ifndef CCA_PRELOAD_PLACE_H
#define CCA_PRELOAD_PLACE_H

#include "process/process.h"

int cca_place(const void *caller, int device, void *stream, struct cca_heap **heap_out,
              cca_key *key_out);

#endif
