/* SPDX-License-Identifier: MIT */
#include "symbol.h"

#include "rt_api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <vector_types.h>

#define BUCKETS 1024

struct code {
    struct code *next;
    void *image;
    CUlibrary library;
    bool is_gone;
};

/* A kernel or a variable, by the host address that stands for it. */
struct symbol {
    struct symbol *next;
    const void *host;
    char *name;
    struct code *code;
    size_t size_bytes;
    CUkernel kernel;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *buckets[BUCKETS];

void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **fatCubinHandle);
void __cudaUnregisterFatBinary(void **fatCubinHandle);
void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                            const char *deviceName, int thread_limit, uint3 *tid, uint3 *bid,
                            dim3 *bDim, dim3 *gDim, int *wSize);
void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress,
                       const char *deviceName, int ext, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
                              const char *deviceName, int ext, size_t size, int constant,
                              int global);
void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar,
                           size_t size);
void __cudaRegisterUnifiedTable(void **fatCubinHandle);
char __cudaInitModule(void **fatCubinHandle);
void *__cudaGetProcAddress(const char *name);

static struct symbol **bucket(const void *host)
{
    return &buckets[((uintptr_t)host >> 3) % BUCKETS];
}

static struct symbol *find(const void *host)
{
    struct symbol *symbol = *bucket(host);

    while (symbol != NULL && (symbol->host != host || symbol->code->is_gone)) {
        symbol = symbol->next;
    }
    return symbol;
}

static void add(void **handle, const void *host, const char *name, size_t size)
{
    struct symbol *symbol = calloc(1, sizeof(*symbol));

    symbol->host = host;
    symbol->name = strdup(name);
    symbol->code = (struct code *)handle;
    symbol->size_bytes = size;
    pthread_mutex_lock(&mutex);
    symbol->next = *bucket(host);
    *bucket(host) = symbol;
    pthread_mutex_unlock(&mutex);
}

RT_EXPORT void **__cudaRegisterFatBinary(void *fatCubin)
{
    struct code *code = calloc(1, sizeof(*code));

    code->image = fatCubin;
    return (void **)code;
}

RT_EXPORT void __cudaRegisterFatBinaryEnd(void **fatCubinHandle)
{
    (void)fatCubinHandle;
}

/* At exit the driver may be gone before the program's code, so it is not called. */
RT_EXPORT void __cudaUnregisterFatBinary(void **fatCubinHandle)
{
    pthread_mutex_lock(&mutex);
    ((struct code *)fatCubinHandle)->is_gone = true;
    pthread_mutex_unlock(&mutex);
}

RT_EXPORT void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                                      const char *deviceName, int thread_limit, uint3 *tid,
                                      uint3 *bid, dim3 *bDim, dim3 *gDim, int *wSize)
{
    (void)deviceFun;
    (void)thread_limit;
    (void)tid;
    (void)bid;
    (void)bDim;
    (void)gDim;
    (void)wSize;
    add(fatCubinHandle, hostFun, deviceName, 0);
}

RT_EXPORT void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress,
                                 const char *deviceName, int ext, size_t size, int constant,
                                 int global)
{
    (void)deviceAddress;
    (void)ext;
    (void)constant;
    (void)global;
    add(fatCubinHandle, hostVar, deviceName, size);
}

/* Managed variables live in host memory from the start; a device reads the same bytes. */
RT_EXPORT void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress,
                                        char *deviceAddress, const char *deviceName, int ext,
                                        size_t size, int constant, int global)
{
    (void)fatCubinHandle;
    (void)deviceAddress;
    (void)deviceName;
    (void)ext;
    (void)constant;
    (void)global;
    *hostVarPtrAddress = calloc(1, size);
}

RT_EXPORT void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar,
                                     size_t size)
{
    (void)fatCubinHandle;
    (void)deviceName;
    (void)hostVar;
    (void)size;
}

RT_EXPORT void __cudaRegisterUnifiedTable(void **fatCubinHandle)
{
    (void)fatCubinHandle;
}

