/* SPDX-License-Identifier: MIT */
/* A library that is linked to a runtime of its own. */
#include <stddef.h>

int cudaFree(void *ptr);
int cudaSetDevice(int device);
int plugin_answers(void);

int plugin_answers(void)
{
    return cudaFree(NULL) * 1000 + cudaSetDevice(0);
}
