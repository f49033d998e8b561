/* SPDX-License-Identifier: MIT */
/* What is said when a request fails for want of memory. */
#ifndef CCA_PROCESS_OOM_H
#define CCA_PROCESS_OOM_H

#include <stdint.h>

#include "snapshot/model.h"

/* The figures that the advice follows from; bytes. */
struct cca_oom_figures {
    uint64_t rounded;          /* the request */
    uint64_t live;             /* blocks in use */
    uint64_t pending;          /* freed, not yet reusable */
    uint64_t reserved;         /* held from the driver */
    uint64_t largest_free;     /* block of the cache */
    uint64_t stranded;         /* free, in segments that are partly in use */
    uint64_t stranded_large;   /* of these, in segments above 20 MiB */
    uint64_t stranded_segment; /* the smallest of those segments; 0 = none */
    uint64_t limit;            /* that the settings put; 0 = none */
    uint64_t device_free;
    uint64_t max_split; /* CCA_MAX_SPLIT_SIZE; 0 = unlimited */
};

/* The setting that would have made this request succeed, as a sentence without its end; "" when
 * none would. Written to `buf`. */
const char *cca_oom_advice(const struct cca_oom_figures *figures, char *buf, size_t cap);

/* Fills model->oom, but for its request, from the copied state. */
struct cca_config;
void cca_oom_examine(struct cca_model *model, const struct cca_config *config);

/* The paragraph on the log. Named stacks, or none. `quiet_before`: failures since the last one. */
void cca_oom_print(struct cca_model *model, uint64_t quiet_before);

#endif
