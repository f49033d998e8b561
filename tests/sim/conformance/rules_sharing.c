/* SPDX-License-Identifier: MIT */
/* Virtual memory management, and memory between processes. */
#include "rule.h"

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static CUmemAllocationProp prop;
static size_t unit;

static void start(void)
{
    int is_supported = 0;

    rule_start(0);
    OK(cuDeviceGetAttribute(&is_supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                            0));
    rule_needs(is_supported);
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static CUmemGenericAllocationHandle create(size_t size)
{
    CUmemGenericAllocationHandle handle = 0;

    OK(cuMemCreate(&handle, size, &prop, 0));
    return handle;
}

static CUdeviceptr reserve(size_t size)
{
    CUdeviceptr p = 0;

    OK(cuMemAddressReserve(&p, size, 0, 0, 0));
    return p;
}

static void allow(CUdeviceptr p, size_t size)
{
    CUmemAccessDesc desc = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    OK(cuMemSetAccess(p, size, &desc, 1));
}

/* Two units with memory and access. */
static CUdeviceptr mapped(CUmemGenericAllocationHandle *handle_out)
{
    CUdeviceptr p = reserve(2 * unit);

    *handle_out = create(2 * unit);
    OK(cuMemMap(p, 2 * unit, 0, *handle_out, 0));
    allow(p, 2 * unit);
    return p;
}

RULE(vmm, granularity_is_a_power_of_two, "cuda.h, cuMemGetAllocationGranularity")
{
    start();
    CHECK(unit >= 4096);
    CHECK_EQ(unit & (unit - 1), 0);
    CHECK_EQ(cuMemGetAllocationGranularity(NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
             CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, sizes_are_multiples_of_it, "cuda.h, cuMemCreate")
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;

    start();
    CHECK_EQ(cuMemCreate(&handle, unit + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuMemAddressReserve(&p, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, mapped_memory_works, "cuda.h, cuMemMap")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cuMemsetD8(p, 7, 2 * unit));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)(p + 2 * unit - 1)), 7);
}

RULE(vmm, memory_is_used_from_its_creation_on, "cuda.h, cuMemCreate")
{
    size_t before;
    size_t after;
    size_t total;

    start();
    OK(cuMemGetInfo(&before, &total));
    CUdeviceptr p = reserve(unit);
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(before, after);
    CUmemGenericAllocationHandle handle = create(unit);
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(before - after, unit);
    OK(cuMemRelease(handle));
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(before, after);
    OK(cuMemAddressFree(p, unit));
}

RULE(vmm, too_much_is_out_of_memory, "cuda.h, cuMemCreate")
{
    CUmemGenericAllocationHandle handle;

    start();
    CHECK_EQ(cuMemCreate(&handle, (size_t)1 << 50, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

RULE(vmm, a_mapping_keeps_released_memory, "cuda.h, cuMemRelease")
{
    CUmemGenericAllocationHandle handle;
    size_t before;
    size_t after;
    size_t total;

    start();
    OK(cuMemGetInfo(&before, &total));
    CUdeviceptr p = mapped(&handle);
    OK(cuMemRelease(handle));
    OK(cuMemsetD8(p, 3, unit));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)p), 3);
    OK(cuMemUnmap(p, 2 * unit));
    OK(cuMemGetInfo(&after, &total));
    CHECK_EQ(before, after);
}

RULE(vmm, two_addresses_show_one_memory, "cuda.h, cuMemMap")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    CUdeviceptr q = reserve(2 * unit);
    OK(cuMemMap(q, 2 * unit, 0, handle, 0));
    allow(q, 2 * unit);
    OK(cuMemsetD8(p, 5, unit));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)q), 5);
}

