/* SPDX-License-Identifier: MIT */
/* Stands for a CUDA runtime: every call answers with the number of the release. */
#include <stddef.h>

int cudaFree(void *ptr);
int cudaMalloc(void **ptr, size_t bytes);
int cudaSetDevice(int device);

int cudaFree(void *ptr)
{
    (void)ptr;
    return ANSWER;
}

int cudaMalloc(void **ptr, size_t bytes)
{
    (void)ptr;
    (void)bytes;
    return ANSWER;
}

#ifndef ONLY_MEMORY
int cudaThreadExit(void);
int cudaThreadSynchronize(void);

int cudaThreadExit(void)
{
    return ANSWER;
}

int cudaThreadSynchronize(void)
{
    return ANSWER;
}

int cudaSetDevice(int device)
{
    (void)device;
    return ANSWER;
}
#endif
