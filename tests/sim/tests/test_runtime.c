/* SPDX-License-Identifier: MIT */
/* The thin runtime: error state, start of contexts, launches, resets, older drivers. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <pthread.h>
#include <string.h>

static void last_errors_are_kept_and_taken(void)
{
    void *p;

    CHECK_EQ(cudaMalloc(NULL, 10), cudaErrorInvalidValue);
    CHECK_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
    OK(cudaMalloc(&p, 10));
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaGetLastError());
    CHECK_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

static void *peek(void *unused)
{
    (void)unused;
    return (void *)(uintptr_t)cudaPeekAtLastError();
}

static void errors_belong_to_a_thread(void)
{
    pthread_t thread;
    void *result;

    CHECK_EQ(cudaFree(&thread), cudaErrorInvalidValue);
    pthread_create(&thread, NULL, peek, NULL);
    pthread_join(thread, &result);
    CHECK(result == NULL);
}

static void empty_requests_succeed(void)
{
    void *p = &p;
    CUcontext context;

    OK(cudaMalloc(&p, 0));
    CHECK(p == NULL);
    OK(cudaFree(NULL));
    OK(cuCtxGetCurrent(&context));
    CHECK(context != NULL);
    OK(cudaFreeHost(NULL));
    CHECK_EQ(simcuda_call_count("cuMemAlloc_v2"), 0);
    CHECK_EQ(simcuda_call_count("cuMemFree_v2"), 0);
}

static void setting_a_device_makes_its_context_current(void)
{
    CUdevice device;
    int current;
    void *p;

    OK(cudaSetDevice(1));
    OK(cuCtxGetDevice(&device));
    CHECK_EQ(device, 1);
    OK(cudaGetDevice(&current));
    CHECK_EQ(current, 1);
    OK(cudaMalloc(&p, 100));
    CHECK_EQ(simcuda_live_bytes(1), 100);
    OK(cudaSetDevice(0));
    OK(cudaFree(p));
    CHECK_EQ(simcuda_live_bytes(1), 0);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    CHECK_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
}

static void a_reset_starts_anew(void)
{
    void *p;
    void *q;

    OK(cudaMalloc(&p, 1000));
    OK(cudaDeviceReset());
    CHECK_EQ(simcuda_used_bytes(0), 0);
    OK(cudaMalloc(&q, 1000));
    CHECK_EQ(simcuda_live_blocks(0), 1);
    OK(cudaFree(q));
    CHECK_EQ(cudaFree(p), cudaErrorInvalidValue);
}

static void launches_check_their_shape(void)
{
    const dim3 none = {0, 1, 1};
    const dim3 one = {1, 1, 1};
    const dim3 large = {2048, 1, 1};
    unsigned us = 0;
    void *arguments[] = {&us};

    OK(cudaLaunchKernel(sim_kernel_spin, one, one, arguments, 0, NULL));
    CHECK_EQ(cudaLaunchKernel(sim_kernel_spin, none, one, arguments, 0, NULL),
             cudaErrorInvalidConfiguration);
    CHECK_EQ(cudaLaunchKernel(sim_kernel_spin, one, large, arguments, 0, NULL),
             cudaErrorInvalidConfiguration);
    CHECK_EQ(cudaLaunchKernel(&us, one, one, arguments, 0, NULL), cudaErrorInvalidDeviceFunction);
    OK(cudaLaunchKernel(sim_kernel_unknown, one, one, NULL, 0, NULL));
}

static void kernels_compute(void)
{
    int *p;
    int *q;
    int host[4] = {1, 2, 3, 4};

    OK(cudaMalloc((void **)&p, sizeof(host)));
    OK(cudaMalloc((void **)&q, sizeof(host)));
    OK(cudaMemcpy(p, host, sizeof(host), cudaMemcpyHostToDevice));
    OK(sim_add(p, 4, 10, NULL));
    OK(sim_copy(q, p, sizeof(host), NULL));
    OK(cudaMemcpy(host, q, sizeof(host), cudaMemcpyDeviceToHost));
    CHECK_EQ(host[0], 11);
    CHECK_EQ(host[3], 14);
}

static void kernels_describe_themselves(void)
{
    struct cudaFuncAttributes attributes;
    int blocks;
    CUkernel kernel;
    size_t offset;
    size_t size;

    OK(cudaFuncGetAttributes(&attributes, sim_kernel_fill));
    CHECK_EQ(attributes.ptxVersion, 80);
    CHECK_EQ(attributes.maxThreadsPerBlock, 1024);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sim_kernel_fill, 256, 0));
    CHECK_EQ(blocks, 8);
    OK(cudaGetKernel(&kernel, sim_kernel_fill));
    OK(cuKernelGetParamInfo(kernel, 2, &offset, &size));
    CHECK_EQ(offset, 16);
    CHECK_EQ(size, 4);
    CHECK_EQ(cuKernelGetParamInfo(kernel, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

static void entry_points_come_from_the_driver(void)
{
    enum cudaDriverEntryPointQueryResult status;
    void *function;

    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault,
                                        &status));
    CHECK(function == (void *)cuMemAlloc);
    OK(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, cudaEnableDefault, &status));
    CHECK_EQ(status, cudaDriverEntryPointSymbolNotFound);
}

static void properties_are_filled(void)
{
    struct cudaDeviceProp prop;
    int version;

    OK(cudaGetDeviceProperties(&prop, 0));
    CHECK(strcmp(prop.name, "Simulated GPU 0") == 0);
    CHECK_EQ(prop.major, 8);
    CHECK_EQ(prop.warpSize, 32);
    CHECK_EQ(prop.managedMemory, 1);
    CHECK_EQ(prop.cooperativeLaunch, 1);
    CHECK_EQ(prop.memoryPoolsSupported, 1);
    CHECK(prop.maxGridSize[0] > 65535);
    CHECK(prop.totalGlobalMem != 0);
    OK(cudaRuntimeGetVersion(&version));
    CHECK_EQ(version, CUDART_VERSION);
}

static void unwritten_functions_are_refused(void)
{
    struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0,
                                                              cudaChannelFormatKindFloat);
    size_t width;

    CHECK_EQ(cudaDeviceGetTexture1DLinearMaxWidth(&width, &desc, 0), cudaErrorNotSupported);
}

static void an_older_driver_is_refused(void)
{
    int count = 5;

    CHECK_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    CHECK_EQ(count, 0);
    CHECK(strcmp(cudaGetErrorName(cudaErrorInsufficientDriver), "cudaErrorInsufficientDriver") ==
          0);
}

static void it_may_be_let_through(void)
{
    void *p;
    int device;

    OK(cudaMalloc(&p, 100));
    OK(cudaMemset(p, 0, 100));
    OK(cudaFree(p));
    CHECK_EQ(cudaStreamGetDevice(NULL, &device), cudaErrorCallRequiresNewerDriver);
}

static void a_runtime_call_is_one_driver_call(void)
{
    void *p;

    OK(cudaMallocPitch(&p, &(size_t){0}, 10, 10));
    CHECK_EQ(simcuda_call_count("cuMemAllocPitch_v2"), 1);
    CHECK_EQ(simcuda_call_count("cuMemAlloc_v2"), 0);
    OK(cudaFree(p));
    CHECK_EQ(simcuda_call_count("cuMemFree_v2"), 1);
    OK(cudaMalloc(&p, 10));
    CHECK_EQ(simcuda_call_count("cuMemAlloc_v2"), 1);
    CHECK_EQ(simcuda_call_count("cuGetProcAddress_v2") > 100, 1);
}

static const struct check_case cases[] = {
    {"last_errors_are_kept_and_taken", last_errors_are_kept_and_taken, NULL, 0},
    {"errors_belong_to_a_thread", errors_belong_to_a_thread, NULL, 0},
    {"empty_requests_succeed", empty_requests_succeed, NULL, 0},
    {"setting_a_device_makes_its_context_current", setting_a_device_makes_its_context_current,
     "SIMCUDA_DEVICES=2", 0},
    {"a_reset_starts_anew", a_reset_starts_anew, NULL, 0},
    {"launches_check_their_shape", launches_check_their_shape, NULL, 0},
    {"kernels_compute", kernels_compute, NULL, 0},
    {"kernels_describe_themselves", kernels_describe_themselves, NULL, 0},
    {"entry_points_come_from_the_driver", entry_points_come_from_the_driver, NULL, 0},
    {"properties_are_filled", properties_are_filled, NULL, 0},
    {"unwritten_functions_are_refused", unwritten_functions_are_refused, NULL, 0},
    {"an_older_driver_is_refused", an_older_driver_is_refused, "SIMCUDA_DRIVER=12.8", 0},
    {"it_may_be_let_through", it_may_be_let_through, "SIMCUDA_DRIVER=12.4 SIMCUDART_COMPAT=1", 0},
    {"a_runtime_call_is_one_driver_call", a_runtime_call_is_one_driver_call, NULL, 0},
};

CHECK_MAIN(cases)
