/* SPDX-License-Identifier: MIT */
/* Memory that others see: peer devices, memory pools, other processes. No CUDA header is needed
 * here. */
#ifndef CCA_PRELOAD_SHARE_H
#define CCA_PRELOAD_SHARE_H

#include <stdbool.h>

/* When the allocator exists: what happened before takes effect. */
void cca_share_replay(void);

/* Whether asynchronous allocations go to CUDA because of how the program uses its pools. */
bool cca_share_async_is_stopped(void);

#endif
