/* SPDX-License-Identifier: MIT */
/* Allocates and frees while it is loaded. */
#include "program.h"

__attribute__((constructor, noinline)) static void allocate_while_loading(void)
{
    void *p = NULL;
    if (cudaMalloc(&p, 12345) == cudaSuccess) {
        (void)cudaFree(p);
    }
}
