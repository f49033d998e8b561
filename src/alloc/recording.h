/* SPDX-License-Identifier: MIT */
/* What is recorded of all heaps, those to come included: the history's size and gaps, and whether
 * its entries carry call stacks. Guarded by the allocator's lock. */
#ifndef CCA_ALLOC_RECORDING_H
#define CCA_ALLOC_RECORDING_H

#include <stdbool.h>

#include "observe/observer.h"

struct cca_allocator;
struct cca_config;
struct cca_heap;

struct cca_recording_state {
    struct cca_recording recording;
    bool stacks_in_trace;
};

void cca_recording_init(struct cca_allocator *allocator, const struct cca_config *config);

/* A new heap records like the others. */
void cca_recording_apply(struct cca_heap *heap);

/* Changes what every heap keeps, now and later. `clears`: their histories are emptied. Any thread,
 * no lock held. -ENOMEM: a ring could not be made anew and keeps its size. */
int cca_allocator_set_recording(struct cca_allocator *allocator,
                                const struct cca_recording *recording, bool stacks_in_trace,
                                bool clears) CCA_MUST_CHECK;
struct cca_recording cca_allocator_recording(struct cca_allocator *allocator);

#endif
