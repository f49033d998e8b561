/* SPDX-License-Identifier: MIT */
#include "device/cuda_mapping.h"

#include "device/cuda_error.h"
#include "device/cuda_scope.h"

/* By number: older toolkits lack the name. */
enum { ATTRIBUTE_MAPS = 102, ATTRIBUTE_RDMA_OF_MAPPED = 110 };

static bool has_attribute(const struct cca_cuda_context *context, int attribute)
{
    int value = 0;
    return context->table->device_get_attribute != NULL &&
           context->table->device_get_attribute(&value, (CUdevice_attribute)attribute,
                                                context->ordinal) == CUDA_SUCCESS &&
           value != 0;
}

static CUmemLocation location_of(int ordinal)
{
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};
}

/* Without a handle type: such memory is not shared with other processes. */
static CUmemAllocationProp properties(const struct cca_cuda_context *context)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = location_of(context->ordinal)};
    prop.allocFlags.gpuDirectRDMACapable = has_attribute(context, ATTRIBUTE_RDMA_OF_MAPPED);
    return prop;
}

size_t cca_cuda_map_granularity(const struct cca_cuda_context *context)
{
    const struct cca_cuda_table *table = context->table;
    size_t granularity = 0;
    if (table->mem_granularity == NULL || table->address_reserve == NULL ||
        table->address_free == NULL || table->mem_create == NULL || table->mem_release == NULL ||
        table->mem_map == NULL || table->mem_unmap == NULL || table->mem_set_access == NULL ||
        !has_attribute(context, ATTRIBUTE_MAPS)) {
        return 0;
    }
    CUmemAllocationProp prop = properties(context);
    return table->mem_granularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
                   CUDA_SUCCESS
               ? granularity
               : 0;
}

struct cca_status cca_cuda_address_reserve(void *self_, size_t bytes, uint64_t *addr_out)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        CUdeviceptr addr = 0;
        result = self->table->address_reserve(&addr, bytes, 0, 0, 0);
        if (result == CUDA_SUCCESS) {
            *addr_out = addr;
        }
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

struct cca_status cca_cuda_address_free(void *self_, uint64_t addr, size_t bytes)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = self->table->address_free(addr, bytes);
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

/* The mapping alone keeps the memory, so no handle is kept. */
static CUresult map_page(const struct cca_cuda_table *table, uint64_t addr, size_t page_bytes,
                         const CUmemAllocationProp *prop)
{
    CUmemGenericAllocationHandle handle = 0;
    CUresult result = table->mem_create(&handle, page_bytes, prop, 0);
    if (result == CUDA_SUCCESS) {
        result = table->mem_map(addr, page_bytes, 0, handle, 0);
        (void)table->mem_release(handle);
    }
    return result;
}

/* Each page was mapped by itself, so it goes by itself. The first error counts; the others are
 * unmapped all the same. */
static CUresult unmap_pages(const struct cca_cuda_table *table, uint64_t addr, size_t page_bytes,
                            size_t pages)
{
    CUresult first = CUDA_SUCCESS;
    for (size_t i = 0; i < pages; i++) {
        CUresult result = table->mem_unmap(addr + i * page_bytes, page_bytes);
        first = first == CUDA_SUCCESS ? result : first;
    }
    return first;
}

/* For the owner, which is device `ordinal`, and those of `peers`. */
static CUresult allow(const struct cca_cuda_table *table, uint64_t addr, size_t bytes, int ordinal,
                      uint64_t peers)
{
    uint64_t todo = peers | 1ull << ordinal;
    CUresult result = CUDA_SUCCESS;
    for (; todo != 0 && result == CUDA_SUCCESS; todo &= todo - 1) {
        CUmemAccessDesc access = {.location = location_of(__builtin_ctzll(todo)),
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        result = table->mem_set_access(addr, bytes, &access, 1);
    }
    return result;
}

static CUresult map_pages(const struct cca_cuda_context *self, uint64_t addr, size_t page_bytes,
                          size_t pages, uint64_t peers)
{
    const struct cca_cuda_table *table = self->table;
    CUmemAllocationProp prop = properties(self);
    CUresult result = CUDA_SUCCESS;
    size_t done = 0;
    while (done < pages && result == CUDA_SUCCESS) {
        result = map_page(table, addr + done * page_bytes, page_bytes, &prop);
        done += result == CUDA_SUCCESS;
    }
    if (result == CUDA_SUCCESS) {
        result = allow(table, addr, pages * page_bytes, self->ordinal, peers);
    }
    if (result != CUDA_SUCCESS) {
        (void)unmap_pages(table, addr, page_bytes, done);
    }
    return result;
}

struct cca_status cca_cuda_map(void *self_, uint64_t addr, size_t page_bytes, size_t pages,
                               uint64_t peers)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = map_pages(self, addr, page_bytes, pages, peers);
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

struct cca_status cca_cuda_unmap(void *self_, uint64_t addr, size_t page_bytes, size_t pages)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = unmap_pages(self->table, addr, page_bytes, pages);
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

struct cca_status cca_cuda_allow_access(void *self_, uint64_t addr, size_t page_bytes, size_t pages,
                                        int accessor)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        CUmemAccessDesc access = {.location = location_of(accessor),
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        for (size_t i = 0; i < pages; i++) {
            CUresult one = self->table->mem_set_access(addr + i * page_bytes, page_bytes, &access,
                                                       1);
            result = result == CUDA_SUCCESS ? one : result;
        }
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}
