/* SPDX-License-Identifier: MIT */
#include "driver.h"
#include "rt_api.h"

#include <string.h>

cudaError_t rt_cudaRuntimeGetVersion(int *runtimeVersion)
{
    if (runtimeVersion == NULL) {
        return cudaErrorInvalidValue;
    }
    *runtimeVersion = rt_version();
    return cudaSuccess;
}

/* Without a driver the version is 0, and that is no error. */
cudaError_t rt_cudaDriverGetVersion(int *driverVersion)
{
    if (driverVersion == NULL) {
        return cudaErrorInvalidValue;
    }
    *driverVersion = 0;
    rt_init();
    if (rt_drivers[0].cuDriverGetVersion != NULL) {
        rt_drivers[0].cuDriverGetVersion(driverVersion);
    }
    return cudaSuccess;
}

cudaError_t rt_cudaGetDeviceCount(int *count)
{
    cudaError_t result = rt_init();

    if (count == NULL) {
        return cudaErrorInvalidValue;
    }
    *count = result == cudaSuccess ? rt_device_count() : 0;
    return result;
}

cudaError_t rt_cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
    (void)deviceFlags;
    (void)flags;
    cudaError_t result = rt_init();

    return result == cudaSuccess && (device < 0 || device >= rt_device_count())
               ? cudaErrorInvalidDevice
               : result;
}

cudaError_t rt_cudaSetValidDevices(int *device_arr, int len)
{
    (void)device_arr;
    (void)len;
    return rt_init();
}

cudaError_t rt_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    cudaError_t result = rt_init();

    if (result != cudaSuccess) {
        return result;
    }
    return (cudaError_t)rt_driver()->cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device);
}

static int attribute(int device, CUdevice_attribute which)
{
    int value = 0;

    rt_driver()->cuDeviceGetAttribute(&value, which, device);
    return value;
}

