/* SPDX-License-Identifier: MIT */
/* Where a call came from and when: what a report says of either party. Taking one costs some
 * microseconds, nearly all for the stack; nothing but the caller is taken when sim_config does not
 * record. */
#ifndef SIM_SITE_H
#define SIM_SITE_H

#include <stdint.h>

#define SIM_SITE_FRAMES 12

/* frames are return addresses outside the driver, the innermost first. */
struct sim_site {
    const void *caller;
    uint64_t time_ns;
    int thread;
    unsigned frame_count;
    const void *frames[SIM_SITE_FRAMES];
};

/* Of the call that this thread is in. */
void sim_site_take(struct sim_site *site);
/* An address as object+offset and the name of the function, where there is one. */
void sim_site_describe(const void *address, char *text, unsigned room);

#endif
