/* SPDX-License-Identifier: MIT */
/* Virtual memory management: addresses, memory, and what of the one lies behind the other. Memory
 * is a file, so that two addresses can show the same and another process can have it too. */
#include "access.h"
#include "call.h"
#include "config.h"
#include "capture.h"
#include "context.h"
#include "defect.h"
#include "share.h"
#include "sim_api.h"
#include "space.h"
#include "timeline.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PHYSICAL_MAGIC 0x50485953u

/* Lives as long as handles or mappings do. is_imported: another process counts it. identity: what
 * the checks call its first byte, an address that nothing else has. */
struct physical {
    unsigned magic;
    unsigned handles;
    unsigned mappings;
    bool is_imported;
    size_t size_bytes;
    uint64_t identity;
    CUmemAllocationProp prop;
    int fd;
    char *payload;
    struct physical *older;
};

/* window: where the host sees what is mapped, side by side as on the device. */
struct reservation {
    struct sim_node node;
    char *window;
};

/* access: the devices that may touch it. */
struct mapping {
    struct sim_node node;
    struct physical *physical;
    struct sim_block *block;
    char *window;
    unsigned access;
};

/* Handles that have ended stay, so that they can be told. */
static struct physical *newest;
static struct sim_node *reservations;
static struct sim_node *mappings;

static struct physical *physical_of(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = newest;

    while (physical != NULL && (uint64_t)physical != handle) {
        physical = physical->older;
    }
    return physical != NULL && physical->magic == PHYSICAL_MAGIC && physical->handles != 0
               ? physical
               : NULL;
}

static void end_if_unused(struct physical *physical)
{
    if (physical->handles != 0 || physical->mappings != 0) {
        return;
    }
    sim_access_forget_bytes(physical->identity, physical->identity + physical->size_bytes);
    sim_space_unreserve(physical->identity, physical->size_bytes);
    munmap(physical->payload, physical->size_bytes);
    close(physical->fd);
    if (!physical->is_imported) {
        sim_space_uncommit(physical->prop.location.id, physical->size_bytes);
    }
    physical->magic = 0;
}

