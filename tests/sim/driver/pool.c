/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include "access.h"
#include "config.h"
#include "defect.h"
#include "sim_api.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>

#define POOL_MAGIC     0x504f4f4cu
#define RESERVE_BYTES  ((size_t)32 << 20)
#define PENDING_SEARCH 64

/* A block whose free waits in a queue, and what of its memory is not yet promised to others. */
struct sim_pending_free {
    struct sim_pending_free *next;
    struct sim_block *block;
    uint64_t start;
    size_t size_bytes;
    unsigned slot;
    uint64_t number;
};

static struct CUmemPoolHandle_st default_pools[SIM_MAX_DEVICES];
static struct CUmemPoolHandle_st *current_pools[SIM_MAX_DEVICES];
/* Pools are never freed: a stale handle can be told. */
static struct CUmemPoolHandle_st *newest;

static void init(struct CUmemPoolHandle_st *pool, int device)
{
    pool->magic = POOL_MAGIC;
    pool->device = device;
    pool->may_follow_event = true;
    pool->may_be_opportunistic = true;
    pool->may_add_dependencies = true;
    pool->access = 1u << device;
}

static struct CUmemPoolHandle_st *default_pool(int device)
{
    struct CUmemPoolHandle_st *pool = &default_pools[device];

    if (pool->magic == 0) {
        init(pool, device);
        pool->is_default = true;
    }
    return pool;
}

struct CUmemPoolHandle_st *sim_pool_of_device(int device)
{
    if (current_pools[device] == NULL) {
        current_pools[device] = default_pool(device);
    }
    return current_pools[device];
}

static void trim(struct CUmemPoolHandle_st *pool, uint64_t keep_bytes)
{
    uint64_t from = 0;
    uint64_t start;
    uint64_t size;

    while (pool->reserved_bytes > keep_bytes && sim_ranges_next(&pool->free, from, &start, &size)) {
        uint64_t low = (start + SIM_CHUNK_BYTES - 1) & ~(uint64_t)(SIM_CHUNK_BYTES - 1);
        uint64_t high = (start + size) & ~(uint64_t)(SIM_CHUNK_BYTES - 1);
        from = start + size;
        if (low >= high) {
            continue;
        }
        uint64_t excess = pool->reserved_bytes - keep_bytes;
        uint64_t wanted = (excess + SIM_CHUNK_BYTES - 1) & ~(uint64_t)(SIM_CHUNK_BYTES - 1);
        if (high - low > wanted) {
            low = high - wanted;
        }
        sim_ranges_cut(&pool->free, low, high - low);
        sim_space_give(pool->device, low, high - low);
        pool->reserved_bytes -= high - low;
    }
}

static bool reserve(struct CUmemPoolHandle_st *pool, size_t size_bytes)
{
    size_t needed = (size_bytes + SIM_CHUNK_BYTES - 1) & ~(SIM_CHUNK_BYTES - 1);
    size_t wanted = needed < RESERVE_BYTES ? RESERVE_BYTES : needed;
    uint64_t start;
    uint64_t joined;
    size_t rounded;

    if (!sim_space_take(pool->device, wanted, &start, &rounded) &&
        !sim_space_take(pool->device, needed > SIM_CHUNK_BYTES / 2 ? needed : SIM_CHUNK_BYTES,
                        &start, &rounded)) {
        return false;
    }
    pool->reserved_bytes += rounded;
    if (pool->reserved_high_bytes < pool->reserved_bytes) {
        pool->reserved_high_bytes = pool->reserved_bytes;
    }
    sim_ranges_give(&pool->free, start, rounded, 0, &start, &joined);
    return true;
}

/* Does CUDA see that the free comes before what goes into the queue? */
static bool is_before(const struct sim_pending_free *pending, const struct sim_queue *queue)
{
    if (SIM_DEFECT(pools_follow_words)) {
        return sim_clock_has(&queue->clock, pending->slot, pending->number);
    }
    return sim_clock_has_seen(&queue->clock, pending->slot, pending->number) ||
           SIM_DEFECT(pools_reuse_too_early);
}

/* Memory whose free has not run but comes before what goes into the queue: the smallest piece that
 * does, its rest stays. A pool that may not follow events looks at the queue's own frees alone. */
