/* SPDX-License-Identifier: MIT */
/* A module is loaded with a log while the cache holds memory. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>

int main(void)
{
    static char log[8192];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
    CUdevice device;
    CUcontext context;
    CUdeviceptr addr;
    CUmodule module;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS || cuMemAlloc(&addr, 64 << 20) != CUDA_SUCCESS ||
        cuMemFree(addr) != CUDA_SUCCESS) {
        return 3;
    }
    int result = (int)cuModuleLoadDataEx(&module, "x", 2, options, values);
    printf("-> %d, %u bytes of log\n", result, (unsigned)(uintptr_t)values[1]);
    return 0;
}
