/* SPDX-License-Identifier: MIT */
#include "device/cuda_error.h"

#include <cuda.h>

_Static_assert((int)CCA_CUDA_INVALID_VALUE == (int)CUDA_ERROR_INVALID_VALUE &&
                   (int)CCA_CUDA_OUT_OF_MEMORY == (int)CUDA_ERROR_OUT_OF_MEMORY &&
                   (int)CCA_CUDA_NOT_INITIALIZED == (int)CUDA_ERROR_NOT_INITIALIZED,
               "the numbers are CUDA's");

/* Numbers, not names, where a toolkit that is still supported lacks the name. */
enum {
    RAW_DEVICE_UNAVAILABLE = 46,
    RAW_CONTAINED = 226,
    RAW_TENSOR_MEMORY_LEAK = 721,
    RAW_MPS_CONNECTION_FAILED = 805,
    RAW_MPS_CLIENT_TERMINATED = 810
};

/* Codes after which cuda.h says that the process must be relaunched, those which say that the
 * driver, the device or the context does not exist any more, and CUDA_ERROR_UNKNOWN. Some of them
 * may also be the answer to one call alone: see cca_cuda_status_in. An invalid handle or an invalid
 * current context is a mistake of that one call, perhaps the program's: later calls are not told
 * so. */
static bool is_fatal(int raw)
{
    switch (raw) {
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case RAW_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case RAW_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case RAW_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_UNKNOWN: return true;
    default: return raw >= RAW_MPS_CONNECTION_FAILED && raw <= RAW_MPS_CLIENT_TERMINATED;
    }
}

struct cca_status cca_cuda_status(int raw)
{
    if (raw == CUDA_SUCCESS) {
        return cca_status_ok();
    }
    if (raw == CUDA_ERROR_OUT_OF_MEMORY) {
        return (struct cca_status){CCA_NO_MEMORY, raw};
    }
    if (raw == CUDA_ERROR_NOT_READY) {
        return (struct cca_status){CCA_NOT_READY, raw};
    }
    return (struct cca_status){is_fatal(raw) ? CCA_FATAL : CCA_UNSUPPORTED, raw};
}
