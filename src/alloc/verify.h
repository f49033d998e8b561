/* SPDX-License-Identifier: MIT */
/* Walks a heap and checks every identity its headers state. For tests after each step, and in debug
 * builds with CCA_VERIFY=1. Called with the heap lock held. */
#ifndef CCA_ALLOC_VERIFY_H
#define CCA_ALLOC_VERIFY_H

#include "alloc/allocator_internal.h"
#include "base/check.h"

/* NULL when all holds, else a text that names the first broken identity. */
const char *cca_verify_heap(struct cca_heap *heap);

static inline void cca_verify_if_wanted(struct cca_heap *heap)
{
#ifndef NDEBUG
    if (heap->allocator->config->verify) {
        const char *broken = cca_verify_heap(heap);
        if (broken != NULL) {
            cca_check_failed(broken, __FILE__, __LINE__);
        }
    }
#else
    (void)heap;
#endif
}

#endif
