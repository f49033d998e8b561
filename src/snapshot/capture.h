/* SPDX-License-Identifier: MIT */
/* Copies the allocator's state into a model: segments, blocks, history and accounts of all devices
 * at one instant. Formats nothing and makes no device call. */
#ifndef CCA_SNAPSHOT_CAPTURE_H
#define CCA_SNAPSHOT_CAPTURE_H

#include "snapshot/model.h"

struct cca_allocator;
struct cca_config;

enum { CCA_CAPTURE_LOCK_MS = 2000 };

struct cca_capture_options {
    unsigned lock_ms;    /* how long to wait for each heap's lock before it is left out */
    size_t last_entries; /* at most so many of each device; 0: all */
};

/* Initialises the model and fills it, sorted. All heap locks are held together for the copy; what
 * can be done before or after is. A heap whose lock cannot be had in time is left out, and its
 * device marked partial. -ENOMEM leaves nothing to undo. Any thread, no lock held. */
int cca_capture_model(struct cca_model *model, struct cca_allocator *allocator,
                      const struct cca_config *config,
                      const struct cca_capture_options *options) CCA_MUST_CHECK;

#endif
