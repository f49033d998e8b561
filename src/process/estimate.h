/* SPDX-License-Identifier: MIT */
/* What caching would have saved a program whose calls all reach the driver (CCA_MODE=count): its
 * requests are played to an allocator like the one that would serve them, over a device of paper
 * whose memory is addresses alone and whose work is always over. So it tells the best that caching
 * can do; blocks that wait for their fences would miss a little more often.
 *
 * Thread-safe; no lock may be held. Nothing here calls a driver or the C library's malloc. */
#ifndef CCA_PROCESS_ESTIMATE_H
#define CCA_PROCESS_ESTIMATE_H

#include <stdint.h>

#include "alloc/allocator.h"
#include "base/compiler.h"
#include "config/config.h"

struct cca_estimate;

/* For the settings of the process; -ENOMEM. */
int cca_estimate_create(const struct cca_config *config,
                        struct cca_estimate **estimate_out) CCA_MUST_CHECK;

/* The driver gave `addr` to the program within `took_ns`. */
void cca_estimate_alloc(struct cca_estimate *estimate, struct cca_heap *heap,
                        const struct cca_request *request, uint64_t addr, uint64_t took_ns);

/* The program frees an address: before the driver is told, for it may come back at once. The
 * device's ordinal, for cca_estimate_freed, or -1 when nothing is known of the address. */
int cca_estimate_free(struct cca_estimate *estimate, uint64_t addr,
                      const struct cca_request *request);
void cca_estimate_freed(struct cca_estimate *estimate, int ordinal, uint64_t took_ns);

struct cca_estimate_figures {
    /* What was: calls that reached the driver, and the time in them. */
    int64_t allocs, frees, alloc_ns, free_ns;
    uint64_t alloc_median_ns;
    /* What caching would have made of it. */
    int64_t hits;                        /* allocations without a driver call */
    int64_t driver_allocs, driver_frees; /* calls that would be left */
    int64_t reserved_peak;               /* bytes held at most */
};

/* Of one device; all 0 when it was not used. */
void cca_estimate_read(struct cca_estimate *estimate, int ordinal,
                       struct cca_estimate_figures *figures_out);

#endif
