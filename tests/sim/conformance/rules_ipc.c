/* SPDX-License-Identifier: MIT */
/* Memory and events between processes. */
#include "process.h"
#include "rule.h"

#include <stdint.h>
#include <string.h>

static void write_into_opened(void)
{
    CUipcMemHandle handle;
    CUdeviceptr p;
    CUdeviceptr same = 0;
    char done = 1;

    process_hear(&handle, sizeof(handle));
    rule_start(0);
    OK(cuIpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuIpcOpenMemHandle(&same, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(same == p);
    CHECK_EQ(rule_first_byte((void *)p), 4);
    OK(cuMemsetD8(p, 8, 64));
    OK(cuCtxSynchronize());
    CHECK_EQ(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcCloseMemHandle(p));
    OK(cuIpcCloseMemHandle(p));
    CHECK_EQ(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
    process_tell(&done, 1);
}

RULE(ipc, another_process_opens_memory, "cuda.h, cuIpcOpenMemHandle")
{
    CUipcMemHandle handle;
    CUdeviceptr p;
    CUdeviceptr before;
    char done = 0;
    pid_t child = process_split(write_into_opened);

    rule_start(0);
    OK(cuMemAlloc(&before, 100));
    OK(cuMemAlloc(&p, (size_t)3 << 20));
    OK(cuMemsetD8(p, 4, (size_t)3 << 20));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&handle, p));
    process_tell(&handle, sizeof(handle));
    process_hear(&done, 1);
    process_end(child);
    CHECK_EQ(rule_first_byte((void *)p), 8);
    OK(cuMemFree(p));
}

RULE(ipc, handles_of_new_memory_are_new, "cuda.h, cuIpcGetMemHandle")
{
    CUipcMemHandle first;
    CUipcMemHandle second;
    CUdeviceptr p;

    rule_start(0);
    OK(cuMemAlloc(&p, (size_t)2 << 20));
    OK(cuIpcGetMemHandle(&first, p));
    OK(cuIpcGetMemHandle(&second, p));
    CHECK(memcmp(&first, &second, sizeof(first)) == 0);
    OK(cuMemFree(p));
    OK(cuMemAlloc(&p, (size_t)2 << 20));
    OK(cuIpcGetMemHandle(&second, p));
    CHECK(memcmp(&first, &second, sizeof(first)) != 0);
}

RULE(ipc, a_process_does_not_open_its_own, "assumed")
{
    CUipcMemHandle handle;
    CUdeviceptr p;

    rule_start(0);
    OK(cuMemAlloc(&p, 4096));
    OK(cuIpcGetMemHandle(&handle, p));
    CHECK(cuIpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS);
}

RULE(ipc, only_plain_memory_has_handles, "cuda.h, cuIpcGetMemHandle")
{
    CUipcMemHandle handle;
    CUdeviceptr p;

    rule_start(0);
    OK(cuMemAllocAsync(&p, 4096, NULL));
    OK(cuCtxSynchronize());
    CHECK_EQ(cuIpcGetMemHandle(&handle, p), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuIpcGetMemHandle(&handle, (CUdeviceptr)&p), CUDA_ERROR_INVALID_VALUE);
}

static void wait_for_event(void)
{
    CUipcEventHandle handle;
    CUevent event;
    CUstream stream;
    char done = 1;

    process_hear(&handle, sizeof(handle));
    rule_start(0);
    OK(cuIpcOpenEventHandle(&event, handle));
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitEvent(stream, event, 0));
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    process_tell(&done, 1);
    OK(cuEventSynchronize(event));
    OK(cuStreamSynchronize(stream));
    OK(cuEventDestroy(event));
}

RULE(ipc, another_process_waits_for_an_event, "cuda.h, cuIpcOpenEventHandle")
{
    struct rule_gate gate;
    CUipcEventHandle handle;
    CUevent event;
    CUstream stream;
    char done = 0;
    pid_t child = process_split(wait_for_event);

    rule_start(0);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuIpcGetEventHandle(&handle, event));
    rule_close(&gate, stream);
    OK(cuEventRecord(event, stream));
    process_tell(&handle, sizeof(handle));
    process_hear(&done, 1);
    rule_open(&gate);
    process_end(child);
}

RULE(ipc, only_interprocess_events_have_handles, "cuda.h, cuIpcGetEventHandle")
{
    CUipcEventHandle handle;
    CUevent event;

    rule_start(0);
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuIpcGetEventHandle(&handle, event) != CUDA_SUCCESS);
}

static void use_imported_pool(void)
{
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr p;
    int fd = process_hear_fd();

    process_hear(&data, sizeof(data));
    rule_start(0);
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CHECK(cuMemAllocFromPoolAsync(&p, 16, pool, NULL) != CUDA_SUCCESS);
    OK(cuMemPoolImportPointer(&p, pool, &data));
    CHECK_EQ(rule_first_byte((void *)p), 4);
    OK(cuMemsetD8(p, 9, 16));
    OK(cuCtxSynchronize());
    OK(cuMemFree(p));
}

RULE(ipc, pools_go_by_descriptor, "cuda.h, cuMemPoolImportPointer")
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr p;
    int fd = -1;
    pid_t child = process_split(use_imported_pool);

    rule_start(0);
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 5000, pool, NULL));
    OK(cuMemsetD8(p, 4, 5000));
    OK(cuCtxSynchronize());
    OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemPoolExportPointer(&data, p));
    process_tell_fd(fd);
    process_tell(&data, sizeof(data));
    process_end(child);
    CHECK_EQ(rule_first_byte((void *)p), 9);
}

RULE(ipc, plain_pools_stay_at_home, "cuda.h, cuMemPoolExportToShareableHandle")
{
    CUmemoryPool pool;
    int fd;

    rule_start(0);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                           0) != CUDA_SUCCESS);
}
