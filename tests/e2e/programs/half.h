/* SPDX-License-Identifier: MIT */
/* What both halves of tworuntimes.c export, by prefix. */
#ifndef HALF_H
#define HALF_H

#include <stddef.h>

/* last_error: what is peeked at, times 1000, and what is taken. */
#define HALF_DECLARE(prefix)                              \
    int prefix##_malloc(void **ptr, size_t bytes);        \
    int prefix##_free(void *ptr);                         \
    int prefix##_set(void *ptr, int value, size_t bytes); \
    int prefix##_last_error(void);                        \
    int prefix##_version(void)

#endif
