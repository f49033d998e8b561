/* SPDX-License-Identifier: MIT */
/* Time, behind one replaceable function so that tests own it. Thread-safe. */
#ifndef CCA_BASE_CLOCK_H
#define CCA_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t cca_clock_ns(void);

/* Unix time in microseconds for a cca_clock_ns value of this process. The distance between the two
 * clocks is taken at the first call and kept; under a replaced clock it is 0. */
int64_t cca_clock_wall_us(uint64_t mono_ns);

/* Sleeps; a test clock advances instead. */
void cca_clock_sleep_us(uint64_t us);

struct cca_clock_source {
    uint64_t (*now_ns)(void);
    void (*sleep_us)(uint64_t us);
};

/* For tests; NULL puts the real clock back. Not thread-safe. */
void cca_clock_replace(const struct cca_clock_source *source);

#endif
