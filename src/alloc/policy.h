/* SPDX-License-Identifier: MIT */
/* The rules of sizes, as pure functions: rounding, pool choice, segment size, split and reuse. They
 * mirror PyTorch's CUDACachingAllocator to the byte. */
#ifndef CCA_ALLOC_POLICY_H
#define CCA_ALLOC_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "config/config.h"

#define CCA_MIN_BLOCK     ((size_t)512)      /* unit of rounding */
#define CCA_SMALL_LIMIT   ((size_t)1 << 20)  /* largest small block */
#define CCA_SMALL_SEGMENT ((size_t)2 << 20)  /* segment of small blocks */
#define CCA_MID_LIMIT     ((size_t)10 << 20) /* from here a request gets a segment of its own size */
#define CCA_LARGE_ROUND   ((size_t)2 << 20)  /* such segments are multiples of this */
#define CCA_REQUEST_LIMIT ((size_t)1 << 60)  /* requests from here on are refused unasked */

struct cca_policy {
    size_t max_split_size;         /* CCA_NO_LIMIT: none */
    size_t max_non_split_rounding; /* excess up to which an oversize block is reused */
    size_t large_segment;          /* segment for blocks between 1 and 10 MiB */
    struct cca_divisions divisions;
    bool is_dedicated;   /* every block is a segment of its own, of its own size */
    double gc_threshold; /* of the limit, above which idle segments are collected; 0: never */
};

void cca_policy_init(struct cca_policy *policy, const struct cca_config *config);

/* The same for blocks that others may map by IPC, where a handle means a whole segment. */
enum { CCA_DEDICATED_MIN = 65536 }; /* smallest request that gets one */
void cca_policy_init_dedicated(struct cca_policy *policy, const struct cca_config *config);

/* The block size for a request below CCA_REQUEST_LIMIT. */
size_t cca_policy_round(const struct cca_policy *policy, size_t bytes);

static inline bool cca_policy_is_small(size_t rounded)
{
    return rounded <= CCA_SMALL_LIMIT;
}

/* What to ask the driver for. */
size_t cca_policy_segment_bytes(const struct cca_policy *policy, size_t rounded);

static inline bool cca_policy_is_oversize(const struct cca_policy *policy, size_t bytes)
{
    return bytes >= policy->max_split_size;
}

/* Whether a free block of `block_bytes`, the best fit, may serve the request at all: an oversize
 * block is never broken for a normal request, nor wasted on a much smaller oversize one. */
bool cca_policy_dedicated_may_use(size_t block_bytes, size_t rounded);
static inline bool cca_policy_may_use(const struct cca_policy *policy, size_t block_bytes,
                                      size_t rounded)
{
    if (CCA_UNLIKELY(policy->is_dedicated)) {
        return cca_policy_dedicated_may_use(block_bytes, rounded);
    }
    if (!cca_policy_is_oversize(policy, rounded)) {
        return !cca_policy_is_oversize(policy, block_bytes);
    }
    return block_bytes - rounded < policy->max_non_split_rounding;
}

/* Whether the rest of the block is cut off and stays free. `expands`: the request may grow an
 * expandable segment, where every rest is worth keeping. */
static inline bool cca_policy_should_split(const struct cca_policy *policy, size_t block_bytes,
                                           size_t rounded, bool expands)
{
    size_t rest = block_bytes - rounded;
    if (policy->is_dedicated) {
        return false;
    }
    if (expands || cca_policy_is_small(rounded)) {
        return rest >= CCA_MIN_BLOCK;
    }
    return !cca_policy_is_oversize(policy, rounded) && rest > CCA_SMALL_LIMIT;
}

#endif
