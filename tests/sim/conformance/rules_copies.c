/* SPDX-License-Identifier: MIT */
/* Copies and sets. */
#include "rule.h"

#include <string.h>

static char *allocate(size_t bytes)
{
    void *p;

    OK(cudaMalloc(&p, bytes));
    return p;
}

static void count_up(char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        p[i] = (char)i;
    }
}

RULE(copy, bytes_go_there_and_back, "cuda.h, cuMemcpyHtoD")
{
    char host[256];
    char back[256] = {0};
    char *p = allocate(256);

    count_up(host, sizeof(host));
    OK(cudaMemcpy(p, host, 256, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(back, p, 256, cudaMemcpyDeviceToHost));
    CHECK(memcmp(host, back, 256) == 0);
}

RULE(copy, bytes_go_from_device_to_device, "cuda.h, cuMemcpyDtoD")
{
    char host[256];
    char back[256] = {0};
    char *p = allocate(256);
    char *q = allocate(256);

    count_up(host, sizeof(host));
    OK(cudaMemcpy(p, host, 256, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(q, p, 256, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(back, q, 256, cudaMemcpyDefault));
    CHECK(memcmp(host, back, 256) == 0);
}

RULE(copy, the_host_copies_to_itself, "cuda_runtime_api.h, cudaMemcpy")
{
    char from[16];
    char to[16] = {0};

    count_up(from, sizeof(from));
    OK(cudaMemcpy(to, from, sizeof(to), cudaMemcpyHostToHost));
    CHECK(memcmp(to, from, sizeof(to)) == 0);
}

RULE(copy, no_bytes_are_fine, "assumed")
{
    char byte;

    OK(cudaMemcpy(&byte, allocate(16), 0, cudaMemcpyDeviceToHost));
    OK(cudaMemset(allocate(16), 1, 0));
}

RULE(copy, null_is_an_invalid_value, "cuda.h, cuMemcpyHtoD")
{
    CHECK_EQ(cudaMemcpy(NULL, allocate(16), 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    CHECK_EQ(cudaMemset(NULL, 1, 4), cudaErrorInvalidValue);
}

RULE(copy, a_pageable_source_may_change_at_once, "api, API synchronization behavior")
{
    struct rule_gate gate;
    cudaStream_t stream;
    char *p = allocate(16);
    char host = 1;

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    rule_close(&gate, stream);
    OK(cudaMemcpyAsync(p, &host, 1, cudaMemcpyHostToDevice, stream));
    host = 2;
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 1);
}

RULE(copy, a_pageable_target_is_ready_on_return, "api, API synchronization behavior")
{
    struct rule_gate gate;
    cudaStream_t stream;
    char *p = allocate(16);
    char host = 0;

    OK(cudaMemset(p, 3, 16));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    rule_close(&gate, stream);
    rule_open_soon(&gate);
    OK(cudaMemcpyAsync(&host, p, 1, cudaMemcpyDeviceToHost, stream));
    CHECK(rule_is_open(&gate));
    CHECK_EQ(host, 3);
}

RULE(copy, pinned_memory_is_read_later, "api, API synchronization behavior")
{
    struct rule_gate gate;
    cudaStream_t stream;
    char *p = allocate(16);
    char *pinned;

    OK(cudaMallocHost((void **)&pinned, 1));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    rule_close(&gate, stream);
    *pinned = 1;
    OK(cudaMemcpyAsync(p, pinned, 1, cudaMemcpyHostToDevice, stream));
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    *pinned = 2;
    rule_open(&gate);
    OK(cudaStreamSynchronize(stream));
    CHECK_EQ(rule_first_byte(p), 2);
}

RULE(copy, a_plain_copy_to_the_host_waits, "api, API synchronization behavior")
{
    struct rule_gate gate;
    cudaStream_t stream;
    char *p = allocate(16);
    char *pinned;

    OK(cudaMallocHost((void **)&pinned, 1));
    OK(cudaStreamCreate(&stream));
    rule_close(&gate, stream);
    rule_open_soon(&gate);
    OK(cudaMemcpy(pinned, p, 1, cudaMemcpyDeviceToHost));
    CHECK(rule_is_open(&gate));
}

RULE(copy, between_devices_the_host_does_not_wait, "api, API synchronization behavior")
{
    struct rule_gate gate;
    char *p = allocate(16);
    char *q = allocate(16);

    rule_close(&gate, NULL);
    OK(cudaMemcpy(q, p, 16, cudaMemcpyDeviceToDevice));
    CHECK(!rule_is_open(&gate));
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(copy, a_set_does_not_wait, "api, API synchronization behavior")
{
    struct rule_gate gate;
    char *p = allocate(16);

    rule_close(&gate, NULL);
    OK(cudaMemset(p, 1, 16));
    CHECK(!rule_is_open(&gate));
    rule_open(&gate);
    OK(cudaDeviceSynchronize());
}

RULE(copy, sets_fill_elements, "cuda.h, cuMemsetD32")
{
    unsigned words[4] = {0};
    unsigned short halves[4] = {0};
    CUdeviceptr p = (CUdeviceptr)allocate(64);

    OK(cuMemsetD32(p, 0x12345678, 4));
    OK(cuMemcpyDtoH(words, p, sizeof(words)));
    CHECK_EQ(words[3], 0x12345678);
    OK(cuMemsetD16(p, 0xabcd, 4));
    OK(cuMemcpyDtoH(halves, p, sizeof(halves)));
    CHECK_EQ(halves[3], 0xabcd);
}

RULE(copy, wide_sets_must_be_aligned, "cuda.h, cuMemsetD32")
{
    CUdeviceptr p = (CUdeviceptr)allocate(64);

    CHECK_EQ(cuMemsetD32(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemsetD16(p + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

RULE(copy, planes_keep_their_pitch, "cuda.h, cuMemcpy2D")
{
    char host[4][10];
    char back[4][10];
    char *p;
    size_t pitch;

    OK(cudaMallocPitch((void **)&p, &pitch, 10, 4));
    memset(host, 3, sizeof(host));
    OK(cudaMemcpy2D(p, pitch, host, 10, 10, 4, cudaMemcpyHostToDevice));
    OK(cudaMemset2D(p + 5, pitch, 9, 5, 4));
    OK(cudaMemcpy2D(back, 10, p, pitch, 10, 4, cudaMemcpyDeviceToHost));
    CHECK_EQ(back[3][4], 3);
    CHECK_EQ(back[3][5], 9);
    CHECK_EQ(back[0][9], 9);
}

RULE(copy, a_pitch_is_not_below_the_width, "cuda_runtime_api.h, cudaMemcpy2D")
{
    char back[100];
    char *p = allocate(2048);

    CHECK_EQ(cudaMemcpy2D(back, 5, p, 512, 10, 4, cudaMemcpyDeviceToHost),
             cudaErrorInvalidPitchValue);
}

RULE(copy, volumes_keep_their_slices, "cuda.h, cuMemcpy3D")
{
    char host[2][3][8];
    char back[2][3][8] = {0};
    char *p = allocate(sizeof(host));
    struct cudaMemcpy3DParms copy = {
        .srcPtr = {host, 8, 8, 3}, .dstPtr = {p, 8, 8, 3}, .extent = {8, 3, 2}};

    count_up((char *)host, sizeof(host));
    copy.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&copy));
    copy.srcPtr.ptr = p;
    copy.dstPtr.ptr = back;
    copy.srcPos.z = 1;
    copy.extent.depth = 1;
    copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&copy));
    CHECK(memcmp(back[0], host[1], sizeof(host[1])) == 0);
    CHECK_EQ(back[1][0][0], 0);
}

RULE(copy, managed_and_pinned_memory_take_part, "guide, Unified Virtual Address Space")
{
    char *managed;
    char *pinned;

    OK(cudaMallocManaged((void **)&managed, 16, cudaMemAttachGlobal));
    OK(cudaMallocHost((void **)&pinned, 16));
    memset(managed, 4, 16);
    OK(cudaMemcpy(pinned, managed, 16, cudaMemcpyDefault));
    CHECK_EQ(pinned[15], 4);
}

RULE(copy, kernels_see_what_was_copied, "guide, Streams")
{
    int host[4] = {1, 2, 3, 4};
    int *p = (int *)allocate(sizeof(host));
    int *q = (int *)allocate(sizeof(host));

    OK(cudaMemcpy(p, host, sizeof(host), cudaMemcpyHostToDevice));
    OK(launch_add(p, 4, 10, NULL));
    OK(launch_copy(q, p, sizeof(host), NULL));
    OK(cudaMemcpy(host, q, sizeof(host), cudaMemcpyDeviceToHost));
    CHECK_EQ(host[0], 11);
    CHECK_EQ(host[3], 14);
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

    count_up((char *)in, sizeof(in));
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
