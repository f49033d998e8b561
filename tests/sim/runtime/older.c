/* SPDX-License-Identifier: MIT */
/* Functions of release 12 that look otherwise in the headers of 13: exported under their names by
 * assembler labels, since the headers declare the newer ones. */
#include "call.h"
#include "driver.h"
#include "rt_api.h"

#include <stddef.h>
#include <string.h>

/* cudaDeviceProp of 12.x, field by field; what 13 dropped is in it still. */
struct older_properties {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    size_t memPitch;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate;
    size_t totalConstMem;
    int major;
    int minor;
    size_t textureAlignment;
    size_t texturePitchAlignment;
    int deviceOverlap;
    int multiProcessorCount;
    int kernelExecTimeoutEnabled;
    int integrated;
    int canMapHostMemory;
    int computeMode;
    int maxTexture1D;
    int maxTexture1DMipmap;
    int maxTexture1DLinear;
    int maxTexture2D[2];
    int maxTexture2DMipmap[2];
    int maxTexture2DLinear[3];
    int maxTexture2DGather[2];
    int maxTexture3D[3];
    int maxTexture3DAlt[3];
    int maxTextureCubemap;
    int maxTexture1DLayered[2];
    int maxTexture2DLayered[3];
    int maxTextureCubemapLayered[2];
    int maxSurface1D;
    int maxSurface2D[2];
    int maxSurface3D[3];
    int maxSurface1DLayered[2];
    int maxSurface2DLayered[3];
    int maxSurfaceCubemap;
    int maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int tccDriver;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryClockRate;
    int memoryBusWidth;
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    int globalL1CacheSupported;
    int localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int isMultiGpuBoard;
    int multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
    int singleToDoublePrecisionPerfRatio;
    int pageableMemoryAccess;
    int concurrentManagedAccess;
    int computePreemptionSupported;
    int canUseHostPointerForRegisteredMem;
    int cooperativeLaunch;
    int cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor;
    int accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported;
    int sparseCudaArraySupported;
    int hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported;
    int memoryPoolsSupported;
    int gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported;
    int ipcEventSupported;
    int clusterLaunch;
    int unifiedFunctionPointers;
    int reserved[63];
};

/* Where the last ones lie, after bindings that others have published for 12.x. */
_Static_assert(offsetof(struct older_properties, reservedSharedMemPerBlock) == 720, "720");
_Static_assert(offsetof(struct older_properties, unifiedFunctionPointers) == 776, "776");
_Static_assert(sizeof(struct older_properties) == 1032, "1032");

/* The formatter does not come to rest on such a list. */
/* clang-format off */
#define KEPT(F) \
    F(totalGlobalMem) F(sharedMemPerBlock) F(regsPerBlock) F(warpSize) F(memPitch) \
    F(maxThreadsPerBlock) F(totalConstMem) F(major) F(minor) F(textureAlignment) \
    F(texturePitchAlignment) F(multiProcessorCount) F(integrated) F(canMapHostMemory) \
    F(maxTexture1D) F(surfaceAlignment) F(concurrentKernels) F(pciBusID) F(pciDeviceID) \
    F(pciDomainID) F(asyncEngineCount) F(unifiedAddressing) F(memoryBusWidth) F(l2CacheSize) \
    F(persistingL2CacheMaxSize) F(maxThreadsPerMultiProcessor) F(streamPrioritiesSupported) \
    F(globalL1CacheSupported) F(localL1CacheSupported) F(sharedMemPerMultiprocessor) \
    F(regsPerMultiprocessor) F(managedMemory) F(pageableMemoryAccess) \
    F(concurrentManagedAccess) F(computePreemptionSupported) \
    F(canUseHostPointerForRegisteredMem) F(cooperativeLaunch) F(sharedMemPerBlockOptin) \
    F(maxBlocksPerMultiProcessor) F(accessPolicyMaxWindowSize) F(reservedSharedMemPerBlock) \
    F(hostRegisterSupported) F(memoryPoolsSupported) F(memoryPoolSupportedHandleTypes) \
    F(ipcEventSupported)
/* clang-format on */

