/* SPDX-License-Identifier: MIT */
/* How contexts end: what their heaps know is forgotten. allocator.h has the calls of the hooks. */
#ifndef CCA_ALLOC_CONTEXT_END_H
#define CCA_ALLOC_CONTEXT_END_H

#include "alloc/heap.h"

/* Nothing is served or asked any more, and all memory is forgotten. Heap lock held. */
void cca_context_end_forget(struct cca_heap *heap);

#endif
