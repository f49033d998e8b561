/* SPDX-License-Identifier: MIT */
/* The mixed workload that allocators are compared by: 2000 blocks of 512 B to 64 MiB, then 100,000
 * times one of them is freed and another size allocated in its place. The same sequence for a seed
 * on every machine; the hash proves it. */
#ifndef CCA_TEST_MIXED_WORKLOAD_H
#define CCA_TEST_MIXED_WORKLOAD_H

#include <stdint.h>

enum { MIXED_SLOTS = 2000, MIXED_STEPS = 100000 };

struct mixed_step {
    unsigned slot;
    uint64_t bytes;
};

#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_value(uint64_t hash, uint64_t value);

/* The next number of splitmix64. */
uint64_t mixed_draw(uint64_t *state);

/* Returns the hash over what it generated. */
uint64_t mixed_generate(uint64_t seed, uint64_t sizes[MIXED_SLOTS],
                        struct mixed_step steps[MIXED_STEPS]);

#endif