RULE(vmm, mappings_side_by_side_are_one_memory, "cuda.h, cuMemMap")
{
    start();
    CUdeviceptr p = reserve(2 * unit);
    OK(cuMemMap(p + unit, unit, 0, create(unit), 0));
    OK(cuMemMap(p, unit, 0, create(unit), 0));
    allow(p, 2 * unit);
    OK(cuMemsetD8(p, 9, 2 * unit));
    OK(cuMemcpyDtoD(p + unit + 1, p + unit - 1, 1));
    OK(cuCtxSynchronize());
    CHECK_EQ(rule_first_byte((void *)(p + unit - 1)), 9);
    CHECK_EQ(rule_first_byte((void *)(p + 2 * unit - 1)), 9);
    OK(cuMemUnmap(p, unit));
    CHECK_EQ(rule_first_byte((void *)(p + unit)), 9);
}

RULE(vmm, addresses_must_be_reserved, "cuda.h, cuMemMap")
{
    start();
    CUmemGenericAllocationHandle handle = create(2 * unit);
    CUdeviceptr p = reserve(unit);
    CHECK_EQ(cuMemMap(p, 2 * unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, an_address_is_mapped_once, "cuda.h, cuMemMap")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    CHECK_EQ(cuMemMap(p, unit, 0, create(unit), 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, mapped_addresses_are_not_given_back, "assumed")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    CHECK_EQ(cuMemAddressFree(p, 2 * unit), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(p, 2 * unit));
    CHECK_EQ(cuMemAddressFree(p, unit), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(p, 2 * unit));
}

RULE(vmm, mappings_end_whole, "cuda.h, cuMemUnmap")
{
    CUmemGenericAllocationHandle handle;

    start();
    CUdeviceptr p = mapped(&handle);
    CHECK_EQ(cuMemUnmap(p, unit), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(p, 2 * unit));
    OK(cuMemMap(p, 2 * unit, 0, handle, 0));
}

RULE(vmm, access_covers_several_mappings, "cuda.h, cuMemSetAccess")
{
    CUmemAccessDesc desc;
    unsigned long long flags = 7;

    start();
    CUdeviceptr p = reserve(3 * unit);
    desc = (CUmemAccessDesc){.location = prop.location,
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemMap(p, unit, 0, create(unit), 0));
    CHECK_EQ(cuMemSetAccess(p, 2 * unit, &desc, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(p + unit, unit, 0, create(unit), 0));
    OK(cuMemGetAccess(&flags, &prop.location, p));
    CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(cuMemSetAccess(p, 2 * unit, &desc, 1));
    OK(cuMemGetAccess(&flags, &prop.location, p + unit));
    CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

RULE(vmm, handles_tell_their_properties, "cuda.h, cuMemGetAllocationPropertiesFromHandle")
{
    CUmemGenericAllocationHandle handle;
    CUmemGenericAllocationHandle same = 0;
    CUmemAllocationProp found;

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cuMemGetAllocationPropertiesFromHandle(&found, handle));
    CHECK_EQ(found.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    OK(cuMemRetainAllocationHandle(&same, (void *)(p + unit)));
    CHECK(same == handle);
    OK(cuMemRelease(same));
}

RULE(vmm, it_is_not_freed_as_plain_memory, "cuda.h, cuMemFree")
{
    CUmemGenericAllocationHandle handle;

    start();
    CHECK_EQ(cuMemFree(mapped(&handle)), CUDA_ERROR_INVALID_VALUE);
}

RULE(vmm, memory_without_access_is_not_touched, "cuda.h, cuMemMap", RULE_WRONG)
{
    start();
    CUdeviceptr p = reserve(unit);
    OK(cuMemMap(p, unit, 0, create(unit), 0));
    CHECK_EQ(cuMemsetD8(p, 1, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(vmm, reserved_addresses_hold_nothing, "cuda.h, cuMemAddressReserve", RULE_WRONG)
{
    start();
    CHECK_EQ(cuMemsetD8(reserve(unit), 1, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

RULE(vmm, unmapping_does_not_wait, "assumed", RULE_WRONG)
{
    CUmemGenericAllocationHandle handle;
    cudaStream_t stream;

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(launch_fill((void *)p, 16, 1, stream));
    OK(cuMemUnmap(p, 2 * unit));
    CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Two processes: the child is forked before CUDA is used. Messages have a fixed size. */
static int link_ends[2];

static void tell(const void *message, size_t bytes)
{
    CHECK_EQ(write(link_ends[1], message, bytes), bytes);
}

static void hear(void *message, size_t bytes)
{
    CHECK_EQ(read(link_ends[0], message, bytes), bytes);
}

/* Runs the child's part in a new process; the parent's part comes after. */
static pid_t split(void (*child_part)(void))
{
    int ends[2];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork();
    link_ends[0] = link_ends[1] = ends[child == 0];
    close(ends[child != 0]);
    if (child == 0) {
        child_part();
        exit(0);
    }
    return child;
}

static void check_child(pid_t child)
{
    int status;

    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void write_into_opened(void)
{
    CUipcMemHandle handle;
    CUdeviceptr p;
    CUdeviceptr same = 0;
    char done = 1;

    hear(&handle, sizeof(handle));
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
    tell(&done, 1);
}

RULE(ipc, another_process_opens_memory, "cuda.h, cuIpcOpenMemHandle")
{
    CUipcMemHandle handle;
    CUdeviceptr p;
    CUdeviceptr before;
    char done = 0;
    pid_t child = split(write_into_opened);

    rule_start(0);
    OK(cuMemAlloc(&before, 100));
    OK(cuMemAlloc(&p, (size_t)3 << 20));
    OK(cuMemsetD8(p, 4, (size_t)3 << 20));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&handle, p));
    tell(&handle, sizeof(handle));
    hear(&done, 1);
    check_child(child);
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

    hear(&handle, sizeof(handle));
    rule_start(0);
    OK(cuIpcOpenEventHandle(&event, handle));
    CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitEvent(stream, event, 0));
    CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    tell(&done, 1);
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
    pid_t child = split(wait_for_event);

    rule_start(0);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuIpcGetEventHandle(&handle, event));
    rule_close(&gate, stream);
    OK(cuEventRecord(event, stream));
    tell(&handle, sizeof(handle));
    hear(&done, 1);
    rule_open(&gate);
    check_child(child);
}

RULE(ipc, only_interprocess_events_have_handles, "cuda.h, cuIpcGetEventHandle")
{
    CUipcEventHandle handle;
    CUevent event;

    rule_start(0);
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuIpcGetEventHandle(&handle, event) != CUDA_SUCCESS);
}

static void tell_fd(int fd)
{
    char byte = 0;
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    CHECK_EQ(sendmsg(link_ends[1], &message, 0), 1);
}

static int hear_fd(void)
{
    char byte;
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    int fd = -1;

    CHECK_EQ(recvmsg(link_ends[0], &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

static void map_imported(void)
{
    CUmemGenericAllocationHandle handle;
    int fd = hear_fd();

    start();
    OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    CUdeviceptr p = reserve(2 * unit);
    OK(cuMemMap(p, 2 * unit, 0, handle, 0));
    allow(p, 2 * unit);
    CHECK_EQ(rule_first_byte((void *)p), 4);
    OK(cuMemsetD8(p, 9, 16));
    OK(cuCtxSynchronize());
}

RULE(ipc, created_memory_goes_by_descriptor, "cuda.h, cuMemExportToShareableHandle")
{
    CUmemGenericAllocationHandle handle;
    int fd = -1;
    pid_t child = split(map_imported);

    start();
    CUdeviceptr p = mapped(&handle);
    OK(cuMemsetD8(p, 4, unit));
    OK(cuCtxSynchronize());
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    tell_fd(fd);
    check_child(child);
    CHECK_EQ(rule_first_byte((void *)p), 9);
}

static void use_imported_pool(void)
{
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr p;
    int fd = hear_fd();

    hear(&data, sizeof(data));
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
    pid_t child = split(use_imported_pool);

    rule_start(0);
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 5000, pool, NULL));
    OK(cuMemsetD8(p, 4, 5000));
    OK(cuCtxSynchronize());
    OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemPoolExportPointer(&data, p));
    tell_fd(fd);
    tell(&data, sizeof(data));
    check_child(child);
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
