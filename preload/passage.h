/* SPDX-License-Identifier: MIT */
/* What the runtime door tells the driver door while a call of the program is on its way through the
 * caller's own runtime, on the same thread. A passage is for one function of the driver and one
 * argument: whatever else the runtime asks of the driver meanwhile is not concerned. */
#ifndef CCA_PRELOAD_PASSAGE_H
#define CCA_PRELOAD_PASSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/allocator.h"
#include "base/compiler.h"
#include "preload/rows.h"

enum cca_verdict {
    CCA_VERDICT_NONE,   /* not on behalf of the runtime door */
    CCA_VERDICT_DECIDE, /* serve it if you can, in the name of `row` and `request` */
    CCA_VERDICT_PASS,   /* call the driver; the accounts are kept by the runtime door */
    CCA_VERDICT_FAIL    /* answer with the error: out of memory, or invalid value for a free */
};

struct cca_passage {
    enum cca_verdict verdict;
    enum cca_row row; /* of the runtime door */
    bool is_free;
    bool is_taken;      /* it was met by the driver door */
    uint64_t argument;  /* bytes, or the address to free */
    const void *caller; /* where the program called from */
    int runtime_version;
    struct cca_request request;
};

extern CCA_THREAD_LOCAL struct cca_passage cca_passage_now;

/* Opens a passage; returns what end takes. */
static inline struct cca_passage cca_passage_begin(const struct cca_passage *passage)
{
    struct cca_passage outer = cca_passage_now;
    cca_passage_now = *passage;
    return outer;
}

/* Whether the driver door was reached. */
static inline bool cca_passage_end(const struct cca_passage *outer)
{
    bool is_taken = cca_passage_now.is_taken;
    cca_passage_now = *outer;
    return is_taken;
}

/* At the driver door: the passage this call belongs to, or one with verdict NONE. */
static inline const struct cca_passage *cca_passage_take(bool is_free, uint64_t argument)
{
    static const struct cca_passage none = {.verdict = CCA_VERDICT_NONE};
    struct cca_passage *now = &cca_passage_now;
    if (CCA_LIKELY(now->verdict == CCA_VERDICT_NONE) || now->is_free != is_free ||
        now->argument != argument) {
        return &none;
    }
    now->is_taken = true;
    return now;
}

#endif
