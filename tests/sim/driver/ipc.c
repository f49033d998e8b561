/* SPDX-License-Identifier: MIT */
/* Memory and pools of other processes. A handle says where the memory lies; opened memory has an
 * address of this process and the payload of the other one. What the other process does with it is
 * not known here, so no order is checked between processes. */
#include "access.h"
#include "capture.h"
#include "config.h"
#include "defect.h"
#include "ipc.h"
#include "pool.h"
#include "share.h"
#include "sim_api.h"
#include "space.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HANDLE_MAGIC 0x4d454d48u

/* What a memory handle, or exported pointer of a pool, holds. */
struct exported {
    uint32_t magic;
    int32_t device;
    struct sim_share share;
    uint64_t size_bytes;
    uint64_t block_id;
};

_Static_assert(sizeof(struct exported) <= sizeof(CUipcMemHandle), "a handle has 64 bytes");

/* Memory opened here, once per context however often it is opened. */
struct imported {
    struct imported *next;
    struct exported source;
    struct CUctx_st *context;
    unsigned references;
    bool is_pool;
    char *mapping;
    uint64_t reserved;
    size_t reserved_bytes;
    struct sim_block *block;
};

static struct imported *imports;

static CUresult export_block(const struct sim_block *block, struct exported *out)
{
    *out = (struct exported){.magic = HANDLE_MAGIC,
                             .device = block->device,
                             .size_bytes = block->size_bytes,
                             .block_id = block->id};
    return sim_share_payload(block->payload, block->size_bytes, &out->share)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The handle names the whole block, also for a pointer into it. */
CUresult sim_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct CUctx_st *context;
    struct exported exported;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_block *block = sim_block_find(dptr);
    if (pHandle == NULL || block == NULL || block->kind != SIM_BLOCK_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = export_block(block, &exported);
    if (result == CUDA_SUCCESS) {
        memset(pHandle, 0, sizeof(*pHandle));
        memcpy(pHandle, &exported, sizeof(exported));
    }
    return result;
}

static struct imported *find_import(const struct exported *source, const struct CUctx_st *context)
{
    struct imported *import = imports;

    while (import != NULL &&
           (import->context != context || memcmp(&import->source, source, sizeof(*source)) != 0)) {
        import = import->next;
    }
    return import;
}

static CUresult import_block(const struct exported *source, struct CUctx_st *context, bool is_pool,
                             CUdeviceptr *address_out)
{
    struct imported *import = find_import(source, context);

    if (import != NULL && !SIM_DEFECT(every_open_maps_anew)) {
        import->references++;
        *address_out = import->block->node.key;
        return CUDA_SUCCESS;
    }
    char *mapping = sim_share_open(&source->share);
    if (mapping == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    uint64_t reserved;
    if (!sim_space_reserve(source->share.file_bytes, SIM_CHUNK_BYTES, &reserved)) {
        munmap(mapping, source->share.file_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    import = calloc(1, sizeof(*import));
    *import = (struct imported){.next = imports,
                                .source = *source,
                                .context = context,
                                .references = 1,
                                .is_pool = is_pool,
                                .mapping = mapping,
                                .reserved = reserved,
                                .reserved_bytes = source->share.file_bytes};
    imports = import;
    import->block = sim_block_add(reserved + source->share.offset, source->size_bytes,
                                  SIM_BLOCK_IMPORTED);
    import->block->device = context->device;
    import->block->context = context;
    import->block->payload = mapping + source->share.offset;
    *address_out = import->block->node.key;
    return CUDA_SUCCESS;
}

/* A process that holds the memory already may not open it. */
CUresult sim_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    struct CUctx_st *context;
    struct exported source;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS) {
        result = sim_capture_refuse_unsafe();
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    memcpy(&source, &handle, sizeof(source));
    if (pdptr == NULL || source.magic != HANDLE_MAGIC ||
        Flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (source.share.process == getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return import_block(&source, context, false, pdptr);
}

static void end_import(struct imported *import)
{
    struct imported **link = &imports;

    while (*link != import) {
        link = &(*link)->next;
    }
    *link = import->next;
    sim_block_remove(import->block);
    munmap(import->mapping, import->reserved_bytes);
    sim_space_unreserve(import->reserved, import->reserved_bytes);
    free(import);
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);
    struct imported *import = imports;

    while (import != NULL && (import->block->node.key != dptr || import->is_pool)) {
        import = import->next;
    }
    if (result != CUDA_SUCCESS || import == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if (--import->references == 0) {
        sim_wait_context(import->context);
        sim_access_forget(import->block, true);
        end_import(import);
    }
    return context->sticky;
}

void sim_ipc_forget_context(struct CUctx_st *context)
{
    struct imported *import = imports;

    while (import != NULL) {
        struct imported *next = import->next;
        if (import->context == context) {
            sim_access_forget(import->block, false);
            end_import(import);
        }
        import = next;
    }
}

/* A shareable pool is a file whose holders know that the pool is to be shared; each pointer says
 * by itself where its memory lies. */
CUresult sim_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                              CUmemAllocationHandleType handleType,
                                              unsigned long long flags)
{
    int fd;

    if (handle_out == NULL || !sim_pool_is_valid(pool) || flags != 0 ||
        handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        (pool->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int32_t *content = sim_share_create(sizeof(*content), &fd);
    if (content == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *content = pool->device;
    munmap(content, sizeof(*content));
    *(int *)handle_out = fd;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                                CUmemAllocationHandleType handleType,
                                                unsigned long long flags)
{
    int fd = (int)(intptr_t)handle;
    int32_t device;

    if (pool_out == NULL || flags != 0 || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread(fd, &device, sizeof(device), 0) != sizeof(device) ||
        sim_check_device(device) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pool_out = sim_pool_create(device);
    (*pool_out)->is_imported = true;
    return CUDA_SUCCESS;
}

_Static_assert(sizeof(struct exported) <= sizeof(CUmemPoolPtrExportData), "it has 64 bytes");

CUresult sim_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    struct sim_block *block = sim_block_find(ptr);
    struct exported exported;

    if (shareData_out == NULL || block == NULL || block->kind != SIM_BLOCK_POOL ||
        block->is_freeing || block->node.key != ptr || block->pool->handle_types == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = export_block(block, &exported);
    if (result == CUDA_SUCCESS) {
        memset(shareData_out, 0, sizeof(*shareData_out));
        memcpy(shareData_out, &exported, sizeof(exported));
    }
    return result;
}

/* Its free only ends the use here. */
CUresult sim_cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
                                    CUmemPoolPtrExportData *shareData)
{
    struct CUctx_st *context;
    struct exported source;
    CUresult result = sim_enter(&context);

    if (result != CUDA_SUCCESS || ptr_out == NULL || shareData == NULL ||
        !sim_pool_is_valid(pool) || !pool->is_imported) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(&source, shareData, sizeof(source));
    if (source.magic != HANDLE_MAGIC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return import_block(&source, context, true, ptr_out);
}

/* A pool's imported pointer is given to cuMemFree and its kin, not to cuIpcCloseMemHandle. */
bool sim_ipc_free(struct sim_block *block)
{
    struct imported *import = imports;

    while (import != NULL && (import->block != block || !import->is_pool)) {
        import = import->next;
    }
    if (import == NULL) {
        return false;
    }
    if (--import->references == 0) {
        end_import(import);
    }
    return true;
}
