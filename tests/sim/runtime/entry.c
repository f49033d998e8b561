/* SPDX-License-Identifier: MIT */
/* Functions of the driver, for programs that ask the runtime for them. */
#include "driver.h"
#include "rt_api.h"

cudaError_t rt_cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
                                                unsigned int cudaVersion, unsigned long long flags,
                                                enum cudaDriverEntryPointQueryResult *driverStatus)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    cudaError_t result = rt_init();

    if (result != cudaSuccess) {
        return result;
    }
    if (rt_drivers[0].cuGetProcAddress == NULL) {
        return cudaErrorCallRequiresNewerDriver;
    }
    if (flags == cudaEnableDefault) {
        flags = rt_is_per_thread() ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream;
    }
    result = (cudaError_t)rt_drivers[0].cuGetProcAddress(symbol, funcPtr, (int)cudaVersion, flags,
                                                         &status);
    if (driverStatus != NULL) {
        *driverStatus = (enum cudaDriverEntryPointQueryResult)status;
    }
    return result;
}

cudaError_t rt_cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                       enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return rt_cudaGetDriverEntryPointByVersion(symbol, funcPtr, rt_version(), flags, driverStatus);
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind f);

RT_EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                             enum cudaChannelFormatKind f)
{
    struct cudaChannelFormatDesc desc = {.x = x, .y = y, .z = z, .w = w, .f = f};

    return desc;
}
