/* SPDX-License-Identifier: MIT */
#include "module.h"

#include "builtin.h"
#include "call.h"
#include "config.h"
#include "context.h"
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

/* Modules and their kernels are never freed: a stale handle can be told. */
static struct CUmod_st *newest;

struct CUmod_st *sim_module_of(const void *handle)
{
    struct CUmod_st *module = (struct CUmod_st *)handle;

    return module != NULL && module->magic == SIM_MODULE_MAGIC ? module : NULL;
}

struct sim_kernel *sim_kernel_of(const void *handle)
{
    struct sim_kernel *kernel = (struct sim_kernel *)handle;

    return kernel != NULL && kernel->magic == SIM_KERNEL_MAGIC ? kernel : NULL;
}

static CUresult load(struct CUmod_st **module_out, const void *code)
{
    if (module_out == NULL || code == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct CUmod_st *module = calloc(1, sizeof(*module));
    module->magic = SIM_MODULE_MAGIC;
    module->older = newest;
    newest = module;
    sim_image_open(&module->image, code);
    *module_out = module;
    return CUDA_SUCCESS;
}

/* Kernels stay readable after the unload, so that a launch of one can be refused. */
static CUresult unload(struct CUmod_st *module)
{
    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (struct sim_kernel *kernel = module->kernels; kernel != NULL; kernel = kernel->next) {
        kernel->magic = 0;
    }
    module->magic = 0;
    return CUDA_SUCCESS;
}

static void describe(struct sim_kernel *kernel)
{
    int architecture = kernel->module->image.architecture;

    architecture = architecture != 0 ? architecture : 80;
    kernel->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    kernel->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
    kernel->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = architecture;
    kernel->attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = architecture;
    kernel->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
    kernel->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
}

static CUresult get_kernel(struct CUmod_st *module, const char *name,
                           struct sim_kernel **kernel_out)
{
    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (kernel_out == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_kernel *kernel = module->kernels;
    while (kernel != NULL && strcmp(kernel->name, name) != 0) {
        kernel = kernel->next;
    }
    if (kernel == NULL) {
        if (!sim_image_has_kernel(&module->image, name)) {
            return CUDA_ERROR_NOT_FOUND;
        }
        kernel = calloc(1, sizeof(*kernel));
        kernel->magic = SIM_KERNEL_MAGIC;
        kernel->name = strdup(name);
        kernel->module = module;
        kernel->builtin = sim_builtin_find(name);
        kernel->parameter_count = kernel->builtin != NULL && kernel->builtin->parameter_count >= 0
                                      ? sim_builtin_parameters(kernel->builtin, kernel->parameters)
                                      : sim_image_parameters(&module->image, name,
                                                             kernel->parameters);
        describe(kernel);
        kernel->next = module->kernels;
        module->kernels = kernel;
    }
    *kernel_out = kernel;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleLoadData(CUmodule *module, const void *image)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    return result == CUDA_SUCCESS ? load(module, image) : result;
}

CUresult sim_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
                                CUjit_option *options, void **optionValues)
{
    (void)numOptions;
    (void)options;
    (void)optionValues;
    return sim_cuModuleLoadData(module, image);
}

CUresult sim_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
    return sim_cuModuleLoadData(module, fatCubin);
}

CUresult sim_cuModuleUnload(CUmodule hmod)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    return result == CUDA_SUCCESS ? unload(sim_module_of(hmod)) : result;
}

CUresult sim_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    return get_kernel(sim_module_of(hmod), name, (struct sim_kernel **)hfunc);
}

CUresult sim_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
    struct CUmod_st *module = sim_module_of(mod);

    if (count == NULL || module == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = 0;
    for (struct sim_kernel *kernel = module->kernels; kernel != NULL; kernel = kernel->next) {
        ++*count;
    }
    return CUDA_SUCCESS;
}

