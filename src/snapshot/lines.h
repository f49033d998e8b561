/* SPDX-License-Identifier: MIT */
/* Source files and lines, read from the modules' debug information by libbacktrace. */
#ifndef CCA_SNAPSHOT_LINES_H
#define CCA_SNAPSHOT_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/model.h"

/* What libbacktrace has read. It never gives memory back, so one is kept for as long as the modules
 * stay the same. Used by one thread at a time. */
struct cca_lines {
    void *state;
    uint64_t modules; /* what `state` was made for */
};

/* Gives every frame that has them its file and line; the others keep their module's path and line
 * 0. False: the library was built without libbacktrace. Maps and reads files, walks the loader's
 * list: at a moment and on a thread where that is fine. No malloc. */
bool cca_lines_find(struct cca_lines *lines, struct cca_model *model);

/* Whether it was built with libbacktrace. */
bool cca_can_find_lines(void);

#endif
