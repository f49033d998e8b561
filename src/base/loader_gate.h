/* SPDX-License-Identifier: MIT */
/* What walks the loader's list of objects (dl_iterate_phdr) holds a lock of the C library that
 * fork hands to the child as it is: taken for ever, when another thread was in a walk. So every
 * walk of ours, and every call of ours that may walk, lies between enter and leave, and a fork
 * closes the gate first and waits until none is under way. Lock-free, a few nanoseconds; from any
 * thread, with or without locks of ours. */
#ifndef CCA_BASE_LOADER_GATE_H
#define CCA_BASE_LOADER_GATE_H

#include <stdbool.h>

#include "base/compiler.h"

/* False while a fork is under way: do without the walk, or wait. Nests. After false, leave must not
 * be called. The thread that closed the gate is always let in. */
bool cca_loader_gate_enter(void) CCA_MUST_CHECK;
void cca_loader_gate_leave(void);

/* For what cannot do without: waits for a fork that is under way, at most as long as a fork waits.
 * False: go on without leave. */
bool cca_loader_gate_enter_late(void) CCA_MUST_CHECK;

/* Around fork. Close waits until no other thread is inside, at most two seconds; false when one
 * still was. Each close needs an open, in the parent; the child calls reset instead. */
bool cca_loader_gate_close(void);
void cca_loader_gate_open(void);
void cca_loader_gate_reset(void);

#endif
