/* SPDX-License-Identifier: MIT */
/* The gate between our own calls to the driver and the program's stream captures: an event recorded
 * while a capture is under way would invalidate it. Such calls hold the gate shared and are made
 * only while no capture is known; the start of a capture raises the count first and then waits
 * until no call of ours is still on its way. Taken outside every lock; nothing waits for the device
 * under it. */
#ifndef CCA_ALLOC_GATE_H
#define CCA_ALLOC_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cca_gate {
    pthread_rwlock_t lock;
    atomic_uint captures; /* under way, or about to begin */
};

void cca_gate_init(struct cca_gate *gate);

/* True: records are allowed until leave. False: a capture is under way, nothing may be recorded,
 * and leave must not be called. */
bool cca_gate_enter(struct cca_gate *gate);
void cca_gate_leave(struct cca_gate *gate);

/* A capture is about to begin: returns once no record is under way; later enters fail. */
void cca_gate_close(struct cca_gate *gate);
/* It has ended, or did not begin. */
void cca_gate_open(struct cca_gate *gate);
bool cca_gate_is_closed(const struct cca_gate *gate);

#endif
