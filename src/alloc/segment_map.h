/* SPDX-License-Identifier: MIT */
/* Address -> segment for every address inside the cache's own segments, of all heaps. Thread-safe
 * (its own lock, rank CCA_RANK_SEGMENTS); asked only for pointers that are not live blocks. */
#ifndef CCA_ALLOC_SEGMENT_MAP_H
#define CCA_ALLOC_SEGMENT_MAP_H

#include "alloc/block.h"
#include "base/lock.h"

struct cca_segment_map {
    struct cca_lock lock;
    struct cca_tree tree;
};

void cca_segment_map_init(struct cca_segment_map *map);
void cca_segment_map_insert(struct cca_segment_map *map, struct cca_segment *segment);
void cca_segment_map_remove(struct cca_segment_map *map, struct cca_segment *segment);

/* Start and size of the segment around the address; false when there is none. Lock held. */
bool cca_segment_map_find_locked(const struct cca_segment_map *map, uint64_t addr,
                                 uint64_t *start_out, size_t *bytes_out);

/* The same, and takes the lock. */
bool cca_segment_map_find(struct cca_segment_map *map, uint64_t addr, uint64_t *start_out,
                          size_t *bytes_out);

#endif