static bool is_granular(uint64_t value)
{
    return value % SIM_CHUNK_BYTES == 0;
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
    if (prop == NULL || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_check_device(prop->location.id);
}

CUresult sim_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                           CUmemAllocationGranularity_flags option)
{
    CUresult result = check_prop(prop);

    if (result == CUDA_SUCCESS &&
        (granularity == NULL || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *granularity = SIM_CHUNK_BYTES;
    }
    return result;
}

/* Takes over the file and its mapping; NULL, and they are gone, when there is no identity left. */
static struct physical *create(size_t size, const CUmemAllocationProp *prop, int fd, char *payload)
{
    uint64_t identity;

    if (payload == NULL || !sim_space_reserve(size, SIM_CHUNK_BYTES, &identity)) {
        if (payload != NULL) {
            munmap(payload, size);
        }
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    struct physical *physical = calloc(1, sizeof(*physical));
    physical->magic = PHYSICAL_MAGIC;
    physical->handles = 1;
    physical->size_bytes = size;
    physical->identity = identity;
    physical->prop = *prop;
    physical->fd = fd;
    physical->payload = payload;
    physical->older = newest;
    newest = physical;
    return physical;
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
    int fd = -1;
    CUresult result = check_prop(prop);

    if (result != CUDA_SUCCESS || handle == NULL || size == 0 || !is_granular(size) || flags != 0) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_space_commit(prop->location.id, size)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    char *payload = sim_share_create(size, &fd);
    struct physical *physical = create(size, prop, fd, payload);
    if (physical == NULL) {
        sim_space_uncommit(prop->location.id, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (uint64_t)physical;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physical_of(handle);

    if (physical == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    physical->handles--;
    end_if_unused(physical);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                                 unsigned long long flags)
{
    uint64_t address;

    (void)addr;
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (ptr == NULL || size == 0 || !is_granular(size) || (alignment & (alignment - 1)) != 0 ||
        flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_space_reserve(size, alignment > SIM_CHUNK_BYTES ? alignment : SIM_CHUNK_BYTES,
                           &address)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    char *window = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (window == MAP_FAILED) {
        sim_space_unreserve(address, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct reservation *reservation = calloc(1, sizeof(*reservation));
    reservation->window = window;
    reservation->node.key = address;
    reservation->node.end = address + size;
    sim_tree_insert(&reservations, &reservation->node);
    *ptr = address;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    struct sim_node *node = sim_tree_floor(reservations, ptr);

    if (node == NULL || node->key != ptr || node->end != ptr + size ||
        sim_tree_overlap(mappings, ptr, ptr + size) != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_tree_remove(&reservations, node);
    munmap(((struct reservation *)node)->window, size);
    free(node);
    sim_space_unreserve(ptr, size);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct physical *physical = physical_of(handle);
    struct sim_node *reservation = sim_tree_floor(reservations, ptr);

    if (physical == NULL || size == 0 || offset != 0 || flags != 0 || !is_granular(ptr) ||
        !is_granular(size) || size > physical->size_bytes || reservation == NULL ||
        reservation->end < ptr + size || sim_tree_overlap(mappings, ptr, ptr + size) != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    char *window = ((struct reservation *)reservation)->window + (ptr - reservation->key);
    if (mmap(window, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->fd, 0) ==
        MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct mapping *mapping = calloc(1, sizeof(*mapping));
    mapping->window = window;
    mapping->node.key = ptr;
    mapping->node.end = ptr + size;
    mapping->physical = physical;
    physical->mappings++;
    sim_tree_insert(&mappings, &mapping->node);
    mapping->block = sim_block_add(ptr, size, SIM_BLOCK_MAPPED);
    mapping->block->device = physical->prop.location.id;
    mapping->block->payload = window;
    mapping->block->identity = physical->identity;
    mapping->block->accessors = SIM_DEFECT(access_needs_no_leave) ? ~0u : 0;
    return CUDA_SUCCESS;
}

/* The mappings that make up a range; NULL when they do not make up just that. */
static struct mapping *first_of_range(uint64_t start, size_t size)
{
    struct sim_node *first = sim_tree_floor(mappings, start);
    struct sim_node *node = first;
    uint64_t at = start;

    while (node != NULL && node->key == at && at < start + size) {
        at = node->end;
        node = sim_tree_floor(mappings, at);
    }
    return size != 0 && at == start + size ? (struct mapping *)first : NULL;
}

static struct mapping *next_of_range(const struct mapping *mapping, uint64_t end)
{
    return mapping->node.end < end ? (struct mapping *)sim_tree_floor(mappings, mapping->node.end)
                                   : NULL;
}

/* It waits for nothing: use that is not known to be over is a violation. */
CUresult sim_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    struct mapping *mapping = first_of_range(ptr, size);

    if (mapping == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    while (mapping != NULL) {
        struct mapping *next = next_of_range(mapping, ptr + size);
        sim_timeline_bury_now(mapping->node.key, mapping->node.end);
        sim_capture_refuse_end(mapping->block);
        sim_access_forget(mapping->block, !SIM_DEFECT(unmaps_leave_uses_behind));
        sim_block_remove(mapping->block);
        (void)mmap(mapping->window, mapping->node.end - mapping->node.key, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        sim_tree_remove(&mappings, &mapping->node);
        mapping->physical->mappings--;
        end_if_unused(mapping->physical);
        free(mapping);
        mapping = next;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    struct mapping *first = first_of_range(ptr, size);

    if (first == NULL || desc == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
            sim_check_device(desc[i].location.id) != CUDA_SUCCESS) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
    }
    for (struct mapping *mapping = first; mapping != NULL;
         mapping = next_of_range(mapping, ptr + size)) {
        for (size_t i = 0; i < count; i++) {
            if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
                continue;
            }
            unsigned bit = 1u << desc[i].location.id;
            mapping->access = desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE
                                  ? mapping->access & ~bit
                                  : mapping->access | bit;
        }
        mapping->block->accessors = SIM_DEFECT(access_needs_no_leave) ? ~0u : mapping->access;
    }
    return CUDA_SUCCESS;
}

static struct mapping *mapping_at(uint64_t address)
{
    struct sim_node *node = sim_tree_floor(mappings, address);

    return node != NULL && address < node->end ? (struct mapping *)node : NULL;
}

CUresult sim_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                            CUdeviceptr ptr)
{
    struct mapping *mapping = mapping_at(ptr);

    if (flags == NULL || location == NULL || mapping == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     (mapping->access & (1u << location->id)) != 0
                 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                    CUmemGenericAllocationHandle handle)
{
    struct physical *physical = physical_of(handle);

    if (prop == NULL || physical == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *prop = physical->prop;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    struct mapping *mapping = mapping_at((uint64_t)addr);

    if (handle == NULL || mapping == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    mapping->physical->handles++;
    *handle = (uint64_t)mapping->physical;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemExportToShareableHandle(void *shareableHandle,
                                          CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType handleType,
                                          unsigned long long flags)
{
    struct physical *physical = physical_of(handle);

    if (shareableHandle == NULL || physical == NULL || flags != 0 ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        (physical->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(int *)shareableHandle = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
    return CUDA_SUCCESS;
}

/* The live memory behind the file, if this process has it already. */
static struct physical *physical_of_file(const struct stat *file)
{
    struct physical *physical = newest;
    struct stat about;

    while (physical != NULL &&
           (physical->magic != PHYSICAL_MAGIC || fstat(physical->fd, &about) != 0 ||
            about.st_dev != file->st_dev || about.st_ino != file->st_ino)) {
        physical = physical->older;
    }
    return physical;
}

/* Memory that this process has already gets one more handle: the checks know it for the same. */
CUresult sim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                            CUmemAllocationHandleType shHandleType)
{
    struct CUctx_st *context;
    struct stat about;
    int fd = (int)(intptr_t)osHandle;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (handle == NULL || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        fstat(fd, &about) != 0 || about.st_size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct physical *physical = physical_of_file(&about);
    if (physical != NULL) {
        physical->handles++;
    } else {
        int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        char *payload = own >= 0 ? sim_share_map(own, (size_t)about.st_size) : NULL;
        prop.location.id = context->device;
        physical = create((size_t)about.st_size, &prop, own, payload);
        if (physical == NULL) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        physical->is_imported = true;
    }
    *handle = (uint64_t)physical;
    return CUDA_SUCCESS;
}
