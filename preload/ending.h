/* SPDX-License-Identifier: MIT */
/* Primary contexts that end: who must not look at them meanwhile, and whether one has ended. To be
 * called from hooks; takes no lock. No CUDA header is needed here. */
#ifndef CCA_PRELOAD_ENDING_H
#define CCA_PRELOAD_ENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/rows.h"

/* Once, before any other: follows forks. */
void cca_ending_load(void);

/* Around the calls that may end a primary context: none is found meanwhile that is about to go.
 * Waits for those who look, a second at most; does nothing in a process that the library has left
 * alone. */
void cca_ending_begins(void);
void cca_ending_over(void);

/* Around a look for contexts, which is allowed when begins says so; over only then. */
bool cca_ending_look_begins(void);
void cca_ending_look_over(void);

/* The life of a device's primary context that has a heap, read before a release and compared after
 * it; meanwhile the heap is held. */
struct cca_life {
    uint64_t context; /* 0: no heap */
    bool has_id;      /* the driver gives ids */
    unsigned long long id;
};
struct cca_life cca_ending_life(int device);

/* Whether that life is over, although the context may be up again: another thread may have brought
 * it up since. */
bool cca_ending_has_ended(int device, const struct cca_life *life);

/* Between hold and let go nobody is served from the device's heap. */
void cca_ending_hold(int device);
void cca_ending_let_go(int device);

bool cca_ending_is_held(int device);

/* Waits until nobody holds the device's heap, a second at most; false when it is held still, and
 * the call is to be forwarded. */
bool cca_ending_wait(int device);

#endif
