/* SPDX-License-Identifier: MIT */
/* Arrays, plain and in levels. */
#include "rule.h"

#include <string.h>

static char *allocate(size_t bytes)
{
    void *p;

    OK(cudaMalloc(&p, bytes));
    return p;
}

static cudaArray_t new_array(size_t width, size_t height)
{
    struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0,
                                                              cudaChannelFormatKindFloat);
    cudaArray_t array;

    OK(cudaMallocArray(&array, &desc, width, height, 0));
    return array;
}

RULE(array, planes_go_in_and_out, "cuda_runtime_api.h, cudaMemcpy2DToArray")
{
    float in[4][8];
    float out[4][8];
    cudaArray_t array = new_array(8, 4);

    memset(out, 0, sizeof(out));
    for (int i = 0; i < 32; i++) {
        in[i / 8][i % 8] = (float)i;
    }
    OK(cudaMemcpy2DToArray(array, 0, 0, in, 32, 32, 4, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DFromArray(out, 32, array, 0, 0, 32, 4, cudaMemcpyDeviceToHost));
    CHECK(memcmp(in, out, sizeof(in)) == 0);
    OK(cudaMemcpy2DFromArray(out, 32, array, 4, 2, 4, 1, cudaMemcpyDeviceToHost));
    CHECK(out[0][0] == in[2][1]);
    OK(cudaFreeArray(array));
}

RULE(array, copies_end_with_it, "assumed")
{
    float in[8] = {0};

    CHECK_EQ(cudaMemcpy2DToArray(new_array(8, 1), 4, 0, in, 32, 32, 1, cudaMemcpyHostToDevice),
             cudaErrorInvalidValue);
}

RULE(array, volumes_count_in_elements, "cuda_runtime_api.h, cudaMemcpy3D")
{
    struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 32, 0, 0,
                                                              cudaChannelFormatKindUnsigned);
    struct cudaExtent extent = {2, 2, 2};
    struct cudaMemcpy3DParms copy = {.extent = extent, .kind = cudaMemcpyHostToDevice};
    unsigned in[2][2][4];
    unsigned out[4] = {0};

    for (size_t i = 0; i < sizeof(in); i++) {
        ((char *)in)[i] = (char)i;
    }
    OK(cudaMalloc3DArray(&copy.dstArray, &desc, extent, 0));
    copy.srcPtr = (struct cudaPitchedPtr){in, 16, 2, 2};
    OK(cudaMemcpy3D(&copy));
    copy = (struct cudaMemcpy3DParms){.srcArray = copy.dstArray,
                                      .srcPos = {1, 1, 1},
                                      .dstPtr = {out, 16, 2, 1},
                                      .extent = {1, 1, 1},
                                      .kind = cudaMemcpyDeviceToHost};
    OK(cudaMemcpy3D(&copy));
    CHECK_EQ(out[0], in[1][1][2]);
    CHECK_EQ(out[1], in[1][1][3]);
    CHECK_EQ(out[2], 0);
}

RULE(array, it_describes_itself, "cuda_runtime_api.h, cudaArrayGetInfo")
{
    struct cudaChannelFormatDesc desc;
    struct cudaExtent extent;
    unsigned flags = 7;

    OK(cudaArrayGetInfo(&desc, &extent, &flags, new_array(8, 4)));
    CHECK_EQ(desc.x, 32);
    CHECK_EQ(desc.f, cudaChannelFormatKindFloat);
    CHECK_EQ(extent.width, 8);
    CHECK_EQ(extent.height, 4);
    CHECK_EQ(flags, 0);
}

RULE(array, it_takes_memory_and_gives_it_back, "cuda.h, cuArrayCreate")
{
    size_t before;
    size_t during;
    size_t after;
    size_t total;

    OK(cudaMemGetInfo(&before, &total));
    cudaArray_t array = new_array(1024, 1024);
    OK(cudaMemGetInfo(&during, &total));
    CHECK(before - during >= 4u << 20);
    OK(cudaFreeArray(array));
    OK(cudaMemGetInfo(&after, &total));
    CHECK_EQ(after, before);
}