RT_EXPORT char __cudaInitModule(void **fatCubinHandle)
{
    (void)fatCubinHandle;
    return 1;
}

RT_EXPORT void *__cudaGetProcAddress(const char *name)
{
    (void)name;
    return NULL;
}

/* Before release 12 code was loaded as modules. Those of the simulated driver serve all contexts.
 */
static bool has_libraries(void)
{
    return rt_driver()->cuLibraryLoadData != NULL;
}

/* Under the mutex. */
static cudaError_t load(struct code *code)
{
    if (code->library != NULL) {
        return cudaSuccess;
    }
    if (!has_libraries()) {
        return (cudaError_t)rt_driver()->cuModuleLoadData((CUmodule *)&code->library, code->image);
    }
    return (cudaError_t)rt_driver()->cuLibraryLoadData(&code->library, code->image, NULL, NULL, 0,
                                                       NULL, NULL, 0);
}

static CUresult get_kernel(struct symbol *symbol)
{
    CUlibrary library = symbol->code->library;

    if (!has_libraries()) {
        return rt_driver()->cuModuleGetFunction((CUfunction *)&symbol->kernel, (CUmodule)library,
                                                symbol->name);
    }
    return rt_driver()->cuLibraryGetKernel(&symbol->kernel, library, symbol->name);
}

static CUresult get_global(const struct symbol *symbol, CUdeviceptr *address_out, size_t *size_out)
{
    CUlibrary library = symbol->code->library;

    if (!has_libraries()) {
        return rt_driver()->cuModuleGetGlobal(address_out, size_out, (CUmodule)library,
                                              symbol->name);
    }
    return rt_driver()->cuLibraryGetGlobal(address_out, size_out, library, symbol->name);
}

cudaError_t rt_symbol_kernel(const void *function, CUkernel *kernel_out)
{
    cudaError_t result = rt_enter();

    if (result != cudaSuccess) {
        return result;
    }
    pthread_mutex_lock(&mutex);
    struct symbol *symbol = find(function);
    if (symbol == NULL || symbol->size_bytes != 0) {
        result = cudaErrorInvalidDeviceFunction;
    } else if (symbol->kernel == NULL) {
        result = load(symbol->code);
        if (result == cudaSuccess) {
            result = (cudaError_t)get_kernel(symbol);
        }
    }
    if (result == cudaSuccess) {
        *kernel_out = symbol->kernel;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

static cudaError_t locate(const void *host, CUdeviceptr *address_out, size_t *size_out)
{
    cudaError_t result = rt_enter();

    if (result != cudaSuccess) {
        return result;
    }
    pthread_mutex_lock(&mutex);
    struct symbol *symbol = find(host);
    if (symbol == NULL || symbol->size_bytes == 0) {
        result = cudaErrorInvalidSymbol;
    } else {
        result = load(symbol->code);
    }
    if (result == cudaSuccess) {
        result = (cudaError_t)get_global(symbol, address_out, size_out);
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

cudaError_t rt_symbol_address(const void *symbol, size_t offset, size_t count, char **address_out)
{
    CUdeviceptr address;
    size_t size;
    cudaError_t result = locate(symbol, &address, &size);

    if (result == cudaSuccess && (offset > size || count > size - offset)) {
        result = cudaErrorInvalidValue;
    }
    if (result == cudaSuccess) {
        *address_out = (char *)address + offset;
    }
    return result;
}

cudaError_t rt_cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
    return rt_symbol_address(symbol, 0, 0, (char **)devPtr);
}

cudaError_t rt_cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr address;

    return locate(symbol, &address, size);
}

const void *rt_symbol_of_kernel(CUkernel kernel)
{
    const void *host = kernel;

    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (const struct symbol *symbol = buckets[i]; symbol != NULL; symbol = symbol->next) {
            host = symbol->kernel == kernel && !symbol->code->is_gone ? symbol->host : host;
        }
    }
    pthread_mutex_unlock(&mutex);
    return host;
}
