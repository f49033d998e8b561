/* SPDX-License-Identifier: MIT */
/* Code: linking, files, libraries. */
#include "rule.h"

#include <string.h>
#include <unistd.h>

static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                           ".visible .entry empty() { ret; }\n";

RULE(link, text_becomes_a_module, "cuda.h, cuLinkComplete")
{
    CUlinkState state;
    CUmodule module;
    CUfunction function;
    void *image;
    size_t bytes;

    rule_start(0);
    OK(cuLinkCreate(0, NULL, NULL, &state));
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)text, sizeof(text), "text", 0, NULL, NULL));
    OK(cuLinkComplete(state, &image, &bytes));
    CHECK(image != NULL && bytes != 0);
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state));
    OK(cuModuleGetFunction(&function, module, "empty"));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
}

RULE(link, input_must_be_there, "cuda.h, cuLinkAddData")
{
    CUlinkState state;

    rule_start(0);
    OK(cuLinkCreate(0, NULL, NULL, &state));
    CHECK_EQ(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/nowhere/at/all", 0, NULL, NULL),
             CUDA_ERROR_FILE_NOT_FOUND);
    CHECK_EQ(
        cuLinkAddData(state, CU_JIT_INPUT_CUBIN, (void *)text, sizeof(text), "text", 0, NULL, NULL),
        CUDA_ERROR_INVALID_IMAGE);
}

RULE(link, what_comes_out_has_the_kernels_of_all, "cuda.h, cuLinkComplete")
{
    static const char more[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                               ".visible .entry second() { ret; }\n";
    CUlinkState state;
    CUmodule module;
    CUfunction function;
    void *image;
    size_t bytes;

    rule_start(0);
    OK(cuLinkCreate(0, NULL, NULL, &state));
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)text, sizeof(text), "text", 0, NULL, NULL));
    OK(cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)more, sizeof(more), "more", 0, NULL, NULL));
    OK(cuLinkComplete(state, &image, &bytes));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(state));
    OK(cuModuleGetFunction(&function, module, "empty"));
    OK(cuModuleGetFunction(&function, module, "second"));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
    CHECK_EQ(cuModuleGetFunction(&function, module, "third"), CUDA_ERROR_NOT_FOUND);
}

RULE(link, modules_come_from_files, "cuda.h, cuModuleLoad")
{
    char path[] = "/tmp/rule-code-XXXXXX";
    CUmodule module;
    CUfunction function;
    int fd = mkstemp(path);

    rule_start(0);
    CHECK(fd >= 0 && write(fd, text, sizeof(text)) == sizeof(text));
    close(fd);
    CUresult result = cuModuleLoad(&module, path);
    unlink(path);
    CHECK_EQ(result, CUDA_SUCCESS);
    OK(cuModuleGetFunction(&function, module, "empty"));
    CHECK_EQ(cuModuleLoad(&module, "/nowhere/at/all"), CUDA_ERROR_FILE_NOT_FOUND);
}

RULE(library, the_runtime_loads_code, "cuda_runtime_api.h, cudaLibraryLoadData")
{
    cudaLibrary_t library;
    cudaKernel_t kernel;

    OK(cudaFree(NULL));
    OK(cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(cudaLibraryGetKernel(&kernel, library, "empty"));
    OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaLibraryUnload(library));
}
