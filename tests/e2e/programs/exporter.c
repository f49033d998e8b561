/* SPDX-License-Identifier: MIT */
/* A library that would export memory, if anybody asked it to. */
#include <cuda_runtime_api.h>

cudaError_t export_for_others(cudaIpcMemHandle_t *handle, void *memory);

__attribute__((visibility("default"))) cudaError_t export_for_others(cudaIpcMemHandle_t *handle,
                                                                     void *memory)
{
    return cudaIpcGetMemHandle(handle, memory);
}
