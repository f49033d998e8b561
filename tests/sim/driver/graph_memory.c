/* SPDX-License-Identifier: MIT */
/* Memory of allocation nodes. Addresses are reserved for the graph; the memory behind them is
 * counted from the first launch on and stays with the device until a trim. */
#include "access.h"
#include "call.h"
#include "config.h"
#include "defect.h"
#include "graph.h"
#include "sim_api.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* used <= reserved, and highs are at least that. */
struct usage {
    uint64_t used;
    uint64_t used_high;
    uint64_t reserved;
    uint64_t reserved_high;
};

static struct usage usages[SIM_MAX_DEVICES];
static struct sim_graph_memory *memories;

struct sim_graph_memory *sim_graph_memory_create(int device, size_t size_bytes)
{
    struct sim_graph_memory *memory = calloc(1, sizeof(*memory));

    memory->references = 1;
    memory->device = device;
    memory->size_bytes = size_bytes;
    memory->rounded_bytes = (size_bytes + SIM_CHUNK_BYTES - 1) & ~(SIM_CHUNK_BYTES - 1);
    if (size_bytes > sim_space_total_bytes(device) ||
        !sim_space_reserve(memory->rounded_bytes, SIM_CHUNK_BYTES, &memory->address)) {
        free(memory);
        return NULL;
    }
    memory->next = memories;
    memories = memory;
    return memory;
}

struct sim_graph_memory *sim_graph_memory_of(uint64_t address)
{
    struct sim_graph_memory *memory = memories;

    while (memory != NULL && memory->address != address) {
        memory = memory->next;
    }
    return memory;
}

void sim_graph_memory_hold(struct sim_graph_memory *memory)
{
    memory->references++;
}

void sim_graph_memory_drop(struct sim_graph_memory *memory)
{
    struct sim_graph_memory **link = &memories;

    if (--memory->references != 0) {
        return;
    }
    while (*link != memory) {
        link = &(*link)->next;
    }
    *link = memory->next;
    if (memory->payload != NULL) {
        munmap(memory->payload, memory->rounded_bytes);
    }
    sim_space_unreserve(memory->address, memory->rounded_bytes);
    free(memory);
}

bool sim_graph_memory_is_live(const struct sim_graph_memory *memory)
{
    const struct sim_block *block = sim_block_find(memory->address);

    return block != NULL && !block->is_freeing;
}

static bool count_use(struct sim_graph_memory *memory)
{
    struct usage *usage = &usages[memory->device];
    uint64_t wanted = usage->used + memory->rounded_bytes;

    if (wanted > usage->reserved) {
        if (!sim_space_commit(memory->device, wanted - usage->reserved)) {
            return false;
        }
        usage->reserved = wanted;
    }
    usage->used = wanted;
    usage->used_high = usage->used_high < wanted ? wanted : usage->used_high;
    usage->reserved_high = usage->reserved_high < usage->reserved ? usage->reserved
                                                                  : usage->reserved_high;
    return true;
}

/* The memory may still have a block whose free has not run: work that was enqueued for it keeps
 * that one. */
CUresult sim_graph_memory_alloc(struct sim_graph_memory *memory, struct sim_queue *queue)
{
    struct sim_block *old = sim_block_find(memory->address);

    if (old != NULL && !old->is_freeing) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (memory->payload == NULL) {
        void *payload = mmap(NULL, memory->rounded_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (payload == MAP_FAILED) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        memory->payload = payload;
    }
    if (!count_use(memory)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (old != NULL) {
        sim_block_unmap(old);
    }
    struct sim_block *block = sim_block_add(memory->address, memory->size_bytes, SIM_BLOCK_GRAPH);
    block->device = memory->device;
    block->context = queue->context;
    block->rounded_bytes = memory->rounded_bytes;
    block->payload = memory->payload;
    block->graph_memory = memory;
    sim_graph_memory_hold(memory);
    struct sim_op *op = sim_op_create(queue, "memory allocation node");
    sim_op_own(op, block, true);
    return sim_submit(op);
}

void sim_graph_memory_end(struct sim_graph_memory *memory)
{
    usages[memory->device].used -= memory->rounded_bytes;
    sim_graph_memory_drop(memory);
}

CUresult sim_graph_memory_free(struct sim_graph_memory *memory, struct sim_queue *queue)
{
    struct sim_block *block = sim_block_find(memory->address);

    if (block == NULL || block->is_freeing) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_block_free_in_order(block, queue, "memory free node");
}

CUresult sim_cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult result = sim_check_device(device);

    if (result == CUDA_SUCCESS) {
        struct usage *usage = &usages[device];
        sim_space_uncommit(device, usage->reserved - usage->used);
        usage->reserved = usage->used;
    }
    return result;
}

CUresult sim_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    CUresult result = sim_check_device(device);

    if (result != CUDA_SUCCESS || value == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    const struct usage *usage = &usages[device];
    uint64_t number;
    switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: number = usage->used; break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: number = usage->used_high; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: number = usage->reserved; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: number = usage->reserved_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &number, sizeof(number));
    return CUDA_SUCCESS;
}

/* Only the high marks, and only to zero, which means what is current. */
CUresult sim_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    uint64_t number = 1;
    CUresult result = sim_check_device(device);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (value != NULL) {
        memcpy(&number, value, sizeof(number));
    }
    if (number != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct usage *usage = &usages[device];
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
        usage->used_high = usage->used;
    } else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
        usage->reserved_high = usage->reserved;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
