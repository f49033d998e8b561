/* SPDX-License-Identifier: MIT */
/* The driver as the runtime finds it: one dlopen, one dlsym, then every function through the
 * resolver, with the version that introduced it and a flag for the meaning of stream 0. */
#ifndef RT_DRIVER_H
#define RT_DRIVER_H

#include "call.h"

#include <cuda.h>
#include <cudaTypedefs.h>

/* 12: the names and shapes of that release; see older.c. 11: as far as both have them in common. */
#ifndef RT_RELEASE
#define RT_RELEASE 13
#endif

/* Base name, version. A function the driver lacks is NULL. */
#define RT_DRIVER_FUNCTIONS(F)                                    \
    F(cuInit, 2000)                                               \
    F(cuDriverGetVersion, 2020)                                   \
    F(cuDeviceGetCount, 2000)                                     \
    F(cuDeviceGetName, 2000)                                      \
    F(cuDeviceTotalMem, 3020)                                     \
    F(cuDeviceGetAttribute, 2000)                                 \
    F(cuDeviceGetUuid, 9020)                                      \
    F(cuDeviceGetPCIBusId, 4010)                                  \
    F(cuDeviceGetByPCIBusId, 4010)                                \
    F(cuDeviceCanAccessPeer, 4000)                                \
    F(cuDeviceGetP2PAttribute, 8000)                              \
    F(cuDevicePrimaryCtxRetain, 7000)                             \
    F(cuDevicePrimaryCtxReset, 7000)                              \
    F(cuDevicePrimaryCtxGetState, 7000)                           \
    F(cuDevicePrimaryCtxSetFlags, 11000)                          \
    F(cuCtxSetCurrent, 4000)                                      \
    F(cuCtxGetCurrent, 4000)                                      \
    F(cuCtxGetDevice, 2000)                                       \
    F(cuCtxSynchronize, 2000)                                     \
    F(cuCtxGetStreamPriorityRange, 5050)                          \
    F(cuCtxSetLimit, 3010)                                        \
    F(cuCtxGetLimit, 3010)                                        \
    F(cuCtxGetCacheConfig, 3020)                                  \
    F(cuCtxSetCacheConfig, 3020)                                  \
    F(cuCtxResetPersistingL2Cache, 11000)                         \
    F(cuCtxEnablePeerAccess, 4000)                                \
    F(cuCtxDisablePeerAccess, 4000)                               \
    F(cuMemGetInfo, 3020)                                         \
    F(cuMemAlloc, 3020)                                           \
    F(cuMemAllocPitch, 3020)                                      \
    F(cuMemFree, 3020)                                            \
    F(cuMemAllocManaged, 6000)                                    \
    F(cuMemHostAlloc, 2020)                                       \
    F(cuMemFreeHost, 2000)                                        \
    F(cuMemHostRegister, 6050)                                    \
    F(cuMemHostUnregister, 4000)                                  \
    F(cuMemHostGetDevicePointer, 3020)                            \
    F(cuMemHostGetFlags, 2030)                                    \
    F(cuPointerGetAttributes, 7000)                               \
    F(cuIpcGetMemHandle, 4010)                                    \
    F(cuIpcOpenMemHandle, 11000)                                  \
    F(cuArray3DCreate, 3020)                                      \
    F(cuArrayDestroy, 2000)                                       \
    F(cuArray3DGetDescriptor, 3020)                               \
    F(cuTexObjectCreate, 5000)                                    \
    F(cuTexObjectDestroy, 5000)                                   \
    F(cuSurfObjectCreate, 5000)                                   \
    F(cuSurfObjectDestroy, 5000)                                  \
    F(cuIpcGetEventHandle, 4010)                                  \
    F(cuIpcOpenEventHandle, 4010)                                 \
    F(cuMemPoolExportToShareableHandle, 11020)                    \
    F(cuMemPoolImportFromShareableHandle, 11020)                  \
    F(cuMemPoolExportPointer, 11020)                              \
    F(cuMemPoolImportPointer, 11020)                              \
    F(cuIpcCloseMemHandle, 4010)                                  \
    F(cuMemAdvise, 12020)                                         \
    F(cuDeviceGetDefaultMemPool, 11020)                           \
    F(cuDeviceGetMemPool, 11020)                                  \
    F(cuDeviceSetMemPool, 11020)                                  \
    F(cuMemPoolCreate, 11020)                                     \
    F(cuMemPoolDestroy, 11020)                                    \
    F(cuMemPoolSetAttribute, 11020)                               \
    F(cuMemPoolGetAttribute, 11020)                               \
    F(cuMemPoolSetAccess, 11020)                                  \
    F(cuMemPoolGetAccess, 11020)                                  \
    F(cuMemPoolTrimTo, 11020)                                     \
    F(cuStreamCreateWithPriority, 5050)                           \
    F(cuStreamDestroy, 4000)                                      \
    F(cuEventCreate, 2000)                                        \
    F(cuEventDestroy, 4000)                                       \
    F(cuEventQuery, 2000)                                         \
    F(cuEventSynchronize, 2000)                                   \
    F(cuEventElapsedTime, 2000)                                   \
    F(cuGraphCreate, 10000)                                       \
    F(cuGraphClone, 10000)                                        \
    F(cuGraphNodeFindInClone, 10000)                              \
    F(cuGraphGetNodes, 10000)                                     \
    F(cuGraphGetRootNodes, 10000)                                 \
    F(cuGraphGetEdges, 12030)                                     \
    F(cuGraphNodeGetType, 10000)                                  \
    F(cuGraphNodeGetDependencies, 12030)                          \
    F(cuGraphAddDependencies, 12030)                              \
    F(cuGraphDestroyNode, 10000)                                  \
    F(cuGraphAddKernelNode, 12000)                                \
    F(cuGraphKernelNodeSetParams, 12000)                          \
    F(cuGraphExecKernelNodeSetParams, 12000)                      \
    F(cuGraphAddMemcpyNode, 10000)                                \
    F(cuGraphExecMemcpyNodeSetParams, 10020)                      \
    F(cuGraphAddMemsetNode, 10000)                                \
    F(cuGraphExecMemsetNodeSetParams, 10020)                      \
    F(cuGraphAddHostNode, 10000)                                  \
    F(cuGraphExecHostNodeSetParams, 10020)                        \
    F(cuGraphAddEmptyNode, 10000)                                 \
    F(cuGraphAddChildGraphNode, 10000)                            \
    F(cuGraphAddEventRecordNode, 11010)                           \
    F(cuGraphAddEventWaitNode, 11010)                             \
    F(cuGraphAddMemAllocNode, 11040)                              \
    F(cuGraphAddMemFreeNode, 11040)                               \
    F(cuDeviceGetGraphMemAttribute, 11040)                        \
    F(cuDeviceSetGraphMemAttribute, 11040)                        \
    F(cuDeviceGraphMemTrim, 11040)                                \
    F(cuGraphInstantiateWithFlags, 11040)                         \
    F(cuGraphAddNode, 12030)                                      \
    F(cuGraphNodeSetParams, 12020)                                \
    F(cuGraphExecNodeSetParams, 12020)                            \
    F(cuGraphConditionalHandleCreate, 12030)                      \
    F(cuGraphChildGraphNodeGetGraph, 10000)                       \
    F(cuGraphExecChildGraphNodeSetParams, 11010)                  \
    F(cuGraphNodeGetDependentNodes, 12030)                        \
    F(cuGraphRemoveDependencies, 12030)                           \
    F(cuGraphNodeGetEnabled, 11060)                               \
    F(cuGraphExecGetFlags, 12000)                                 \
    F(cuGraphExecUpdate, 12000)                                   \
    F(cuGraphNodeSetEnabled, 11060)                               \
    F(cuGraphExecDestroy, 10000)                                  \
    F(cuGraphDestroy, 10000)                                      \
    F(cuGraphKernelNodeGetParams, 12000)                          \
    F(cuGraphKernelNodeCopyAttributes, 11000)                     \
    F(cuGraphKernelNodeGetAttribute, 11000)                       \
    F(cuGraphKernelNodeSetAttribute, 11000)                       \
    F(cuGraphMemcpyNodeGetParams, 10000)                          \
    F(cuGraphMemcpyNodeSetParams, 10000)                          \
    F(cuGraphMemsetNodeGetParams, 10000)                          \
    F(cuGraphMemsetNodeSetParams, 10000)                          \
    F(cuGraphHostNodeGetParams, 10000)                            \
    F(cuGraphHostNodeSetParams, 10000)                            \
    F(cuGraphMemAllocNodeGetParams, 11040)                        \
    F(cuGraphMemFreeNodeGetParams, 11040)                         \
    F(cuGraphEventRecordNodeGetEvent, 11010)                      \
    F(cuGraphEventRecordNodeSetEvent, 11010)                      \
    F(cuGraphEventWaitNodeGetEvent, 11010)                        \
    F(cuGraphEventWaitNodeSetEvent, 11010)                        \
    F(cuGraphExecEventRecordNodeSetEvent, 11010)                  \
    F(cuGraphExecEventWaitNodeSetEvent, 11010)                    \
    F(cuGraphDebugDotPrint, 11030)                                \
    F(cuMipmappedArrayCreate, 5000)                               \
    F(cuMipmappedArrayDestroy, 5000)                              \
    F(cuMipmappedArrayGetLevel, 5000)                             \
    F(cuArrayGetMemoryRequirements, 11060)                        \
    F(cuMipmappedArrayGetMemoryRequirements, 11060)               \
    F(cuMemRangeGetAttribute, 8000)                               \
    F(cuMemRangeGetAttributes, 8000)                              \
    F(cuMemGetDefaultMemPool, 13000)                              \
    F(cuMemGetMemPool, 13000)                                     \
    F(cuMemSetMemPool, 13000)                                     \
    F(cuLibraryLoadFromFile, 12000)                               \
    F(cuLibraryGetKernelCount, 12040)                             \
    F(cuLibraryEnumerateKernels, 12040)                           \
    F(cuKernelSetAttribute, 12000)                                \
    F(cuKernelGetParamInfo, 12040)                                \
    F(cuCtxGetSharedMemConfig, 4020)                              \
    F(cuCtxSetSharedMemConfig, 4020)                              \
    F(cuUserObjectCreate, 11030)                                  \
    F(cuUserObjectRetain, 11030)                                  \
    F(cuUserObjectRelease, 11030)                                 \
    F(cuGraphRetainUserObject, 11030)                             \
    F(cuGraphReleaseUserObject, 11030)                            \
    F(cuThreadExchangeStreamCaptureMode, 10010)                   \
    F(cuLibraryLoadData, 12000)                                   \
    F(cuModuleLoadData, 2000)                                     \
    F(cuModuleGetFunction, 2000)                                  \
    F(cuModuleGetGlobal, 3020)                                    \
    F(cuLibraryUnload, 12000)                                     \
    F(cuLibraryGetKernel, 12000)                                  \
    F(cuLibraryGetGlobal, 12000)                                  \
    F(cuKernelGetFunction, 12000)                                 \
    F(cuKernelGetName, 12030)                                     \
    F(cuFuncGetAttribute, 2020)                                   \
    F(cuFuncSetAttribute, 9000)                                   \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000) \
    F(cuOccupancyAvailableDynamicSMemPerBlock, 10020)

