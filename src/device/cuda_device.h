/* SPDX-License-Identifier: MIT */
/* The device backend over a driver table: one CUDA context behind struct cca_device_ops.
 *
 * Every call leaves the thread as it was: a context is pushed only where the driver needs one that
 * is not current, and popped on every path; the thread's stream capture mode is exchanged to
 * relaxed around our own calls and put back (mem_alloc excepted: growth is made in the caller's
 * mode, so that it is refused where the program's own call would be). Thread-safe, no lock, no
 * malloc. */
#ifndef CCA_DEVICE_CUDA_DEVICE_H
#define CCA_DEVICE_CUDA_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "device/cuda_streams.h"
#include "device/cuda_table.h"
#include "device/device.h"

enum { CCA_CUDA_CONTEXTS_MAX = 256 };

struct cca_cuda_context {
    _Atomic(CUcontext) ctx; /* NULL: not in use; set last */
    atomic_bool is_closed;  /* to be used for another context */
    const struct cca_cuda_table *table;
    struct cca_cuda_streams *streams; /* of all contexts */
    int ordinal;
};

/* The contexts that were ever opened. Entries stay valid until they are closed, since a thread may
 * still be in a call on a context that another thread resets. Zero-initialised. */
struct cca_cuda_contexts {
    struct cca_cuda_streams streams;
    _Atomic int claimed;
    struct cca_cuda_context items[CCA_CUDA_CONTEXTS_MAX];
};

/* The backend of a context, the same entry for the same handle on the same device. `table` must
 * outlive it. -ENOSPC when all entries are in use. */
int cca_cuda_device_open(struct cca_cuda_contexts *contexts, const struct cca_cuda_table *table,
                         CUcontext ctx, int ordinal, struct cca_device *device_out) CCA_MUST_CHECK;

/* The context is gone and no thread is inside a call of it: its entry may be another one's. */
void cca_cuda_device_close(struct cca_cuda_contexts *contexts, CUcontext ctx);

struct cca_cuda_identity {
    bool is_primary;        /* the primary context of its device, and that is active */
    bool is_primary_active; /* of that device, whichever context was asked about */
    int ordinal;
};

/* Whether a device shares the host's memory; false when the driver does not say. */
bool cca_cuda_is_integrated(const struct cca_cuda_table *table, int ordinal);

/* Whether a device has memory pools, which allocations in stream order need natively; true when the
 * driver does not say. */
bool cca_cuda_has_pools(const struct cca_cuda_table *table, int ordinal);

/* Which context a handle is. Takes and gives back one reference to the device's primary context,
 * only when that is active: nothing is created. Status: of the first driver call that failed. */
struct cca_status cca_cuda_identify(const struct cca_cuda_table *table, CUcontext ctx,
                                    struct cca_cuda_identity *identity_out);

#endif
