/* SPDX-License-Identifier: MIT */
/* A library that allocates from two functions deep. Built several times: PLUGGED_NAME is part of
 * the names, PLUGGED_BYTES the size of the frames. */
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

#define OUTER       JOIN(PLUGGED_NAME, _outer)
#define INNER       JOIN(PLUGGED_NAME, _inner)
#define LOCAL       JOIN(PLUGGED_NAME, _local)

#define TEXT_(a)    #a
#define TEXT(a)     TEXT_(a)

/* Other frames, other places of the functions, whatever the compiler makes of them. */
__asm__(".text\n\t.skip " TEXT(PLUGGED_BYTES) " / 64\n");

__attribute__((visibility("default"))) void *INNER(size_t bytes);
__attribute__((visibility("default"))) void *OUTER(size_t bytes);

/* Not exported: only the file knows its name. */
__attribute__((noinline)) static void *LOCAL(size_t bytes)
{
    volatile char frame[PLUGGED_BYTES];
    void *p = NULL;

    frame[0] = 1;
    return cudaMalloc(&p, bytes + (size_t)frame[0] - 1) == cudaSuccess ? p : NULL;
}

__attribute__((noinline)) void *INNER(size_t bytes)
{
    volatile char frame[PLUGGED_BYTES];

    frame[0] = 1;
    return LOCAL(bytes + (size_t)frame[0] - 1);
}

__attribute__((noinline)) void *OUTER(size_t bytes)
{
    volatile char frame[2 * PLUGGED_BYTES];

    frame[0] = 1;
    return INNER(bytes + (size_t)frame[0] - 1);
}

/* By one name for all. */
__attribute__((visibility("default"))) void *plugged_allocate(size_t bytes);
void *plugged_allocate(size_t bytes)
{
    return OUTER(bytes);
}
