/* SPDX-License-Identifier: MIT */
/* Sorting in place with neither heap nor recursion: libc's qsort may call malloc. */
#ifndef CCA_SNAPSHOT_SORT_H
#define CCA_SNAPSHOT_SORT_H

#include <stddef.h>

/* Negative, zero or positive, as for qsort. */
typedef int (*cca_compare_fn)(const void *a, const void *b);

/* Ascending; equal items may change places. One pass when the items are in order already. */
void cca_sort(void *items, size_t count, size_t item_bytes, cca_compare_fn compare);

#endif
