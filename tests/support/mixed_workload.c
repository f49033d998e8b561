/* SPDX-License-Identifier: MIT */
#include "support/mixed_workload.h"

uint64_t hash_value(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3);
}

uint64_t mixed_draw(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* From 512 bytes to 64 MiB, evenly over the powers of two. */
static uint64_t draw_size(uint64_t *state)
{
    uint64_t x = mixed_draw(state);
    uint64_t base = UINT64_C(512) << ((x >> 32) % 17);
    return base + base * (x & 0xFFFF) / 65536;
}

uint64_t mixed_generate(uint64_t seed, uint64_t sizes[MIXED_SLOTS],
                        struct mixed_step steps[MIXED_STEPS])
{
    uint64_t state = seed, hash = HASH_START;
    for (unsigned i = 0; i < MIXED_SLOTS; i++) {
        sizes[i] = draw_size(&state);
        hash = hash_value(hash, sizes[i]);
    }
    for (unsigned i = 0; i < MIXED_STEPS; i++) {
        steps[i].slot = (unsigned)(mixed_draw(&state) % MIXED_SLOTS);
        steps[i].bytes = draw_size(&state);
        hash = hash_value(hash_value(hash, steps[i].slot), steps[i].bytes);
    }
    return hash;
}
