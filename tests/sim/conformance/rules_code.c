/* SPDX-License-Identifier: MIT */
/* Linking, code from files, and mipmapped arrays. */
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

static CUDA_ARRAY3D_DESCRIPTOR plane(size_t width, size_t height)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = width, .Height = height, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
}

RULE(mipmap, sides_are_halved, "guide, Texture and Surface Memory")
{
    CUDA_ARRAY3D_DESCRIPTOR shape = plane(20, 6);
    CUDA_ARRAY3D_DESCRIPTOR found;
    CUmipmappedArray mipmap;
    CUarray level;

    rule_start(0);
    OK(cuMipmappedArrayCreate(&mipmap, &shape, 3));
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 0));
    OK(cuArray3DGetDescriptor(&found, level));
    CHECK(found.Width == 20 && found.Height == 6);
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 2));
    OK(cuArray3DGetDescriptor(&found, level));
    CHECK(found.Width == 5 && found.Height == 1);
    CHECK_EQ(cuMipmappedArrayGetLevel(&level, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
    OK(cuMipmappedArrayDestroy(mipmap));
}

RULE(mipmap, the_number_of_levels_is_cut, "cuda.h, cuMipmappedArrayCreate")
{
    CUDA_ARRAY3D_DESCRIPTOR shape = plane(9, 4);
    CUmipmappedArray mipmap;
    CUarray level;

    rule_start(0);
    OK(cuMipmappedArrayCreate(&mipmap, &shape, 100));
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 3));
    CHECK_EQ(cuMipmappedArrayGetLevel(&level, mipmap, 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuMipmappedArrayDestroy(mipmap));
}

RULE(mipmap, levels_hold_bytes, "cuda.h, cuMipmappedArrayGetLevel")
{
    CUDA_ARRAY3D_DESCRIPTOR shape = plane(8, 8);
    CUmipmappedArray mipmap;
    CUarray level;
    char in[4] = {1, 2, 3, 4};
    char out[4] = {0};

    rule_start(0);
    OK(cuMipmappedArrayCreate(&mipmap, &shape, 2));
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
    OK(cuMemcpyHtoA(level, 0, in, 4));
    OK(cuMemcpyAtoH(out, level, 0, 4));
    CHECK(memcmp(in, out, 4) == 0);
    OK(cuMipmappedArrayDestroy(mipmap));
}

RULE(mipmap, it_ends_as_a_whole, "assumed")
{
    CUDA_ARRAY3D_DESCRIPTOR shape = plane(8, 8);
    CUmipmappedArray mipmap;
    CUarray level;

    rule_start(0);
    OK(cuMipmappedArrayCreate(&mipmap, &shape, 2));
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 0));
    CHECK_EQ(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMipmappedArrayDestroy(mipmap));
    CHECK_EQ(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
}

RULE(mipmap, it_gives_its_memory_back, "cuda.h, cuMipmappedArrayDestroy")
{
    CUDA_ARRAY3D_DESCRIPTOR shape = plane(4096, 4096);
    CUmipmappedArray mipmap;
    size_t before;
    size_t during;
    size_t after;
    size_t total;

    rule_start(0);
    OK(cuMemGetInfo(&before, &total));
    OK(cuMipmappedArrayCreate(&mipmap, &shape, 4));
    OK(cuMemGetInfo(&during, &total));
    CHECK(during + 16 * 1024 * 1024 <= before);
    OK(cuMipmappedArrayDestroy(mipmap));
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(after, before);
}

RULE(copy, volumes_go_from_peer_to_peer, "cuda.h, cuMemcpy3DPeer", 0, "SIMCUDA_DEVICES=2")
{
    CUcontext contexts[2];
    CUdeviceptr p[2];
    CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .WidthInBytes = 16,
                               .Height = 2,
                               .Depth = 1,
                               .srcPitch = 32,
                               .dstPitch = 16};

    for (int i = 0; i < 2; i++) {
        contexts[i] = rule_start(i);
        OK(cuMemAlloc(&p[i], 64));
        OK(cuMemsetD8(p[i], (unsigned char)(i + 1), 64));
        OK(cuCtxSynchronize());
    }
    copy.srcContext = contexts[0];
    copy.srcDevice = p[0];
    copy.dstContext = contexts[1];
    copy.dstDevice = p[1];
    OK(cuMemcpy3DPeer(&copy));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)(p[1] + 16)), 1);
    CHECK_EQ(rule_first_byte((void *)(p[1] + 32)), 2);
}

RULE(pool, a_location_names_it, "cuda.h, cuMemGetDefaultMemPool")
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
    CUmemoryPool by_location;
    CUmemoryPool by_device;

    rule_start(0);
    OK(cuMemGetDefaultMemPool(&by_location, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    OK(cuDeviceGetDefaultMemPool(&by_device, 0));
    CHECK(by_location == by_device);
}
