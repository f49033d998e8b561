/* SPDX-License-Identifier: MIT */
/* The gate between our own event records and the program's stream captures: an event recorded while
 * a capture is under way would invalidate it. Records hold the gate shared; the start of a capture
 * holds it exclusively before the real call, so that no record of ours is still on its way. Taken
 * outside every lock; nothing waits for the device under it. */
#ifndef CCA_ALLOC_GATE_H
#define CCA_ALLOC_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cca_gate {
    pthread_rwlock_t lock;
    atomic_bool capture_seen; /* written with the gate held exclusively; never goes back */
};

void cca_gate_init(struct cca_gate *gate);

/* True: records are allowed until leave. False: a capture was seen, nothing may be recorded, and
 * leave must not be called. */
bool cca_gate_enter(struct cca_gate *gate);
void cca_gate_leave(struct cca_gate *gate);

/* Returns once no record is under way; later enters fail. */
void cca_gate_close(struct cca_gate *gate);
bool cca_gate_is_closed(const struct cca_gate *gate);

#endif
