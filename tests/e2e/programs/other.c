/* SPDX-License-Identifier: MIT */
/* Another library to preload, which hooks the same names: it counts and calls the next one. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

__attribute__((visibility("default"))) int cudaMalloc(void **ptr, size_t bytes);
__attribute__((visibility("default"))) int cudaFree(void *ptr);

static int mallocs, frees;

int cudaMalloc(void **ptr, size_t bytes)
{
    int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
    mallocs++;
    return next != NULL ? next(ptr, bytes) : 3;
}

int cudaFree(void *ptr)
{
    int (*next)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "cudaFree");
    frees++;
    return next != NULL ? next(ptr) : 3;
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "other: %d and %d\n", mallocs, frees);
}
