/* SPDX-License-Identifier: MIT */
/* Code that a program loads itself. */
#include "driver.h"
#include "rt_api.h"

cudaError_t rt_cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                   enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                   unsigned int numJitOptions,
                                   enum cudaLibraryOption *libraryOptions,
                                   void **libraryOptionValues, unsigned int numLibraryOptions)
{
    RT_CALL(cuLibraryLoadData, library, code, (CUjit_option *)jitOptions, jitOptionsValues,
            numJitOptions, (CUlibraryOption *)libraryOptions, libraryOptionValues,
            numLibraryOptions);
}

cudaError_t rt_cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
                                       enum cudaJitOption *jitOptions, void **jitOptionsValues,
                                       unsigned int numJitOptions,
                                       enum cudaLibraryOption *libraryOptions,
                                       void **libraryOptionValues, unsigned int numLibraryOptions)
{
    RT_CALL(cuLibraryLoadFromFile, library, fileName, (CUjit_option *)jitOptions, jitOptionsValues,
            numJitOptions, (CUlibraryOption *)libraryOptions, libraryOptionValues,
            numLibraryOptions);
}

cudaError_t rt_cudaLibraryUnload(cudaLibrary_t library)
{
    RT_CALL(cuLibraryUnload, library);
}

cudaError_t rt_cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library, const char *name)
{
    RT_CALL(cuLibraryGetKernel, pKernel, library, name);
}

cudaError_t rt_cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib)
{
    RT_CALL(cuLibraryGetKernelCount, count, lib);
}

cudaError_t rt_cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int numKernels,
                                           cudaLibrary_t lib)
{
    RT_CALL(cuLibraryEnumerateKernels, kernels, numKernels, lib);
}

cudaError_t rt_cudaLibraryGetGlobal(void **dptr, size_t *bytes, cudaLibrary_t library,
                                    const char *name)
{
    RT_CALL(cuLibraryGetGlobal, (CUdeviceptr *)dptr, bytes, library, name);
}

cudaError_t rt_cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr,
                                               int value, int device)
{
    RT_CALL(cuKernelSetAttribute, (CUfunction_attribute)attr, value, kernel, device);
}
