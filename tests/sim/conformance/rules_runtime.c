/* SPDX-License-Identifier: MIT */
/* Errors, and how functions are found. */
#include "rule.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

RULE(error, the_last_one_is_kept, "cuda_runtime_api.h, cudaPeekAtLastError")
{
    void *p;

    CHECK_EQ(cudaMalloc(NULL, 10), cudaErrorInvalidValue);
    OK(cudaMalloc(&p, 10));
    CHECK_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
    CHECK_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
}

RULE(error, getting_it_takes_it, "cuda_runtime_api.h, cudaGetLastError")
{
    CHECK_EQ(cudaMalloc(NULL, 10), cudaErrorInvalidValue);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaGetLastError());
}

static void *peek(void *unused)
{
    (void)unused;
    return (void *)(size_t)cudaPeekAtLastError();
}

RULE(error, it_belongs_to_a_thread, "cuda_runtime_api.h, cudaGetLastError")
{
    pthread_t thread;
    void *result;

    CHECK_EQ(cudaMalloc(NULL, 10), cudaErrorInvalidValue);
    pthread_create(&thread, NULL, peek, NULL);
    pthread_join(thread, &result);
    CHECK(result == NULL);
}

RULE(error, not_ready_is_kept, "assumed", RULE_SIMULATED)
{
    struct rule_gate gate;

    rule_close(&gate, NULL);
    CHECK_EQ(cudaStreamQuery(NULL), cudaErrorNotReady);
    CHECK_EQ(cudaGetLastError(), cudaErrorNotReady);
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(error, there_is_no_device_beyond_the_last, "cuda_runtime_api.h, cudaSetDevice")
{
    int count;

    OK(cudaGetDeviceCount(&count));
    CHECK_EQ(cudaSetDevice(count), cudaErrorInvalidDevice);
    CHECK_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
}

RULE(error, errors_have_names, "cuda.h, cuGetErrorName")
{
    const char *text = NULL;

    OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    CHECK(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    CHECK_EQ(cuGetErrorName((CUresult)4242, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(text == NULL);
    CHECK(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
    CHECK(strcmp(cudaGetErrorName((cudaError_t)4242), "unrecognized error code") == 0);
}

RULE(error, errors_are_described, "cuda.h, cuGetErrorString")
{
    const char *text = NULL;

    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK(strcmp(text, "out of memory") == 0);
    CHECK(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
}

RULE(runtime, the_first_call_makes_a_context, "guide, Initialization")
{
    CUcontext context = NULL;

    OK(cudaFree(NULL));
    OK(cuCtxGetCurrent(&context));
    CHECK(context != NULL);
}

RULE(runtime, it_uses_the_primary_context,
     "guide, Interoperability between Runtime and Driver APIs")
{
    CUcontext primary = rule_start(0);
    CUcontext current;

    OK(cuCtxSetCurrent(NULL));
    OK(cudaSetDevice(0));
    OK(cudaFree(NULL));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
}

RULE(runtime, it_leaves_a_current_context,
     "guide, Interoperability between Runtime and Driver APIs")
{
    CUcontext made;
    CUcontext current;
    void *p;

    rule_start(0);
    OK(cuCtxCreate(&made, NULL, 0, 0));
    OK(cudaMalloc(&p, 16));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == made);
}

RULE(runtime, setting_a_device_changes_the_context, "cuda_runtime_api.h, cudaSetDevice", 0,
     "SIMCUDA_DEVICES=2")
{
    int device;
    CUdevice of_context;

    rule_start(1);
    OK(cudaSetDevice(1));
    OK(cudaGetDevice(&device));
    CHECK_EQ(device, 1);
    OK(cudaFree(NULL));
    OK(cuCtxGetDevice(&of_context));
    CHECK_EQ(of_context, 1);
}

RULE(runtime, memory_is_freed_from_any_device, "assumed", 0, "SIMCUDA_DEVICES=2")
{
    void *p;

    rule_start(1);
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&p, 100));
    OK(cudaSetDevice(0));
    OK(cudaFree(p));
}

RULE(runtime, a_reset_starts_anew, "cuda_runtime_api.h, cudaDeviceReset")
{
    void *p;
    void *q;

    OK(cudaMalloc(&p, (size_t)8 << 20));
    OK(cudaDeviceReset());
    CHECK_EQ(cudaFree(p), cudaErrorInvalidValue);
    OK(cudaMalloc(&q, 1000));
    OK(cudaFree(q));
}

RULE(runtime, properties_agree_with_attributes, "cuda_runtime_api.h, cudaGetDeviceProperties")
{
    struct cudaDeviceProp prop;
    size_t total;
    int value;

    OK(cudaGetDeviceProperties(&prop, 0));
    OK(cuDeviceTotalMem(&total, 0));
    CHECK_EQ(prop.totalGlobalMem, total);
    OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    CHECK_EQ(prop.multiProcessorCount, value);
    CHECK_EQ(prop.warpSize, 32);
}

static void *find(const char *base, int version, cuuint64_t flags,
                  CUdriverProcAddressQueryResult wanted)
{
    CUdriverProcAddressQueryResult status;
    void *function = &status;

    OK(cuGetProcAddress(base, &function, version, flags, &status));
    CHECK_EQ(status, wanted);
    return function;
}

static void *named(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

RULE(lookup, the_version_chooses_the_form, "cuda.h, cuGetProcAddress")
{
    CUdriverProcAddressQueryResult good = CU_GET_PROC_ADDRESS_SUCCESS;

    CHECK(find("cuMemAlloc", 3020, 0, good) == named("cuMemAlloc_v2"));
    CHECK(find("cuMemAlloc", 12000, 0, good) == named("cuMemAlloc_v2"));
    CHECK(find("cuGetProcAddress", 12000, 0, good) == named("cuGetProcAddress_v2"));
}

RULE(lookup, early_versions_get_early_forms, "cuda.h, cuGetProcAddress")
{
    CUdriverProcAddressQueryResult good = CU_GET_PROC_ADDRESS_SUCCESS;

    CHECK(find("cuMemAlloc", 2000, 0, good) == named("cuMemAlloc"));
    CHECK(find("cuStreamBeginCapture", 10000, 0, good) == named("cuStreamBeginCapture"));
    CHECK(find("cuStreamBeginCapture", 10010, 0, good) == named("cuStreamBeginCapture_v2"));
}

RULE(lookup, flags_choose_the_default_stream, "cuda.h, cuGetProcAddress")
{
    CUdriverProcAddressQueryResult good = CU_GET_PROC_ADDRESS_SUCCESS;

    CHECK(find("cuMemcpyAsync", 7000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, good) ==
          named("cuMemcpyAsync"));
    CHECK(find("cuMemcpyAsync", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, good) ==
          named("cuMemcpyAsync_ptsz"));
}

RULE(lookup, functions_without_a_stream_have_one_form, "cuda.h, cuGetProcAddress")
{
    CUdriverProcAddressQueryResult good = CU_GET_PROC_ADDRESS_SUCCESS;

    CHECK(find("cuMemAlloc", 3020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, good) ==
          find("cuMemAlloc", 3020, 0, good));
}

RULE(lookup, unknown_names_are_not_found, "cuda.h, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND")
{
    CHECK(find("cuNoSuchThing", 12000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
    CHECK(find("cuMemAlloc_v2", 12000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
}

RULE(lookup, later_functions_need_later_versions,
     "cuda.h, CU_GET_PROC_ADDRESS_VERSION_NOT_"
     "SUFFICIENT")
{
    CHECK(find("cuCtxRecordEvent", 12000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == NULL);
}

RULE(lookup, versions_beyond_the_driver_are_refused, "cuda.h, cuGetProcAddress")
{
    void *function;

    CHECK_EQ(cuGetProcAddress("cuMemAlloc", &function, 99000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGetProcAddress(NULL, &function, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

RULE(lookup, an_old_driver_lacks_new_functions, "cuda.h, cuGetProcAddress", RULE_SIMULATED,
     "SIMCUDA_DRIVER=12.4")
{
    int version;

    OK(cuDriverGetVersion(&version));
    CHECK_EQ(version, 12040);
    CHECK(find("cuCtxRecordEvent", 12040, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == NULL);
    OK(cuInit(0));
    CHECK_EQ(cuCtxRecordEvent(NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

RULE(lookup, the_runtime_hands_out_the_driver, "cuda_runtime_api.h, cudaGetDriverEntryPoint")
{
    enum cudaDriverEntryPointQueryResult status;
    void *function = NULL;

    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault,
                                        &status));
    CHECK_EQ(status, cudaDriverEntryPointSuccess);
    CHECK(function == named("cuMemAlloc_v2"));
}

RULE(runtime, what_the_device_lacks_is_not_supported, "assumed", RULE_SIMULATED)
{
    cudaExternalMemory_t memory;
    struct cudaExternalMemoryHandleDesc desc;

    memset(&desc, 0, sizeof(desc));
    CHECK_EQ(cudaImportExternalMemory(&memory, &desc), cudaErrorNotSupported);
}
