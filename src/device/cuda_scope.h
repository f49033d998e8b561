/* SPDX-License-Identifier: MIT */
/* What every call into the driver leaves as it was: the thread's current context and its stream
 * capture mode. */
#ifndef CCA_DEVICE_CUDA_SCOPE_H
#define CCA_DEVICE_CUDA_SCOPE_H

#include <stdbool.h>

#include "device/cuda_device.h"

/* What a call must put back. */
struct cca_cuda_scope {
    const struct cca_cuda_table *table;
    CUstreamCaptureMode mode; /* the thread's own, when `is_relaxed` */
    bool is_relaxed;
    bool is_pushed;
};

/* How much of a context a driver function needs. */
enum cca_cuda_need {
    CCA_NEED_THIS, /* acts on the current context, so it must be ours */
    CCA_NEED_ANY   /* names its object, but refuses a thread without any context */
};

enum cca_cuda_capture_mode { CCA_MODE_RELAXED, CCA_MODE_OF_CALLER };

/* On failure nothing is left changed and leave must not be called. */
CUresult cca_cuda_scope_enter(struct cca_cuda_scope *scope, const struct cca_cuda_table *table,
                              CUcontext ctx, enum cca_cuda_need need,
                              enum cca_cuda_capture_mode mode);
CUresult cca_cuda_scope_enter_context(struct cca_cuda_scope *scope,
                                      const struct cca_cuda_context *self, enum cca_cuda_need need,
                                      enum cca_cuda_capture_mode mode);
void cca_cuda_scope_leave(struct cca_cuda_scope *scope);

/* What a call for this context means. A code that says that a context is lost may be another
 * context's that was current, or of that one call: CCA_FATAL only when the context's own next call
 * fails so, too. */
struct cca_status cca_cuda_status_in(const struct cca_cuda_context *self, CUresult result);

#endif
