/* SPDX-License-Identifier: MIT */
/* What both doors do with the allocator on behalf of a row. Inside a hook's enter and leave unless
 * said otherwise. No CUDA header is needed here. */
#ifndef CCA_PRELOAD_SERVE_H
#define CCA_PRELOAD_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/context.h"
#include "preload/rows.h"
#include "process/process.h"

/* Asks the allocator. OK: *addr_out is set. No memory: an out-of-memory snapshot is on its way
 * where one is wanted. Anything else: forward, and cca_serve_note_passed. */
enum cca_status_kind cca_serve_alloc(enum cca_row row, struct cca_heap *heap,
                                     const struct cca_request *request, uint64_t *addr_out);

/* The same on a stream. Served while another stream captures, memory of the driver is asked for in
 * relaxed mode: natively the call is legal then, and must not break that capture. */
enum cca_status_kind cca_serve_alloc_async(enum cca_row row, const struct cca_stream_place *place,
                                           const struct cca_request *request, uint64_t *addr_out);

/* Before a call is forwarded that the driver must find memory for: what is idle here may be what it
 * lacks. `heap` may be NULL. */
void cca_serve_make_room(struct cca_heap *heap, const struct cca_request *request);

/* After it: memory that the driver itself gave the program at `addr`, 0 when it did not. `heap` may
 * be NULL. `began_ns` by cca_clock_ns. */
void cca_serve_note_passed(struct cca_heap *heap, const struct cca_request *request, uint64_t addr,
                           uint64_t began_ns);

/* The real free of memory that was only accounted for, which the estimate of CCA_MODE=count hears
 * of: begins before it, and ended after it with its result, which is returned. */
struct cca_passing {
    int token; /* -1: nothing is known of the address */
    uint64_t began_ns;
};
struct cca_passing cca_serve_pass_begins(uint64_t addr, const struct cca_request *request);
int cca_serve_pass_ended(const struct cca_passing *passing, int result);

/* A free: what the allocator decided. `request` is described already. */
enum cca_free_result cca_serve_free(enum cca_row row, uint64_t addr,
                                    const struct cca_request *request);

/* A free on a stream. On one that captures, memory of ours stays live where the driver would refuse
 * it, and all else is the graph's. */
enum cca_free_result cca_serve_free_async(enum cca_row row, const struct cca_stream_place *place,
                                          uint64_t addr, const struct cca_request *request);

/* A free that got no enter: it came from inside a call of ours on the same thread, as from a signal
 * handler, while the block's lock may be held. Memory of ours stays live then and the free counts
 * as done: given to the driver it would take a whole segment along. */
bool cca_serve_must_keep(uint64_t addr);

#endif