/* Base name, version, version of the per-thread form: those that mean a default stream. */
#define RT_STREAM_FUNCTIONS(F)                         \
    F(cuMemAllocAsync, 11020, 11020)                   \
    F(cuMemAllocFromPoolAsync, 11020, 11020)           \
    F(cuMemFreeAsync, 11020, 11020)                    \
    F(cuMemPrefetchAsync, 12020, 12020)                \
    F(cuMemcpy, 4000, 7000)                            \
    F(cuMemcpyAsync, 4000, 7000)                       \
    F(cuMemcpyPeer, 4000, 7000)                        \
    F(cuMemcpyPeerAsync, 4000, 7000)                   \
    F(cuMemcpy2DUnaligned, 3020, 7000)                 \
    F(cuMemcpy2DAsync, 3020, 7000)                     \
    F(cuMemcpy3D, 3020, 7000)                          \
    F(cuMemcpy3DAsync, 3020, 7000)                     \
    F(cuMemcpyBatchAsync, 13000, 13000)                \
    F(cuMemsetD8, 3020, 7000)                          \
    F(cuMemsetD8Async, 3020, 7000)                     \
    F(cuMemsetD2D8, 3020, 7000)                        \
    F(cuMemsetD2D8Async, 3020, 7000)                   \
    F(cuMemPrefetchBatchAsync, 13000, 13000)           \
    F(cuMemDiscardBatchAsync, 13000, 13000)            \
    F(cuMemDiscardAndPrefetchBatchAsync, 13000, 13000) \
    F(cuMemcpy3DBatchAsync, 13000, 13000)              \
    F(cuStreamCopyAttributes, 11000, 11000)            \
    F(cuGraphInstantiateWithParams, 12000, 12000)      \
    F(cuStreamSynchronize, 2000, 7000)                 \
    F(cuStreamQuery, 2000, 7000)                       \
    F(cuStreamWaitEvent, 3020, 7000)                   \
    F(cuStreamGetFlags, 5050, 7000)                    \
    F(cuStreamGetPriority, 5050, 7000)                 \
    F(cuStreamGetId, 12000, 12000)                     \
    F(cuStreamGetDevice, 12080, 12080)                 \
    F(cuStreamAddCallback, 5000, 7000)                 \
    F(cuStreamAttachMemAsync, 6000, 7000)              \
    F(cuStreamSetAttribute, 11000, 11000)              \
    F(cuStreamGetAttribute, 11000, 11000)              \
    F(cuStreamBeginCapture, 10010, 10010)              \
    F(cuStreamEndCapture, 10000, 10000)                \
    F(cuStreamIsCapturing, 10000, 10000)               \
    F(cuStreamGetCaptureInfo, 12030, 12030)            \
    F(cuLaunchHostFunc, 10000, 10000)                  \
    F(cuLaunchKernel, 4000, 7000)                      \
    F(cuLaunchKernelEx, 11060, 11060)                  \
    F(cuLaunchCooperativeKernel, 9000, 9000)           \
    F(cuEventRecord, 2000, 7000)                       \
    F(cuEventRecordWithFlags, 11010, 11010)            \
    F(cuGraphUpload, 11010, 11010)                     \
    F(cuStreamBeginCaptureToGraph, 12030, 12030)       \
    F(cuStreamUpdateCaptureDependencies, 12030, 12030) \
    F(cuGraphLaunch, 10000, 10000)