static void describe_limits(struct cudaDeviceProp *prop, int device)
{
    prop->sharedMemPerBlock = (size_t)attribute(device,
                                                CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    prop->regsPerBlock = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    prop->warpSize = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    prop->memPitch = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
    prop->maxThreadsPerBlock = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (int i = 0; i < 3; i++) {
        prop->maxThreadsDim[i] = attribute(
            device, (CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
        prop->maxGridSize[i] = attribute(
            device, (CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
    }
    prop->totalConstMem = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    prop->maxThreadsPerMultiProcessor = attribute(
        device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    prop->sharedMemPerMultiprocessor = (size_t)attribute(
        device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    prop->regsPerMultiprocessor = attribute(device,
                                            CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    prop->sharedMemPerBlockOptin = (size_t)attribute(
        device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    prop->maxBlocksPerMultiProcessor = attribute(device,
                                                 CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    prop->accessPolicyMaxWindowSize = attribute(device,
                                                CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
    prop->reservedSharedMemPerBlock = (size_t)attribute(
        device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    prop->persistingL2CacheMaxSize = attribute(device,
                                               CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
}

static void describe_abilities(struct cudaDeviceProp *prop, int device)
{
    prop->major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    prop->minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    prop->multiProcessorCount = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    prop->integrated = attribute(device, CU_DEVICE_ATTRIBUTE_INTEGRATED);
    prop->canMapHostMemory = attribute(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
    prop->concurrentKernels = attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
    prop->ECCEnabled = attribute(device, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
    prop->asyncEngineCount = attribute(device, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    prop->unifiedAddressing = attribute(device, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
    prop->memoryBusWidth = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    prop->l2CacheSize = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    prop->streamPrioritiesSupported = attribute(device,
                                                CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED);
    prop->globalL1CacheSupported = attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED);
    prop->localL1CacheSupported = attribute(device, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED);
    prop->managedMemory = attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    prop->pageableMemoryAccess = attribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
    prop->concurrentManagedAccess = attribute(device,
                                              CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
    prop->computePreemptionSupported = attribute(device,
                                                 CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED);
    prop->canUseHostPointerForRegisteredMem = attribute(
        device, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
    prop->cooperativeLaunch = attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
    prop->hostRegisterSupported = attribute(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
    prop->memoryPoolsSupported = attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    prop->pciDomainID = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
    prop->pciBusID = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    prop->pciDeviceID = attribute(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
    prop->textureAlignment = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    prop->texturePitchAlignment = (size_t)attribute(device,
                                                    CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
    prop->surfaceAlignment = (size_t)attribute(device, CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT);
}

cudaError_t rt_cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    cudaError_t result = rt_init();

    if (result != cudaSuccess) {
        return result;
    }
    if (prop == NULL) {
        return cudaErrorInvalidValue;
    }
    if (device < 0 || device >= rt_device_count()) {
        return cudaErrorInvalidDevice;
    }
    memset(prop, 0, sizeof(*prop));
    rt_driver()->cuDeviceGetName(prop->name, sizeof(prop->name), device);
    rt_driver()->cuDeviceTotalMem(&prop->totalGlobalMem, device);
    rt_driver()->cuDeviceGetUuid((CUuuid *)&prop->uuid, device);
    describe_limits(prop, device);
    describe_abilities(prop, device);
    return cudaSuccess;
}

cudaError_t rt_cudaDeviceSynchronize(void)
{
    RT_CALL(cuCtxSynchronize);
}

cudaError_t rt_cudaDeviceReset(void)
{
    int device;
    cudaError_t result = rt_cudaGetDevice(&device);

    return result == cudaSuccess ? rt_reset(device) : result;
}

cudaError_t rt_cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    RT_CALL(cuCtxGetStreamPriorityRange, leastPriority, greatestPriority);
}

cudaError_t rt_cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    RT_CALL(cuCtxSetLimit, (CUlimit)limit, value);
}

cudaError_t rt_cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
    RT_CALL(cuCtxGetLimit, pValue, (CUlimit)limit);
}

cudaError_t rt_cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
    RT_CALL(cuCtxGetCacheConfig, (CUfunc_cache *)pCacheConfig);
}

cudaError_t rt_cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig)
{
    RT_CALL(cuCtxSetCacheConfig, (CUfunc_cache)cacheConfig);
}

cudaError_t rt_cudaCtxResetPersistingL2Cache(void)
{
    RT_CALL(cuCtxResetPersistingL2Cache);
}

cudaError_t rt_cudaSetDeviceFlags(unsigned int flags)
{
    int device;
    cudaError_t result = rt_cudaGetDevice(&device);

    if (result != cudaSuccess) {
        return result;
    }
    return (cudaError_t)rt_driver()->cuDevicePrimaryCtxSetFlags(device, flags);
}

cudaError_t rt_cudaGetDeviceFlags(unsigned int *flags)
{
    int device;
    int is_active;
    cudaError_t result = rt_cudaGetDevice(&device);

    if (result != cudaSuccess) {
        return result;
    }
    return (cudaError_t)rt_driver()->cuDevicePrimaryCtxGetState(device, flags, &is_active);
}

cudaError_t rt_cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    cudaError_t result = rt_init();

    return result != cudaSuccess
               ? result
               : (cudaError_t)rt_driver()->cuDeviceGetPCIBusId(pciBusId, len, device);
}

cudaError_t rt_cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
    cudaError_t result = rt_init();

    return result != cudaSuccess
               ? result
               : (cudaError_t)rt_driver()->cuDeviceGetByPCIBusId(device, pciBusId);
}

cudaError_t rt_cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    cudaError_t result = rt_init();

    return result != cudaSuccess
               ? result
               : (cudaError_t)rt_driver()->cuDeviceCanAccessPeer(canAccessPeer, device, peerDevice);
}

cudaError_t rt_cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int srcDevice,
                                         int dstDevice)
{
    cudaError_t result = rt_init();

    return result != cudaSuccess ? result
                                 : (cudaError_t)rt_driver()->cuDeviceGetP2PAttribute(
                                       value, (CUdevice_P2PAttribute)attr, srcDevice, dstDevice);
}

static cudaError_t peer_context(int device, CUcontext *context_out)
{
    cudaError_t result = rt_enter();

    if (result == cudaSuccess && (device < 0 || device >= rt_device_count())) {
        result = cudaErrorInvalidDevice;
    }
    return result == cudaSuccess
               ? (cudaError_t)rt_driver()->cuDevicePrimaryCtxRetain(context_out, device)
               : result;
}

cudaError_t rt_cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
    CUcontext peer;
    cudaError_t result = peer_context(peerDevice, &peer);

    return result == cudaSuccess ? (cudaError_t)rt_driver()->cuCtxEnablePeerAccess(peer, flags)
                                 : result;
}

cudaError_t rt_cudaDeviceDisablePeerAccess(int peerDevice)
{
    CUcontext peer;
    cudaError_t result = peer_context(peerDevice, &peer);

    return result == cudaSuccess ? (cudaError_t)rt_driver()->cuCtxDisablePeerAccess(peer) : result;
}

cudaError_t rt_cudaProfilerStart(void)
{
    return rt_enter();
}

cudaError_t rt_cudaProfilerStop(void)
{
    return rt_enter();
}

cudaError_t rt_cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig)
{
    RT_CALL(cuCtxGetSharedMemConfig, (CUsharedconfig *)pConfig);
}

cudaError_t rt_cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    RT_CALL(cuCtxSetSharedMemConfig, (CUsharedconfig)config);
}

/* All devices are alike: the first that is good enough, else the first. */
cudaError_t rt_cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
    cudaError_t result = rt_init();

    if (result != cudaSuccess || device == NULL || prop == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    *device = 0;
    return rt_device_count() > 0 ? cudaSuccess : cudaErrorNoDevice;
}
