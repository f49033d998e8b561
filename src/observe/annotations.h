/* SPDX-License-Identifier: MIT */
/* Regions of a profiler: the newest ones, for the whole process. Thread-safe; no malloc. */
#ifndef CCA_OBSERVE_ANNOTATIONS_H
#define CCA_OBSERVE_ANNOTATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

struct cca_annotation {
    uint64_t time_ns;
    uint32_t text; /* id in the table of texts */
    int16_t device;
    bool is_end;
};

struct cca_annotations {
    struct cca_lock lock; /* leaf rank */
    struct cca_annotation *entries;
    size_t capacity, next, held;
};

void cca_annotations_init(struct cca_annotations *annotations, size_t capacity);

/* The oldest one goes when it is full. -ENOMEM. */
int cca_annotations_add(struct cca_annotations *annotations, const struct cca_annotation *entry);
size_t cca_annotations_count(struct cca_annotations *annotations);

/* Copies the newest, at most `max`, oldest first; returns how many. */
size_t cca_annotations_copy(struct cca_annotations *annotations, struct cca_annotation *out,
                            size_t max);
void cca_annotations_fini(struct cca_annotations *annotations);

#endif
