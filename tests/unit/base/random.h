/* SPDX-License-Identifier: MIT */
/* Repeatable random numbers; TEST_SEED replaces the seed, which is always printed. */
#ifndef CCA_TEST_RANDOM_H
#define CCA_TEST_RANDOM_H

#include "support/test.h"

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t random_seed(uint64_t usual)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : usual;

    printf("# seed %" PRIu64 "\n", seed);
    return seed;
}

#endif
