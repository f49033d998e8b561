/* SPDX-License-Identifier: MIT */
/* What is said of a file while it is written: how large it will be, and how far it has come. */
#ifndef CCA_PROCESS_PROGRESS_H
#define CCA_PROCESS_PROGRESS_H

#include <stdint.h>

struct cca_progress {
    uint64_t expected_bytes;
    uint64_t next_ns; /* of the next line */
};

/* A line of level info; a warning that names the way out where viewers will not open the file. */
void cca_progress_begin(struct cca_progress *progress, uint64_t expected_bytes);

/* Now and then a line of level info. `progress`: a struct cca_progress. */
void cca_progress_tell(void *progress, uint64_t written_bytes);

#endif