/* A library needs no context. */
CUresult sim_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
                               void **jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption *libraryOptions, void **libraryOptionValues,
                               unsigned int numLibraryOptions)
{
    (void)jitOptions;
    (void)jitOptionsValues;
    (void)numJitOptions;
    (void)libraryOptions;
    (void)libraryOptionValues;
    (void)numLibraryOptions;
    return sim_is_initialized ? load((struct CUmod_st **)library, code)
                              : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult sim_cuLibraryUnload(CUlibrary library)
{
    return unload(sim_module_of(library));
}

CUresult sim_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    return get_kernel(sim_module_of(library), name, (struct sim_kernel **)pKernel);
}

CUresult sim_cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
    if (pMod == NULL || sim_module_of(library) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pMod = (CUmodule)library;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    if (pFunc == NULL || sim_kernel_of(kernel) == NULL) {
        return pFunc == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    *pFunc = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetName(const char **name, CUkernel hfunc)
{
    struct sim_kernel *kernel = sim_kernel_of(hfunc);

    if (name == NULL || kernel == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *name = kernel->name;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetName(const char **name, CUfunction hfunc)
{
    return sim_cuKernelGetName(name, (CUkernel)hfunc);
}

CUresult sim_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
    struct sim_kernel *kernel = sim_kernel_of(hfunc);

    if (hmod == NULL || kernel == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *hmod = kernel->module;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
    struct sim_kernel *kernel = sim_kernel_of(hfunc);

    if (kernel == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (pi == NULL || (unsigned)attrib >= CU_FUNC_ATTRIBUTE_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pi = kernel->attributes[attrib];
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
    struct sim_kernel *kernel = sim_kernel_of(hfunc);

    if (kernel == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if ((unsigned)attrib >= CU_FUNC_ATTRIBUTE_MAX ||
        attrib < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    kernel->attributes[attrib] = value;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel,
                                  CUdevice dev)
{
    (void)dev;
    return sim_cuFuncGetAttribute(pi, attrib, (CUfunction)kernel);
}

CUresult sim_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel,
                                  CUdevice dev)
{
    (void)dev;
    return sim_cuFuncSetAttribute((CUfunction)kernel, attrib, val);
}

CUresult sim_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
    (void)config;
    return sim_kernel_of(hfunc) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
                                size_t *paramSize)
{
    struct sim_kernel *kernel = sim_kernel_of(func);

    if (kernel == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (kernel->parameter_count < 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (paramOffset == NULL || paramIndex >= (size_t)kernel->parameter_count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *paramOffset = kernel->parameters[paramIndex].offset;
    if (paramSize != NULL) {
        *paramSize = kernel->parameters[paramIndex].size_bytes;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
                                  size_t *paramSize)
{
    return sim_cuFuncGetParamInfo((CUfunction)kernel, paramIndex, paramOffset, paramSize);
}

static CUresult list_kernels(const struct CUmod_st *module, void **kernels, unsigned room)
{
    unsigned count = 0;

    if (module == NULL || kernels == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (struct sim_kernel *kernel = module->kernels; kernel != NULL && count < room;
         kernel = kernel->next) {
        kernels[count++] = kernel;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                        CUmodule mod)
{
    return list_kernels(sim_module_of(mod), (void **)functions, numFunctions);
}

CUresult sim_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
    return sim_cuModuleGetFunctionCount(count, (CUmodule)lib);
}

CUresult sim_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    return list_kernels(sim_module_of(lib), (void **)kernels, numKernels);
}

CUresult sim_cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
    struct sim_kernel *found = sim_kernel_of(kernel);

    if (pLib == NULL || found == NULL) {
        return pLib == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    *pLib = (CUlibrary)found->module;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
    (void)dev;
    return sim_cuFuncSetCacheConfig((CUfunction)kernel, config);
}

/* Every function there is has been loaded. */
CUresult sim_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    if (state == NULL || sim_kernel_of(function) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncLoad(CUfunction function)
{
    return sim_kernel_of(function) == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}
