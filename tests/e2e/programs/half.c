/* SPDX-License-Identifier: MIT */
/* A library that links a runtime of its own: built once for each, with HALF as the prefix of what
 * it exports. */
#include "half.h"

/* Not by the headers, whose names may be those of one release alone. */
int cudaMalloc(void **ptr, size_t bytes);
int cudaFree(void *ptr);
int cudaMemset(void *ptr, int value, size_t bytes);
int cudaPeekAtLastError(void);
int cudaGetLastError(void);
int cudaRuntimeGetVersion(int *version);

#define DECLARE(prefix) HALF_DECLARE(prefix)
#define JOIN(a, b)      a##b
#define NAME_OF(a, b)   JOIN(a, b)
#define NAME(what)      NAME_OF(HALF, what)

DECLARE(HALF);

int NAME(_malloc)(void **ptr, size_t bytes)
{
    return cudaMalloc(ptr, bytes);
}

int NAME(_free)(void *ptr)
{
    return cudaFree(ptr);
}

int NAME(_set)(void *ptr, int value, size_t bytes)
{
    return cudaMemset(ptr, value, bytes);
}

int NAME(_last_error)(void)
{
    int peeked = cudaPeekAtLastError();
    return peeked * 1000 + cudaGetLastError();
}

int NAME(_version)(void)
{
    int version = 0;
    return cudaRuntimeGetVersion(&version) == 0 ? version : -1;
}
