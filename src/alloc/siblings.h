/* SPDX-License-Identifier: MIT */
/* The contexts of one device share its memory, its limit and its accounts. */
#ifndef CCA_ALLOC_SIBLINGS_H
#define CCA_ALLOC_SIBLINGS_H

#include "alloc/heap.h"

/* Bytes that all contexts of the heap's device hold. Heap lock held. */
size_t cca_siblings_reserved(struct cca_heap *heap);

/* What the other contexts of the device, `and_itself`, hold idle goes back to the driver, after a
 * wait for fences of at most CCA_OOM_WAIT_MS each: natively nothing would lie idle there. Bytes
 * given back. No lock held. */
size_t cca_siblings_release(const struct cca_heap *heap, bool and_itself);

/* The same without itself, with the heap lock held, which is dropped meanwhile. */
void cca_siblings_release_unlocked(struct cca_heap *heap);

/* Bytes of wholly free segments that all contexts of the device hold. No lock held. */
size_t cca_siblings_releasable(const struct cca_heap *heap);

#endif
