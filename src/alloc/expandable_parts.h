/* SPDX-License-Identifier: MIT */
/* What the files of expandable segments share: expandable.c (addresses, and memory for them),
 * expandable_release.c, expandable_peers.c. Called with the heap lock held. */
#ifndef CCA_ALLOC_EXPANDABLE_PARTS_H
#define CCA_ALLOC_EXPANDABLE_PARTS_H

#include "alloc/heap.h"

static inline size_t cca_round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* A block without memory joins its like and can be found. */
void cca_expandable_put_unmapped(struct cca_heap *heap, struct cca_block *block);

/* A segment without any memory goes; drops the lock to give the addresses back. */
void cca_expandable_remove_if_empty(struct cca_heap *heap, struct cca_segment *segment);

/* The devices that may use the heap's memory besides its own. */
uint64_t cca_expandable_peers(const struct cca_heap *heap);

/* Lets the devices of the mask use mapped pages. Drops the lock. */
void cca_expandable_allow(struct cca_heap *heap, uint64_t addr, size_t page, size_t pages,
                          uint64_t peers);

#endif