static bool take_pending(struct CUmemPoolHandle_st *pool, size_t rounded, struct sim_queue *queue,
                         uint64_t *address_out)
{
    struct sim_pending_free **best = NULL;
    int count = 0;

    for (struct sim_pending_free **link = &pool->pending; *link != NULL && count < PENDING_SEARCH;
         link = &(*link)->next, count++) {
        const struct sim_pending_free *pending = *link;
        if (pending->size_bytes >= rounded &&
            (best == NULL || pending->size_bytes < (*best)->size_bytes) &&
            is_before(pending, queue) &&
            (pending->slot == queue->slot ||
             (pool->may_follow_event && !SIM_DEFECT(pools_ignore_events)))) {
            best = link;
        }
    }
    if (best == NULL) {
        return false;
    }
    struct sim_pending_free *pending = *best;
    *address_out = pending->start;
    sim_block_unmap(pending->block);
    pool->used_bytes -= rounded;
    pending->start += rounded;
    pending->size_bytes -= rounded;
    if (pending->size_bytes == 0) {
        pending->block->pool = NULL;
        *best = pending->next;
        free(pending);
    }
    return true;
}

struct sim_block *sim_pool_take(struct CUmemPoolHandle_st *pool, size_t size_bytes,
                                struct sim_queue *queue)
{
    size_t rounded = (size_bytes + SIM_UNIT_BYTES - 1) & ~(SIM_UNIT_BYTES - 1);
    uint64_t address;

    if (size_bytes > sim_space_total_bytes(pool->device) || pool->is_imported ||
        (pool->max_bytes != 0 && pool->used_bytes + rounded > pool->max_bytes)) {
        return NULL;
    }
    if (!take_pending(pool, rounded, queue, &address) &&
        !sim_ranges_take(&pool->free, rounded, &address) &&
        (!reserve(pool, rounded) || !sim_ranges_take(&pool->free, rounded, &address))) {
        return NULL;
    }
    struct sim_block *block = sim_block_add(address, size_bytes, SIM_BLOCK_POOL);
    block->rounded_bytes = rounded;
    block->device = pool->device;
    block->context = queue->context;
    block->pool = pool;
    block->payload = sim_space_payload(address);
    pool->used_bytes += rounded;
    if (pool->used_high_bytes < pool->used_bytes) {
        pool->used_high_bytes = pool->used_bytes;
    }
    return block;
}

void sim_pool_expect(struct sim_block *block, struct sim_op *op)
{
    struct sim_pending_free *pending = calloc(1, sizeof(*pending));

    pending->block = block;
    pending->start = block->node.key;
    pending->size_bytes = block->rounded_bytes;
    pending->slot = op->queue->slot;
    pending->number = op->number;
    pending->next = block->pool->pending;
    block->pool->pending = pending;
}

void sim_pool_give(struct sim_block *block)
{
    struct CUmemPoolHandle_st *pool = block->pool;
    uint64_t start;
    uint64_t size;

    if (pool == NULL) {
        /* Later blocks have all of the memory already. */
        return;
    }
    uint64_t free_start = block->node.key;
    size_t free_bytes = block->rounded_bytes;
    for (struct sim_pending_free **link = &pool->pending; *link != NULL; link = &(*link)->next) {
        if ((*link)->block == block) {
            struct sim_pending_free *gone = *link;
            *link = gone->next;
            free_start = gone->start;
            free_bytes = gone->size_bytes;
            free(gone);
            break;
        }
    }
    pool->used_bytes -= free_bytes;
    sim_access_forget_bytes(free_start, free_start + free_bytes);
    sim_ranges_give(&pool->free, free_start, free_bytes, 0, &start, &size);
    if (pool->is_destroyed) {
        trim(pool, 0);
    }
}

void sim_pool_settle(int device)
{
    struct CUmemPoolHandle_st *pool = sim_pool_of_device(device);

    if (pool->reserved_bytes > pool->threshold_bytes || SIM_DEFECT(thresholds_are_ignored)) {
        trim(pool, SIM_DEFECT(thresholds_are_ignored) ? 0 : pool->threshold_bytes);
    }
    pool = default_pool(device);
    if (pool->reserved_bytes > pool->threshold_bytes) {
        trim(pool, pool->threshold_bytes);
    }
}

bool sim_pool_is_valid(CUmemoryPool pool)
{
    return pool != NULL && pool->magic == POOL_MAGIC && !pool->is_destroyed;
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    CUresult result = sim_check_device(dev);

    if (result == CUDA_SUCCESS && pool_out == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *pool_out = default_pool(dev);
    }
    return result;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    CUresult result = sim_check_device(dev);

    if (result == CUDA_SUCCESS && pool == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *pool = sim_pool_of_device(dev);
    }
    return result;
}