/* A form that the header keeps to itself; NVIDIA's runtime asks for it. */
typedef PFN_cuDevicePrimaryCtxReset_v11000 PFN_cuDevicePrimaryCtxReset_v7000;

struct rt_driver {
#define RT_FIELD(name, version)               PFN_##name##_v##version name;
#define RT_STREAM_FIELD(name, version, other) PFN_##name##_v##version name;
    RT_DRIVER_FUNCTIONS(RT_FIELD)
    RT_STREAM_FUNCTIONS(RT_STREAM_FIELD)
#undef RT_FIELD
#undef RT_STREAM_FIELD
    PFN_cuGetProcAddress_v12000 cuGetProcAddress;
};

/* Legacy and per-thread forms. */
extern struct rt_driver rt_drivers[2];

/* The release this is, as 12080. For 11, SIMCUDART_RELEASE tells which (11.8): up to 11.2 it finds
 * every function by its exported name, later by the resolver's first form. */
int rt_version(void);
/* Finds the driver, once. */
cudaError_t rt_init(void);
/* And makes a context current for this thread. */
cudaError_t rt_enter(void);
int rt_device_count(void);
/* The table the running call needs. */
const struct rt_driver *rt_driver(void);
/* Ends the device's context for all threads. */
cudaError_t rt_reset(int device);