RULE(array, it_must_have_a_width_and_a_format, "cuda.h, cuArrayCreate")
{
    CUDA_ARRAY_DESCRIPTOR description = {.Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUarray array;

    rule_start(0);
    CHECK_EQ(cuArrayCreate(&array, &description), CUDA_ERROR_INVALID_VALUE);
    description.Width = 8;
    description.NumChannels = 3;
    CHECK_EQ(cuArrayCreate(&array, &description), CUDA_ERROR_INVALID_VALUE);
}

RULE(array, textures_are_objects, "cuda_runtime_api.h, cudaCreateTextureObject")
{
    struct cudaResourceDesc resource = {.resType = cudaResourceTypeArray};
    struct cudaTextureDesc texture = {0};
    cudaTextureObject_t first = 0;
    cudaTextureObject_t second = 0;

    resource.res.array.array = new_array(8, 4);
    OK(cudaCreateTextureObject(&first, &resource, &texture, NULL));
    OK(cudaCreateTextureObject(&second, &resource, &texture, NULL));
    CHECK(first != second);
    OK(cudaDestroyTextureObject(first));
    OK(cudaDestroyTextureObject(second));
    CHECK_EQ(cudaCreateTextureObject(&first, NULL, &texture, NULL), cudaErrorInvalidValue);
}

RULE(array, copies_of_it_are_ordered_like_others, "guide, Streams", RULE_WRONG)
{
    cudaStream_t first;
    cudaStream_t second;
    cudaArray_t array = new_array(8, 1);
    char *p = allocate(32);
    char *q = allocate(32);

    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaMemcpy2DToArrayAsync(array, 0, 0, p, 32, 32, 1, cudaMemcpyDeviceToDevice, first));
    CHECK_EQ(cudaMemcpy2DToArrayAsync(array, 0, 0, q, 32, 32, 1, cudaMemcpyDeviceToDevice, second),
             cudaErrorIllegalAddress);
}

/* Deprecated, and still what programs call. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
RULE(array, rows_go_in_and_out_in_a_stream, "cuda_runtime_api.h, cudaMemcpyToArrayAsync")
{
    float in[2][8];
    float out[2][8];
    cudaArray_t array = new_array(8, 2);
    cudaArray_t other = new_array(8, 2);
    cudaStream_t stream;

    for (int i = 0; i < 16; i++) {
        in[i / 8][i % 8] = (float)i;
    }
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMemcpyToArrayAsync(array, 0, 0, in, sizeof(in), cudaMemcpyHostToDevice, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpyArrayToArray(other, 0, 0, array, 0, 0, sizeof(in), cudaMemcpyDeviceToDevice));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpyFromArrayAsync(out, other, 0, 0, sizeof(out), cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(memcmp(in, out, sizeof(in)) == 0);
    OK(cudaMemcpy2DArrayToArray(other, 0, 0, array, 4, 1, 8, 1, cudaMemcpyDeviceToDevice));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpyFromArray(out, other, 0, 0, 32, cudaMemcpyDeviceToHost));
    CHECK(out[0][0] == 9 && out[0][1] == 10 && out[0][2] == 2);
}
#pragma GCC diagnostic pop

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

RULE(mipmap, the_runtime_has_them_too, "cuda_runtime_api.h, cudaMallocMipmappedArray")
{
    struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0,
                                                              cudaChannelFormatKindFloat);
    struct cudaChannelFormatDesc found;
    struct cudaExtent extent = {16, 8, 0};
    cudaMipmappedArray_t mipmap;
    cudaArray_t level;

    OK(cudaMallocMipmappedArray(&mipmap, &desc, extent, 2, 0));
    OK(cudaGetMipmappedArrayLevel(&level, mipmap, 1));
    OK(cudaArrayGetInfo(&found, &extent, NULL, level));
    CHECK_EQ(extent.width, 8);
    CHECK_EQ(extent.height, 4);
    CHECK_EQ(found.x, 32);
    OK(cudaFreeMipmappedArray(mipmap));
}
