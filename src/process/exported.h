/* SPDX-License-Identifier: MIT */
/* Blocks that were given to other processes, so that snapshots can mark them: the newest ones. A
 * block is told by its address and the time of its allocation, so nothing is to be done when it is
 * freed. Lock-free. */
#ifndef CCA_PROCESS_EXPORTED_H
#define CCA_PROCESS_EXPORTED_H

#include <stdatomic.h>
#include <stdint.h>

#include "snapshot/model.h"

enum { CCA_EXPORTED_MAX = 1024 };

struct cca_exported {
    struct {
        _Atomic uint64_t addr, alloc_time_ns;
    } blocks[CCA_EXPORTED_MAX];
    atomic_uint count; /* ever noted */
};

/* A live block: its address and what cca_allocator_look_up says of its allocation. */
void cca_exported_add(struct cca_exported *exported, uint64_t addr, uint64_t alloc_time_ns);

/* Marks those of the model's blocks that are among them. */
void cca_exported_mark(const struct cca_exported *exported, struct cca_model *model);

#endif
