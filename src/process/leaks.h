/* SPDX-License-Identifier: MIT */
/* What was still allocated at the end, by call stack, on the log. */
#ifndef CCA_PROCESS_LEAKS_H
#define CCA_PROCESS_LEAKS_H

struct cca_model;

/* The largest holders of each device, one line each. The stacks are named, or none are there. */
void cca_leaks_print(struct cca_model *model);

#endif