/* The context that nodes for copies and sets belong to, or NULL. */
CUcontext rt_current_context(void);

/* In copy.c: a copy in the driver's words and back, and one of a row of bytes. */
void rt_volume(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *copy_out);
void rt_volume_parms(const CUDA_MEMCPY3D *copy, struct cudaMemcpy3DParms *p_out);
CUDA_MEMCPY3D rt_line(void *dst, const void *src, size_t count);
/* In array.c: 1 for none; and what the driver knows of arrays. */
size_t rt_array_element_bytes(cudaArray_const_t array);
cudaError_t rt_array_get_description(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *description);
CUDA_ARRAY3D_DESCRIPTOR rt_array_description(const struct cudaChannelFormatDesc *desc,
                                             struct cudaExtent extent, unsigned flags);

/* A call of the driver in a context, as the result of a runtime function. */
#define RT_CALL(name, ...)                                  \
    do {                                                    \
        cudaError_t rt_entered = rt_enter();                \
        if (rt_entered != cudaSuccess) {                    \
            return rt_entered;                              \
        }                                                   \
        if (rt_driver()->name == NULL) {                    \
            return cudaErrorCallRequiresNewerDriver;        \
        }                                                   \
        return (cudaError_t)rt_driver()->name(__VA_ARGS__); \
    } while (0)

#endif
