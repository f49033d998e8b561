/* SPDX-License-Identifier: MIT */
/* Cached memory goes back to the driver. Called with the heap lock held, which is dropped for the
 * device calls; the heap may have been dropped meanwhile. */
#ifndef CCA_ALLOC_RELEASE_H
#define CCA_ALLOC_RELEASE_H

#include "alloc/fence.h"
#include "alloc/heap.h"

/* Gives wholly free segments back: those that are READY, and after waiting at most `wait_ms` for
 * fences also the others. Returns the bytes given back. */
size_t cca_release_waiting(struct cca_heap *heap, uint64_t wait_ms);

/* The same for one private pool that nobody retains. The pool may be gone afterwards. */
struct cca_private_pool;
size_t cca_release_pool(struct cca_heap *heap, struct cca_private_pool *pool, uint64_t wait_ms);

/* Only those that are READY now; never waits for fences. */
size_t cca_release_ready(struct cca_heap *heap);

/* While the program captures on another stream nothing can be proven, and nothing may be recorded;
 * but the driver's own free is legal, and waits as the program's own frees do: gives back whole
 * segments that are READY or were freed by such calls. May wait for the device. 0 while a capture
 * is open on this heap. */
size_t cca_release_beside_capture(struct cca_heap *heap);

/* The same inside a free that waits natively, while more than CCA_PENDING_MAX waits for the end of
 * the capture; now and then, as each time takes a walk. */
void cca_release_over_cap(struct cca_heap *heap);

/* Whether idle memory may go back: not while a capture is open, but see above. */
bool cca_release_is_allowed(const struct cca_heap *heap);

/* Whether a free by the driver would return at once: the device is seen to be done with everything
 * submitted before. Never where the driver has no context events. A core in stream order leaves the
 * waiting to the driver. */
bool cca_release_is_idle(struct cca_heap *heap);

/* Frees the memory of detached segments. The driver's free may wait for the whole device: call it
 * where the program's own call would wait, or when the device is seen to be idle. */
size_t cca_release_detached(struct cca_heap *heap, struct cca_detached *detached);

/* Gives back what a proof allows; `only`: of this private pool, NULL: of all. Without a proof
 * nothing goes back, for the driver's free might wait without end; but where the
 * driver has no context events READY memory goes back with its wait: for requests that would fail,
 * and where the program asks for it. A core driven in stream order gives back all that is free,
 * as the driver's own free waits. */
size_t cca_release_proven(struct cca_heap *heap, struct cca_private_pool *only,
                          const struct cca_proof *proof);

/* A look at everything that freed memory waits for. */
void cca_release_poll(struct cca_heap *heap);

#endif
