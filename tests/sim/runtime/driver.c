/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include "rt_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEVICES 64

struct rt_driver rt_drivers[2];

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static cudaError_t init_result;
static int device_count;
static pthread_mutex_t primary_mutex = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primaries[MAX_DEVICES];
static _Thread_local int current_device;

struct asked {
    const char *name;
    int version;
    cuuint64_t flags;
    void *function;
};

/* What nobody has seen of release 12 is not made up: it asks for what this runtime needs. */
#define ASK(name, version, flags) {#name, version, flags, NULL},
static struct asked asked[] = {
#if RT_RELEASE == 13
#include "asked.def"
#endif
    {"", 0, 0, NULL},
};
#undef ASK

static void *ask(const char *name, int version, cuuint64_t flags)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult status;

    if (rt_drivers[0].cuGetProcAddress(name, &function, version, flags, &status) != CUDA_SUCCESS) {
        return NULL;
    }
    return function;
}

/* As NVIDIA's: goes on with the resolver that the resolver names. */
static void ask_for_all(void)
{
    ask("", 0, 0);
    for (struct asked *row = asked; row->version != 0; row++) {
        row->function = ask(row->name, row->version, row->flags);
        if (strcmp(row->name, "cuGetProcAddress") == 0 && row->version >= 12000 &&
            row->function != NULL) {
            rt_drivers[0].cuGetProcAddress = (PFN_cuGetProcAddress_v12000)row->function;
        }
    }
}

static void *resolve(const char *name, int version, cuuint64_t flags)
{
    for (struct asked *row = asked; row->version != 0; row++) {
        if (row->version == version && row->flags == flags && strcmp(row->name, name) == 0) {
            return row->function;
        }
    }
    return ask(name, version, flags);
}

static void fill(struct rt_driver *table, bool is_per_thread)
{
    cuuint64_t flags = is_per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                     : CU_GET_PROC_ADDRESS_DEFAULT;

#define RT_FILL(name, version) \
    table->name = (PFN_##name##_v##version)resolve(#name, version, CU_GET_PROC_ADDRESS_DEFAULT);
#define RT_STREAM_FILL(name, version, other)        \
    table->name = (PFN_##name##_v##version)resolve( \
        #name, is_per_thread && other > version ? other : version, flags);
    RT_DRIVER_FUNCTIONS(RT_FILL)
    RT_STREAM_FUNCTIONS(RT_STREAM_FILL)
#undef RT_FILL
#undef RT_STREAM_FILL
}

static cudaError_t find_driver(void)
{
    int version = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    if (driver == NULL) {
        return cudaErrorInsufficientDriver;
    }
    void *resolver = dlsym(driver, "cuGetProcAddress_v2");
    if (resolver == NULL) {
        return cudaErrorInsufficientDriver;
    }
    rt_drivers[0].cuGetProcAddress = (PFN_cuGetProcAddress_v12000)resolver;
    ask_for_all();
    fill(&rt_drivers[0], false);
    fill(&rt_drivers[1], true);
    rt_drivers[1].cuGetProcAddress = rt_drivers[0].cuGetProcAddress;
    if (rt_drivers[0].cuDriverGetVersion == NULL || rt_drivers[0].cuInit == NULL) {
        return cudaErrorInsufficientDriver;
    }
    rt_drivers[0].cuDriverGetVersion(&version);
    /* As with a compatibility package, tests of older drivers may go on. */
    if (version / 1000 < RT_VERSION / 1000 && getenv("SIMCUDART_COMPAT") == NULL) {
        return cudaErrorInsufficientDriver;
    }
    cudaError_t result = (cudaError_t)rt_drivers[0].cuInit(0);
    if (result == cudaSuccess) {
        result = (cudaError_t)rt_drivers[0].cuDeviceGetCount(&device_count);
    }
    return result == cudaSuccess && device_count == 0 ? cudaErrorNoDevice : result;
}

static void init(void)
{
    init_result = find_driver();
}

cudaError_t rt_init(void)
{
    pthread_once(&init_once, init);
    return init_result;
}

int rt_device_count(void)
{
    return device_count;
}

const struct rt_driver *rt_driver(void)
{
    return &rt_drivers[rt_is_per_thread()];
}

/* A context that the program made current by itself is used as it is. A primary context that was
 * reset counts as none. */
static cudaError_t make_current(int device, bool is_forced)
{
    CUcontext current = NULL;
    cudaError_t result = (cudaError_t)rt_drivers[0].cuCtxGetCurrent(&current);

    if (result != cudaSuccess) {
        return result;
    }
    pthread_mutex_lock(&primary_mutex);
    bool is_own = current == NULL || is_forced;
    for (int i = 0; i < device_count && !is_own; i++) {
        unsigned flags;
        int is_active = 1;
        if (current == primaries[i]) {
            rt_drivers[0].cuDevicePrimaryCtxGetState(i, &flags, &is_active);
            is_own = !is_active;
        }
    }
    if (is_own) {
        unsigned flags;
        int is_active = 0;
        rt_drivers[0].cuDevicePrimaryCtxGetState(device, &flags, &is_active);
        if (primaries[device] == NULL || !is_active) {
            result = (cudaError_t)rt_drivers[0].cuDevicePrimaryCtxRetain(&primaries[device],
                                                                         device);
        }
        if (result == cudaSuccess && current != primaries[device]) {
            result = (cudaError_t)rt_drivers[0].cuCtxSetCurrent(primaries[device]);
        }
    }
    pthread_mutex_unlock(&primary_mutex);
    return result;
}

cudaError_t rt_enter(void)
{
    cudaError_t result = rt_init();

    return result == cudaSuccess ? make_current(current_device, false) : result;
}

cudaError_t rt_reset(int device)
{
    pthread_mutex_lock(&primary_mutex);
    cudaError_t result = (cudaError_t)rt_drivers[0].cuDevicePrimaryCtxReset(device);
    pthread_mutex_unlock(&primary_mutex);
    return result;
}

cudaError_t rt_cudaSetDevice(int device)
{
    cudaError_t result = rt_init();

    if (result != cudaSuccess) {
        return result;
    }
    if (device < 0 || device >= device_count) {
        return cudaErrorInvalidDevice;
    }
    current_device = device;
    return make_current(device, true);
}

cudaError_t rt_cudaGetDevice(int *device)
{
    CUcontext current = NULL;
    cudaError_t result = rt_init();

    if (result != cudaSuccess || device == NULL) {
        return result != cudaSuccess ? result : cudaErrorInvalidValue;
    }
    *device = current_device;
    rt_drivers[0].cuCtxGetCurrent(&current);
    if (current != NULL) {
        CUdevice of_context;
        if (rt_drivers[0].cuCtxGetDevice(&of_context) == CUDA_SUCCESS) {
            *device = of_context;
        }
    }
    return cudaSuccess;
}
