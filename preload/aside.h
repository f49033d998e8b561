/* SPDX-License-Identifier: MIT */
/* Where the library stands aside because caching would be in the way: a checker of CUDA's in the
 * process, for which memory out of the cache is always valid, and devices that share the host's
 * memory. No CUDA header is needed here. */
#ifndef CCA_PRELOAD_ASIDE_H
#define CCA_PRELOAD_ASIDE_H

#include <stdbool.h>

/* Before a context comes up. The first one of the process decides: what is found makes it one that
 * only counts, with one line on stderr. False: this device shares the host's memory and others are
 * cached already, so its calls are to be forwarded. */
bool cca_aside_allows(bool is_integrated);

#endif
