/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include "rt_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
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

#if RT_RELEASE == 11
int rt_version(void)
{
    int major = 11;
    int minor = 8;
    const char *text = getenv("SIMCUDART_RELEASE");

    return text == NULL || sscanf(text, "%d.%d", &major, &minor) == 2 ? major * 1000 + minor * 10
                                                                      : 11080;
}
#else
int rt_version(void)
{
    return RT_RELEASE == 12 ? 12080 : CUDART_VERSION;
}
#endif

struct asked {
    const char *name;
    const char *form;
    int version;
    cuuint64_t flags;
    void *function;
};

/* What nobody has seen of release 12 is not made up: it asks for what this runtime needs. That of
 * 11 asks for what 13.0 asks for and was there by then. */
#define ASK(name, version, flags, form) {#name, #form, version, flags, NULL},
static struct asked asked[] = {
#if RT_RELEASE != 12
#include "asked.def"
#endif
    {"", "", 0, 0, NULL},
};
#undef ASK

/* Which forms are asked for, and how: the release, or an older driver's. */
static int way;
static void *driver_library;
static PFN_cuGetProcAddress_v11030 first_resolver;

static void *ask(const char *name, int version, cuuint64_t flags, const char *form)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult status;
    CUresult result;

    if (way < 11030) {
        return version <= way ? dlsym(driver_library, form) : NULL;
    }
    if (way < 12000) {
        result = first_resolver(name, &function, version, flags);
    } else {
        result = rt_drivers[0].cuGetProcAddress(name, &function, version, flags, &status);
    }
    return result == CUDA_SUCCESS ? function : NULL;
}

/* As NVIDIA's: goes on with the resolver that the resolver names. */
static void ask_for_all(void)
{
    ask("", 0, 0, "");
    for (struct asked *row = asked; row->version != 0; row++) {
        row->function = ask(row->name, row->version, row->flags, row->form);
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
    return ask(name, version, flags, name);
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

/* As with a compatibility package, tests of older drivers may go on. */
static bool is_compatible(void)
{
    return getenv("SIMCUDART_COMPAT") != NULL;
}

static cudaError_t find_resolver(void)
{
    driver_library = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver_library == NULL) {
        return cudaErrorInsufficientDriver;
    }
    way = rt_version();
    if (is_compatible()) {
        int version = way;
        PFN_cuDriverGetVersion_v2020 get_version = (PFN_cuDriverGetVersion_v2020)dlsym(
            driver_library, "cuDriverGetVersion");
        way = get_version != NULL && get_version(&version) == CUDA_SUCCESS && version < way
                  ? version
                  : way;
    }
    if (way < 11030) {
        return cudaSuccess;
    }
    void *resolver = dlsym(driver_library,
                           way < 12000 ? "cuGetProcAddress" : "cuGetProcAddress_v2");
    first_resolver = (PFN_cuGetProcAddress_v11030)resolver;
    rt_drivers[0].cuGetProcAddress = (PFN_cuGetProcAddress_v12000)resolver;
    return resolver != NULL ? cudaSuccess : cudaErrorInsufficientDriver;
}

static cudaError_t find_driver(void)
{
    int version = 0;
    cudaError_t found = find_resolver();

    if (found != cudaSuccess) {
        return found;
    }
    ask_for_all();
    fill(&rt_drivers[0], false);
    fill(&rt_drivers[1], true);
    if (way < 12000) {
        rt_drivers[0].cuGetProcAddress = NULL;
    }
    rt_drivers[1].cuGetProcAddress = rt_drivers[0].cuGetProcAddress;
    if (rt_drivers[0].cuDriverGetVersion == NULL || rt_drivers[0].cuInit == NULL) {
        return cudaErrorInsufficientDriver;
    }
    rt_drivers[0].cuDriverGetVersion(&version);
    if (version / 1000 < rt_version() / 1000 && !is_compatible()) {
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

CUcontext rt_current_context(void)
{
    CUcontext context = NULL;

    if (rt_enter() == cudaSuccess) {
        rt_drivers[0].cuCtxGetCurrent(&context);
    }
    return context;
}
