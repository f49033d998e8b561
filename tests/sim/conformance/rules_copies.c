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

static struct cudaPitchedPtr make_pitched(void *p, size_t pitch, size_t width, size_t height)
{
    struct cudaPitchedPtr pitched = {p, pitch, width, height};

    return pitched;
}

RULE(copy, volumes_are_set_in_slices, "cuda_runtime_api.h, cudaMemset3DAsync")
{
    char *p = allocate(64);
    /* Rows of 4 bytes, 4 rows in a slice. */
    struct cudaPitchedPtr volume = make_pitched(p, 4, 4, 4);
    struct cudaExtent part = {2, 3, 2};

    OK(cudaMemset(p, 1, 64));
    OK(cudaMemset3DAsync(volume, 7, part, NULL));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(rule_first_byte(p + 9), 7);
    CHECK_EQ(rule_first_byte(p + 10), 1);
    CHECK_EQ(rule_first_byte(p + 12), 1);
    CHECK_EQ(rule_first_byte(p + 16), 7);
    CHECK_EQ(rule_first_byte(p + 32), 1);
    OK(cudaMemset3D(volume, 8, part));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(rule_first_byte(p + 16), 8);
}

RULE(copy, volumes_go_between_devices_by_number, "cuda_runtime_api.h, cudaMemcpy3DPeerAsync")
{
    char *p = allocate(64);
    char *q = allocate(64);
    struct cudaMemcpy3DPeerParms copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcPtr = make_pitched(p, 8, 8, 2);
    copy.dstPtr = make_pitched(q, 4, 4, 2);
    copy.extent = (struct cudaExtent){4, 2, 1};
    OK(cudaMemset(p, 3, 64));
    OK(cudaMemset(q, 0, 64));
    OK(cudaMemcpy3DPeer(&copy));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(rule_first_byte(q + 7), 3);
    CHECK_EQ(rule_first_byte(q + 8), 0);
    OK(cudaMemset(p, 4, 64));
    OK(cudaMemcpy3DPeerAsync(&copy, NULL));
    OK(cudaDeviceSynchronize());
    CHECK_EQ(rule_first_byte(q + 7), 4);
}