static cudaError_t properties(struct older_properties *prop, int device)
{
    struct cudaDeviceProp newer;
    cudaError_t result = rt_cudaGetDeviceProperties(&newer, device);

    if (result != cudaSuccess || prop == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    memset(prop, 0, sizeof(*prop));
    memcpy(prop->name, newer.name, sizeof(prop->name));
    prop->uuid = newer.uuid;
    for (int i = 0; i < 3; i++) {
        prop->maxThreadsDim[i] = newer.maxThreadsDim[i];
        prop->maxGridSize[i] = newer.maxGridSize[i];
    }
#define COPY(field) prop->field = newer.field;
    KEPT(COPY)
#undef COPY
    const struct rt_driver *driver = rt_driver();
    driver->cuDeviceGetAttribute(&prop->clockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device);
    driver->cuDeviceGetAttribute(&prop->memoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
                                 device);
    driver->cuDeviceGetAttribute(&prop->deviceOverlap, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, device);
    return cudaSuccess;
}

/* Where memory is to be: a device by number, -1 for the host. */
static struct cudaMemLocation location_of(int device)
{
    struct cudaMemLocation location = {.type = device < 0 ? cudaMemLocationTypeHost
                                                          : cudaMemLocationTypeDevice,
                                       .id = device < 0 ? 0 : device};

    return location;
}

#define OLDER(label, name, parameters, call, is_per_thread) \
    RT_EXPORT cudaError_t name parameters __asm__(label);   \
    RT_EXPORT cudaError_t name parameters                   \
    {                                                       \
        struct rt_call entered;                             \
        rt_call_begin(&entered, 0, is_per_thread);          \
        return rt_call_end(&entered, call);                 \
    }

OLDER("cudaGetDeviceProperties_v2", older_properties, (struct older_properties * prop, int device),
      properties(prop, device), false)
OLDER("cudaMemAdvise", older_advise,
      (const void *p, size_t count, enum cudaMemoryAdvise advice, int device),
      rt_cudaMemAdvise(p, count, advice, location_of(device)), false)
OLDER("cudaMemAdvise_v2", older_advise_v2,
      (const void *p, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation location),
      rt_cudaMemAdvise(p, count, advice, location), false)
OLDER("cudaMemPrefetchAsync", older_prefetch,
      (const void *p, size_t count, int device, cudaStream_t stream),
      rt_cudaMemPrefetchAsync(p, count, location_of(device), 0, stream), false)
OLDER("cudaMemPrefetchAsync_ptsz", older_prefetch_ptsz,
      (const void *p, size_t count, int device, cudaStream_t stream),
      rt_cudaMemPrefetchAsync(p, count, location_of(device), 0, stream), true)
OLDER("cudaMemPrefetchAsync_v2", older_prefetch_v2,
      (const void *p, size_t count, struct cudaMemLocation location, unsigned flags,
       cudaStream_t stream),
      rt_cudaMemPrefetchAsync(p, count, location, flags, stream), false)
OLDER("cudaStreamGetCaptureInfo", older_capture_info,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id),
      rt_cudaStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL), false)
OLDER("cudaStreamGetCaptureInfo_ptsz", older_capture_info_ptsz,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id),
      rt_cudaStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL), true)
OLDER("cudaStreamGetCaptureInfo_v2", older_capture_info_v2,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
       cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count),
      rt_cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, NULL, count), false)
OLDER("cudaStreamGetCaptureInfo_v2_ptsz", older_capture_info_v2_ptsz,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
       cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count),
      rt_cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, NULL, count), true)
OLDER("cudaStreamGetCaptureInfo_v3", older_capture_info_v3,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
       cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
       size_t *count),
      rt_cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, edges, count), false)
OLDER("cudaStreamGetCaptureInfo_v3_ptsz", older_capture_info_v3_ptsz,
      (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
       cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
       size_t *count),
      rt_cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, edges, count), true)
OLDER("cudaStreamUpdateCaptureDependencies_v2", older_update_v2,
      (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t count,
       unsigned flags),
      rt_cudaStreamUpdateCaptureDependencies(stream, nodes, edges, count, flags), false)
OLDER("cudaStreamUpdateCaptureDependencies_v2_ptsz", older_update_v2_ptsz,
      (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t count,
       unsigned flags),
      rt_cudaStreamUpdateCaptureDependencies(stream, nodes, edges, count, flags), true)
OLDER("cudaStreamUpdateCaptureDependencies", older_update,
      (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags),
      rt_cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, count, flags), false)
OLDER("cudaStreamUpdateCaptureDependencies_ptsz", older_update_ptsz,
      (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags),
      rt_cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, count, flags), true)
OLDER("cudaGraphGetEdges", older_edges,
      (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count),
      rt_cudaGraphGetEdges(graph, from, to, NULL, count), false)
OLDER("cudaGraphNodeGetDependencies", older_dependencies,
      (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count),
      rt_cudaGraphNodeGetDependencies(node, nodes, NULL, count), false)
OLDER("cudaGraphAddDependencies", older_add_dependencies,
      (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count),
      rt_cudaGraphAddDependencies(graph, from, to, NULL, count), false)
OLDER("cudaGraphNodeGetDependentNodes", older_dependents,
      (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count),
      rt_cudaGraphNodeGetDependentNodes(node, nodes, NULL, count), false)
OLDER("cudaGraphRemoveDependencies", older_remove_dependencies,
      (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count),
      rt_cudaGraphRemoveDependencies(graph, from, to, NULL, count), false)
OLDER("cudaGraphAddNode", older_add_node,
      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *nodes, size_t count,
       struct cudaGraphNodeParams *params),
      rt_cudaGraphAddNode(node, graph, nodes, NULL, count, params), false)
OLDER("cudaGraphGetEdges_v2", older_edges_v2,
      (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
       size_t *count),
      rt_cudaGraphGetEdges(graph, from, to, edges, count), false)
OLDER("cudaGraphNodeGetDependencies_v2", older_dependencies_v2,
      (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count),
      rt_cudaGraphNodeGetDependencies(node, nodes, edges, count), false)
OLDER("cudaGraphNodeGetDependentNodes_v2", older_dependents_v2,
      (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t *count),
      rt_cudaGraphNodeGetDependentNodes(node, nodes, edges, count), false)
OLDER("cudaGraphAddDependencies_v2", older_add_dependencies_v2,
      (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
       const cudaGraphEdgeData *edges, size_t count),
      rt_cudaGraphAddDependencies(graph, from, to, edges, count), false)
OLDER("cudaGraphRemoveDependencies_v2", older_remove_dependencies_v2,
      (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
       const cudaGraphEdgeData *edges, size_t count),
      rt_cudaGraphRemoveDependencies(graph, from, to, edges, count), false)
OLDER("cudaGraphAddNode_v2", older_add_node_v2,
      (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *nodes,
       const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *params),
      rt_cudaGraphAddNode(node, graph, nodes, edges, count, params), false)
