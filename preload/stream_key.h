/* SPDX-License-Identifier: MIT */
/* From what the driver says of a stream to the allocator's key of it. Two streams never share one,
 * nor does a stream that came after another was gone. */
#ifndef CCA_PRELOAD_STREAM_KEY_H
#define CCA_PRELOAD_STREAM_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/allocator.h"

/* `slot`, of the context's heap, is 0 but for default streams: those of different contexts might
 * share an id. `thread` is 0 but for the default stream of a thread, whose id might be that of
 * other threads': then it is cca_stream_thread(). False when the numbers are too large to be told
 * apart. */
bool cca_stream_key(uint64_t id, int slot, uint32_t thread, cca_key *key_out);

/* A number of the calling thread, from 1 on, that no other thread ever gets. */
uint32_t cca_stream_thread(void);

#endif
