/* SPDX-License-Identifier: MIT */
/* Devices, contexts and the error codes of the driver. */
#include "check.h"
#include "sim.h"

#include <cuda.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static CUcontext start(void)
{
    CUcontext context;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

static void nothing_works_before_init(void)
{
    CUdeviceptr p;
    int count;

    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

static void bad_frees_are_invalid_values(void)
{
    CUdeviceptr p;

    start();
    CHECK_EQ(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAlloc(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc(&p, 4096));
    CHECK_EQ(cuMemFree(p + 512), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemFree((CUdeviceptr)(uintptr_t)&p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(p));
    CHECK_EQ(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(0));
    CHECK_EQ(cuMemAlloc(&p, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
}

static void a_device_describes_itself(void)
{
    char name[64];
    char bus[16];
    CUuuid uuid[2];
    size_t total;
    int value;
    CUdevice device;

    OK(cuInit(0));
    OK(cuDeviceGetCount(&value));
    CHECK_EQ(value, 2);
    OK(cuDeviceGetName(name, sizeof(name), 1));
    CHECK(strcmp(name, "Simulated GPU 1") == 0);
    OK(cuDeviceTotalMem(&total, 0));
    CHECK_EQ(total, (size_t)256 << 20);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    CHECK_EQ(value, 8);
    OK(cuDeviceGetUuid(&uuid[0], 0));
    OK(cuDeviceGetUuid(&uuid[1], 1));
    CHECK(memcmp(&uuid[0], &uuid[1], sizeof(uuid[0])) != 0);
    OK(cuDeviceGetPCIBusId(bus, sizeof(bus), 1));
    OK(cuDeviceGetByPCIBusId(&device, bus));
    CHECK_EQ(device, 1);
    CHECK_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
}

static void no_device_is_an_error(void)
{
    CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void primary_contexts_count_references(void)
{
    CUcontext first;
    CUcontext second;
    CUdeviceptr p;
    unsigned flags;
    int is_active;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(is_active, 0);
    OK(cuDevicePrimaryCtxRetain(&first, 0));
    OK(cuDevicePrimaryCtxRetain(&second, 0));
    CHECK(first == second);
    OK(cuCtxSetCurrent(first));
    OK(cuMemAlloc(&p, 4096));
    OK(cuDevicePrimaryCtxRelease(0));
    CHECK_EQ(simcuda_live_blocks(0), 1);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    CHECK_EQ(is_active, 0);
    CHECK_EQ(simcuda_live_blocks(0), 0);
    CHECK_EQ(simcuda_used_bytes(0), 0);
    CHECK_EQ(cuMemAlloc(&p, 4096), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void a_reset_ends_memory_and_streams(void)
{
    CUdeviceptr p;
    CUstream stream;
    unsigned long long before;
    unsigned long long after;
    CUcontext context = start();

    OK(cuCtxGetId(context, &before));
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemAlloc(&p, 1 << 20));
    OK(cuMemsetD8Async(p, 1, 1 << 20, stream));
    OK(cuDevicePrimaryCtxReset(0));
    CHECK_EQ(simcuda_used_bytes(0), 0);
    start();
    OK(cuCtxGetId(context, &after));
    CHECK(before != after);
    CHECK_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK_EQ(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

static void created_contexts_stack(void)
{
    CUcontext primary = start();
    CUcontext made;
    CUcontext current;
    CUdeviceptr p;
    CUdevice device;

    OK(cuCtxCreate(&made, NULL, 0, 1));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == made);
    OK(cuCtxGetDevice(&device));
    CHECK_EQ(device, 1);
    OK(cuMemAlloc(&p, 100));
    CHECK_EQ(simcuda_live_bytes(1), 100);
    OK(cuCtxPopCurrent(&current));
    CHECK(current == made);
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
    OK(cuCtxPushCurrent(made));
    OK(cuCtxDestroy(made));
    CHECK_EQ(simcuda_live_bytes(1), 0);
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
    CHECK_EQ(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
}

static void peers_keep_their_state(void)
{
    CUcontext first = start();
    CUcontext second;
    int can;

    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK_EQ(can, 1);
    OK(cuDeviceCanAccessPeer(&can, 1, 1));
    CHECK_EQ(can, 0);
    CHECK_EQ(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(cuCtxEnablePeerAccess(second, 0));
    CHECK_EQ(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(cuCtxDisablePeerAccess(second));
    CHECK_EQ(cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_INVALID_DEVICE);
}

static void limits_are_kept(void)
{
    size_t value;

    start();
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    CHECK_EQ(value, 4096);
    CHECK_EQ(cuCtxGetLimit(&value, (CUlimit)99), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

static void errors_have_names(void)
{
    const char *text;

    OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    CHECK(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK(strcmp(text, "out of memory") == 0);
    CHECK_EQ(cuGetErrorName((CUresult)4242, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(text == NULL);
}

static void failures_come_as_ordered(void)
{
    CUdeviceptr p;

    start();
    OK(cuMemAlloc(&p, 1));
    OK(cuMemAlloc(&p, 1));
    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc(&p, 1));
    CHECK_EQ(cuMemFree(p), 999);
    CHECK_EQ(simcuda_call_count("cuMemAlloc_v2"), 4);
    simcuda_set_fail("cuMemAlloc_v2:every=2:code=1");
    CHECK_EQ(cuMemAlloc(&p, 1), 0);
    CHECK_EQ(cuMemAlloc(&p, 1), 1);
    simcuda_set_fail("cuMemAlloc_v2:n=2");
    OK(cuMemAlloc(&p, 1));
    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
    simcuda_set_fail("");
    OK(cuMemAlloc(&p, 1));
    OK(cuMemFree(p));
}

static unsigned count_random_failures(void)
{
    unsigned count = 0;
    CUdeviceptr p;

    for (int i = 0; i < 300; i++) {
        CUresult result = cuMemAlloc(&p, 1);
        CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
        count += result != CUDA_SUCCESS;
    }
    return count;
}

static void some_calls_fail_at_random(void)
{
    start();
    simcuda_set_fail("cuMemAlloc_v2:random=3");
    unsigned count = count_random_failures();
    CHECK(count > 50 && count < 150);
    simcuda_set_fail("");
    CHECK_EQ(count_random_failures(), 0);
}

static void a_failure_may_end_the_context(void)
{
    CUdeviceptr p;

    start();
    simcuda_set_fail("cuMemAlloc_v2:n=1:code=719:sticky=1");
    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_LAUNCH_FAILED);
    CHECK_EQ(cuMemAlloc(&p, 1), CUDA_ERROR_LAUNCH_FAILED);
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    OK(cuDevicePrimaryCtxReset(0));
    start();
    OK(cuMemAlloc(&p, 1));
}

static void slow_calls_take_their_time(void)
{
    CUdeviceptr p;
    struct timespec start_time;
    struct timespec end_time;

    start();
    clock_gettime(CLOCK_MONOTONIC, &start_time);
    OK(cuMemAlloc(&p, 1));
    clock_gettime(CLOCK_MONOTONIC, &end_time);
    CHECK((end_time.tv_sec - start_time.tv_sec) * 1000 +
              (end_time.tv_nsec - start_time.tv_nsec) / 1000000 >=
          30);
}

static void unwritten_functions_say_so(void)
{
    CUmemGenericAllocationHandle handle;
    CUmulticastObjectProp multicast = {.numDevices = 1};
    size_t width;

    start();
    CHECK_EQ(simcuda_unwritten(), 0);
    CHECK_EQ(cuMulticastCreate(&handle, &multicast), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(simcuda_unwritten(), 0);
    CHECK_EQ(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, 0),
             CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(simcuda_unwritten(), 1);
}

static void a_forked_child_cannot_use_it(void)
{
    CUdeviceptr p;
    int status;

    start();
    OK(cuMemAlloc(&p, 4096));
    pid_t child = fork();
    if (child == 0) {
        exit(cuMemFree(p) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(cuMemFree(p));
}

static void a_child_forked_before_init_can(void)
{
    CUdeviceptr p;
    int status;

    pid_t child = fork();
    if (child == 0) {
        start();
        exit(cuMemAlloc(&p, 4096) == CUDA_SUCCESS ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_log_counts_calls(void)
{
    char path[64];
    char line[256];
    int status;
    bool has_alloc = false;
    bool has_violations = false;

    snprintf(path, sizeof(path), "/tmp/simcuda-log-%d", (int)getpid());
    setenv("SIMCUDA_LOG", path, 1);
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl("/proc/self/exe", "case", "bad_frees_are_invalid_values", "1", (char *)NULL);
        _exit(126);
    }
    CHECK(waitpid(child, &status, 0) == child);
    FILE *log = fopen(path, "r");
    CHECK(log != NULL);
    while (fgets(line, sizeof(line), log) != NULL) {
        has_alloc |= strcmp(line, "cuMemAlloc_v2 4\n") == 0;
        has_violations |= strcmp(line, "violations 0\n") == 0;
    }
    fclose(log);
    unlink(path);
    CHECK(has_alloc);
    CHECK(has_violations);
}

static const struct check_case cases[] = {
    {"nothing_works_before_init", nothing_works_before_init, NULL, 0},
    {"bad_frees_are_invalid_values", bad_frees_are_invalid_values, NULL, 0},
    {"a_device_describes_itself", a_device_describes_itself, "SIMCUDA_DEVICES=2 SIMCUDA_MEM=256M",
     0},
    {"no_device_is_an_error", no_device_is_an_error, "SIMCUDA_DEVICES=0", 0},
    {"primary_contexts_count_references", primary_contexts_count_references, NULL, 0},
    {"a_reset_ends_memory_and_streams", a_reset_ends_memory_and_streams, NULL, 0},
    {"created_contexts_stack", created_contexts_stack, "SIMCUDA_DEVICES=2", 0},
    {"peers_keep_their_state", peers_keep_their_state, "SIMCUDA_DEVICES=2", 0},
    {"limits_are_kept", limits_are_kept, NULL, 0},
    {"errors_have_names", errors_have_names, NULL, 0},
    {"failures_come_as_ordered", failures_come_as_ordered,
     "SIMCUDA_FAIL=cuMemAlloc_v2:n=3,cuMemFree_v2:n=1:code=999", 0},
    {"some_calls_fail_at_random", some_calls_fail_at_random, NULL, 0},
    {"a_failure_may_end_the_context", a_failure_may_end_the_context, NULL, 0},
    {"slow_calls_take_their_time", slow_calls_take_their_time,
     "SIMCUDA_SLOW=cuMemAlloc_v2:us=30000", 0},
    {"unwritten_functions_say_so", unwritten_functions_say_so, NULL, 0},
    {"a_forked_child_cannot_use_it", a_forked_child_cannot_use_it, NULL, 0},
    {"a_child_forked_before_init_can", a_child_forked_before_init_can, NULL, 0},
    {"a_log_counts_calls", a_log_counts_calls, NULL, 0},
};

CHECK_MAIN(cases)
