/* SPDX-License-Identifier: MIT */
#include "alloc/policy.h"

#include "base/check.h"

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* What a block of its own may be larger than the request that reuses it, if that is more than an
 * eighth. */
#define DEDICATED_WASTE ((size_t)2 << 20)

void cca_policy_init(struct cca_policy *policy, const struct cca_config *config)
{
    size_t large = round_up(config->large_segment_size, CCA_MIN_BLOCK);
    *policy = (struct cca_policy){
        .max_split_size = config->max_split_size,
        .max_non_split_rounding = config->max_non_split_rounding != 0
                                      ? config->max_non_split_rounding
                                      : large,
        .large_segment = large,
        .divisions = config->divisions,
        .gc_threshold = config->garbage_collection_threshold,
    };
}

void cca_policy_init_dedicated(struct cca_policy *policy, const struct cca_config *config)
{
    cca_policy_init(policy, config);
    policy->is_dedicated = true;
}

/* Class i holds the sizes from 2^i MiB up to 2^(i+1) MiB; the ends take all that lies beyond. */
static unsigned division_class(size_t bytes)
{
    unsigned log = 63 - (unsigned)__builtin_clzll((unsigned long long)bytes);
    unsigned first = 20, last = first + CCA_DIVISION_CLASSES - 1;
    return log < first ? 0 : log > last ? CCA_DIVISION_CLASSES - 1 : log - first;
}

static size_t round_to_division(size_t bytes, size_t divisions)
{
    if ((bytes & (bytes - 1)) == 0) {
        return bytes;
    }
    size_t power = (size_t)1 << (63 - __builtin_clzll((unsigned long long)bytes));
    size_t step = power / divisions;
    return step == 0 ? power * 2 : round_up(bytes, step);
}

size_t cca_policy_round(const struct cca_policy *policy, size_t bytes)
{
    CCA_ASSERT(bytes < CCA_REQUEST_LIMIT);
    if (bytes < CCA_MIN_BLOCK) {
        return CCA_MIN_BLOCK;
    }
    size_t divisions = policy->divisions.of[division_class(bytes)];
    if (divisions > 1 && bytes > CCA_MIN_BLOCK * divisions) {
        return round_to_division(bytes, divisions);
    }
    return round_up(bytes, CCA_MIN_BLOCK);
}

size_t cca_policy_segment_bytes(const struct cca_policy *policy, size_t rounded)
{
    if (policy->is_dedicated) {
        return rounded;
    }
    if (cca_policy_is_small(rounded)) {
        return CCA_SMALL_SEGMENT;
    }
    if (rounded < CCA_MID_LIMIT) {
        return policy->large_segment;
    }
    return round_up(rounded, CCA_LARGE_ROUND);
}

bool cca_policy_dedicated_may_use(size_t block_bytes, size_t rounded)
{
    size_t waste = block_bytes - rounded, eighth = block_bytes / 8;
    return waste <= (eighth > DEDICATED_WASTE ? eighth : DEDICATED_WASTE);
}
