/* SPDX-License-Identifier: MIT */
/* Raw CUDA codes and our status. A status keeps the code it was made from, so nothing is lost. */
#ifndef CCA_DEVICE_CUDA_ERROR_H
#define CCA_DEVICE_CUDA_ERROR_H

#include "base/compiler.h"
#include "device/device.h"

/* The few results that hooks return or compare. The driver's CUresult and the runtime's cudaError_t
 * have the same numbers here, in every release. */
enum cca_cuda_result {
    CCA_CUDA_SUCCESS = 0,
    CCA_CUDA_INVALID_VALUE = 1,
    CCA_CUDA_OUT_OF_MEMORY = 2,
    CCA_CUDA_NOT_INITIALIZED = 3 /* the runtime calls it an initialization error */
};

/* What a CUresult means for the context.
 *   CCA_OK           success
 *   CCA_NO_MEMORY    out of memory
 *   CCA_NOT_READY    an event's work is not over
 *   CCA_FATAL        sticky, or the context is gone: nothing more may be asked (cca_cuda_status_in
 *                    makes sure of it)
 *   CCA_UNSUPPORTED  this call failed (missing function, bad argument or handle, forbidden while a
 *                    stream captures); the context is as good as before */
struct cca_status cca_cuda_status(int raw);

#endif