CUresult sim_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    CUresult result = sim_check_device(dev);

    if (result == CUDA_SUCCESS && (!sim_pool_is_valid(pool) || pool->device != dev)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        current_pools[dev] = pool;
    }
    return result;
}

struct CUmemPoolHandle_st *sim_pool_create(int device)
{
    struct CUmemPoolHandle_st *pool = calloc(1, sizeof(*pool));

    init(pool, device);
    pool->older = newest;
    newest = pool;
    return pool;
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    if (!sim_is_initialized) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (pool == NULL || poolProps == NULL ||
        poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        sim_check_device(poolProps->location.id) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((poolProps->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *pool = sim_pool_create(poolProps->location.id);
    (*pool)->handle_types = (int)poolProps->handleTypes;
    (*pool)->max_bytes = poolProps->maxSize;
    return CUDA_SUCCESS;
}

/* Blocks of the pool stay valid until they are freed. */
CUresult sim_cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!sim_pool_is_valid(pool) || pool->is_default) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pool->is_destroyed = true;
    trim(pool, 0);
    if (current_pools[pool->device] == pool) {
        current_pools[pool->device] = NULL;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    if (!sim_pool_is_valid(pool)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    trim(pool, SIM_DEFECT(trims_take_all) ? 0 : minBytesToKeep);
    return CUDA_SUCCESS;
}

/* Where an attribute is kept: a number, or a switch of int. */
static bool find_attribute(struct CUmemPoolHandle_st *pool, CUmemPool_attribute attr,
                           uint64_t **number_out, bool **switch_out)
{
    *number_out = NULL;
    *switch_out = NULL;
    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        *switch_out = &pool->may_follow_event;
        return true;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        *switch_out = &pool->may_be_opportunistic;
        return true;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *switch_out = &pool->may_add_dependencies;
        return true;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *number_out = &pool->threshold_bytes; return true;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *number_out = &pool->reserved_bytes; return true;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *number_out = &pool->reserved_high_bytes; return true;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *number_out = &pool->used_bytes; return true;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *number_out = &pool->used_high_bytes; return true;
    default: return false;
    }
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    uint64_t *number;
    bool *toggle;

    if (!sim_pool_is_valid(pool) || value == NULL ||
        !find_attribute(pool, attr, &number, &toggle)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (number != NULL) {
        memcpy(value, number, sizeof(*number));
    } else {
        *(int *)value = *toggle;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    uint64_t *number;
    bool *toggle;
    uint64_t wanted;

    if (!sim_pool_is_valid(pool) || value == NULL ||
        !find_attribute(pool, attr, &number, &toggle)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (toggle != NULL) {
        *toggle = *(int *)value != 0;
        return CUDA_SUCCESS;
    }
    memcpy(&wanted, value, sizeof(wanted));
    if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->threshold_bytes = wanted;
    } else if (wanted != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
        pool->reserved_high_bytes = pool->reserved_bytes;
    } else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
        pool->used_high_bytes = pool->used_bytes;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* A pool's own device keeps its access. */
CUresult sim_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    if (!sim_pool_is_valid(pool) || (map == NULL && count != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            sim_check_device(map[i].location.id) != CUDA_SUCCESS ||
            (map[i].location.id == pool->device && map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    for (size_t i = 0; i < count; i++) {
        unsigned bit = 1u << map[i].location.id;
        pool->access = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? pool->access & ~bit
                                                                     : pool->access | bit;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool,
                                CUmemLocation *location)
{
    if (!sim_pool_is_valid(memPool) || flags == NULL || location == NULL ||
        location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        sim_check_device(location->id) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = (memPool->access & (1u << location->id)) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* The calls of release 13 name a location; only devices have pools here. */
static CUresult device_of(const CUmemLocation *location, CUmemAllocationType type, CUdevice *out)
{
    if (location == NULL || location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return location == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    }
    *out = location->id;
    return type == CU_MEM_ALLOCATION_TYPE_PINNED ? sim_check_device(*out)
                                                 : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sim_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
                                    CUmemAllocationType type)
{
    CUdevice device;
    CUresult result = device_of(location, type, &device);

    return result == CUDA_SUCCESS ? sim_cuDeviceGetDefaultMemPool(pool_out, device) : result;
}

CUresult sim_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUdevice device;
    CUresult result = device_of(location, type, &device);

    return result == CUDA_SUCCESS ? sim_cuDeviceGetMemPool(pool, device) : result;
}

CUresult sim_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUdevice device;
    CUresult result = device_of(location, type, &device);

    return result == CUDA_SUCCESS ? sim_cuDeviceSetMemPool(device, pool) : result;
}
