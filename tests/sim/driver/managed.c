/* SPDX-License-Identifier: MIT */
#include "managed.h"

#include "access.h"
#include "config.h"
#include "context.h"
#include "defect.h"
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

/* accessed_by: a bit for each device, and one for the host. */
struct advice {
    bool is_read_mostly;
    unsigned accessed_by;
    CUmemLocation preferred;
    CUmemLocation prefetched;
};

/* Bytes with the same advice. The list is in order of addresses; what is in none has none. */
struct run {
    struct run *next;
    uint64_t start;
    uint64_t end;
    struct advice advice;
};

#define HOST_BIT (1u << SIM_MAX_DEVICES)

static struct run *runs;

/* Makes the boundary of a run out of an address. */
static void cut(uint64_t address)
{
    for (struct run *run = runs; run != NULL; run = run->next) {
        if (run->start < address && address < run->end) {
            struct run *rest = malloc(sizeof(*rest));
            *rest = *run;
            rest->start = address;
            run->end = address;
            run->next = rest;
            return;
        }
    }
}

/* Runs for all of [start, end): the first, after which next leads to the others. */
static struct run *take_runs(uint64_t start, uint64_t end)
{
    struct run **link = &runs;
    uint64_t at = start;

    cut(start);
    cut(end);
    while (*link != NULL && (*link)->start < start) {
        link = &(*link)->next;
    }
    struct run **first = link;
    while (at < end) {
        if (*link == NULL || (*link)->start > at) {
            struct run *run = calloc(1, sizeof(*run));
            run->start = at;
            run->end = *link != NULL && (*link)->start < end ? (*link)->start : end;
            run->next = *link;
            *link = run;
        }
        at = (*link)->end;
        link = &(*link)->next;
    }
    return *first;
}

void sim_managed_forget(const struct sim_block *block)
{
    struct run **link = &runs;

    while (*link != NULL) {
        struct run *run = *link;
        if (run->start >= block->node.key && run->end <= block->node.end) {
            *link = run->next;
            free(run);
        } else {
            link = &run->next;
        }
    }
}

/* All of it is one block of managed memory. */
static bool is_managed(uint64_t start, size_t size_bytes)
{
    const struct sim_block *block = sim_block_find(start);

    return size_bytes != 0 && block != NULL && block->kind == SIM_BLOCK_MANAGED &&
           size_bytes <= block->node.end - start;
}

static CUresult check_location(CUmemLocation location)
{
    switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return sim_check_device(location.id);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static unsigned bit_of(CUmemLocation location)
{
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? 1u << location.id : HOST_BIT;
}

static void advise(struct advice *advice, CUmem_advise what, CUmemLocation location)
{
    switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: advice->is_read_mostly = true; break;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: advice->is_read_mostly = false; break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: advice->preferred = location; break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        advice->preferred = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY: advice->accessed_by |= bit_of(location); break;
    default: advice->accessed_by &= ~bit_of(location); break;
    }
}

/* Some advice says no place, and then the location is not looked at. */
static bool has_place(CUmem_advise advice)
{
    return advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
           advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
}

CUresult sim_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                            CUmemLocation location)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);

    if (result == CUDA_SUCCESS &&
        (!is_managed(devPtr, count) || advice < CU_MEM_ADVISE_SET_READ_MOSTLY ||
         advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS && has_place(advice)) {
        result = check_location(location);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    for (struct run *run = take_runs(devPtr, devPtr + count);
         run != NULL && run->start < devPtr + count; run = run->next) {
        advise(&run->advice, advice, location);
    }
    return CUDA_SUCCESS;
}

/* All prefetches and discards are checked before one is enqueued. */
static CUresult check_all(const CUdeviceptr *starts, const size_t *sizes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_managed(starts[i], sizes[i])) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult prefetch(CUdeviceptr start, size_t size_bytes, CUmemLocation location,
                         struct sim_queue *queue)
{
    struct sim_op *op = sim_op_create(queue, "prefetch");

    sim_op_mention(op, start);
    for (struct run *run = take_runs(start, start + size_bytes);
         run != NULL && run->start < start + size_bytes; run = run->next) {
        run->advice.prefetched = location;
    }
    return sim_submit(op);
}

/* Nobody may use the memory meanwhile: to the checks it is a write. */
static CUresult discard(CUdeviceptr start, size_t size_bytes, struct sim_queue *queue)
{
    struct sim_op *op = sim_op_create(queue, "discard");

    if (!SIM_DEFECT(discards_are_no_writes)) {
        sim_op_reach(op, start, size_bytes, true);
    }
    return sim_submit(op);
}

CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                   unsigned int flags, CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result == CUDA_SUCCESS && flags != 0) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        result = check_location(location);
    }
    if (result == CUDA_SUCCESS) {
        result = check_all(&devPtr, &count, 1);
    }
    return result == CUDA_SUCCESS ? prefetch(devPtr, count, location, queue) : result;
}

static CUmemLocation location_of(CUdevice device)
{
    return (CUmemLocation){.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
                                                           : CU_MEM_LOCATION_TYPE_DEVICE,
                           .id = device};
}

CUresult sim_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                                CUstream hStream)
{
    return sim_cuMemPrefetchAsync_v2(devPtr, count, location_of(dstDevice), 0, hStream);
}

CUresult sim_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
    return sim_cuMemAdvise_v2(devPtr, count, advice, location_of(device));
}

static CUresult enter_batch(CUstream stream, const CUdeviceptr *starts, const size_t *sizes,
                            size_t count, unsigned long long flags, struct sim_queue **queue_out)
{
    CUresult result = sim_enter_stream(stream, queue_out);

    if (result == CUDA_SUCCESS &&
        (starts == NULL || sizes == NULL || count == 0 || flags != 0 || (*queue_out)->is_legacy)) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    return result == CUDA_SUCCESS ? check_all(starts, sizes, count) : result;
}

/* Location k is for what begins with operation indices[k]. */
static CUresult check_locations(const CUmemLocation *locations, const size_t *indices,
                                size_t location_count, size_t count)
{
    CUresult result = CUDA_SUCCESS;

    if (locations == NULL || indices == NULL || location_count == 0 || location_count > count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < location_count && result == CUDA_SUCCESS; i++) {
        bool is_in_order = i == 0 ? indices[i] == 0 : indices[i] > indices[i - 1];
        result = is_in_order && indices[i] < count ? check_location(locations[i])
                                                   : CUDA_ERROR_INVALID_VALUE;
    }
    return result;
}

/* Whole batches of discards, then of prefetches. */
static CUresult run_batch(CUstream stream, CUdeviceptr *starts, size_t *sizes, size_t count,
                          CUmemLocation *locations, size_t *indices, size_t location_count,
                          unsigned long long flags, bool is_discarding)
{
    struct sim_queue *queue;
    CUresult result = enter_batch(stream, starts, sizes, count, flags, &queue);
    size_t location = 0;

    if (result == CUDA_SUCCESS) {
        result = check_locations(locations, indices, location_count, count);
    }
    for (size_t i = 0; i < count && is_discarding && result == CUDA_SUCCESS; i++) {
        result = discard(starts[i], sizes[i], queue);
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        location += location + 1 < location_count && indices[location + 1] == i;
        result = prefetch(starts[i], sizes[i], locations[location], queue);
    }
    return result;
}

CUresult sim_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                     CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                     size_t numPrefetchLocs, unsigned long long flags,
                                     CUstream hStream)
{
    return run_batch(hStream, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs,
                     flags, false);
}

CUresult sim_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                               CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                               size_t numPrefetchLocs, unsigned long long flags,
                                               CUstream hStream)
{
    return run_batch(hStream, dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs,
                     flags, true);
}

CUresult sim_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
                                    unsigned long long flags, CUstream hStream)
{
    struct sim_queue *queue;
    CUresult result = enter_batch(hStream, dptrs, sizes, count, flags, &queue);

    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = discard(dptrs[i], sizes[i], queue);
    }
    return result;
}

/* What all of the range has in common; a location that is not the same everywhere is none. */
static struct advice common_advice(uint64_t start, uint64_t end)
{
    struct run *run = take_runs(start, end);
    struct advice all = run->advice;

    for (; run != NULL && run->start < end; run = run->next) {
        const struct advice *own = &run->advice;
        all.is_read_mostly &= own->is_read_mostly;
        all.accessed_by &= own->accessed_by;
        if (all.preferred.type != own->preferred.type || all.preferred.id != own->preferred.id) {
            all.preferred = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
        }
        if (all.prefetched.type != own->prefetched.type ||
            all.prefetched.id != own->prefetched.id) {
            all.prefetched = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
        }
    }
    return all;
}

/* As a device's number, or one of the two that mean the host and none. */
static int number_of(CUmemLocation location)
{
    return location.type == CU_MEM_LOCATION_TYPE_INVALID  ? CU_DEVICE_INVALID
           : location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id
                                                          : CU_DEVICE_CPU;
}

static CUresult put_accessed_by(int *numbers, size_t size_bytes, unsigned accessed_by)
{
    size_t room = size_bytes / sizeof(*numbers);
    size_t count = 0;

    if (size_bytes % sizeof(*numbers) != 0 || room == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (int bit = 0; bit <= SIM_MAX_DEVICES && count < room; bit++) {
        if ((accessed_by >> bit & 1) != 0) {
            numbers[count++] = bit == SIM_MAX_DEVICES ? CU_DEVICE_CPU : bit;
        }
    }
    while (count < room) {
        numbers[count++] = CU_DEVICE_INVALID;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
                                    CUdeviceptr devPtr, size_t count)
{
    struct CUctx_st *context;
    CUresult result = sim_enter(&context);
    int *number = data;

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (data == NULL || !is_managed(devPtr, count) ||
        (attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && dataSize != sizeof(*number))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct advice advice = common_advice(devPtr, devPtr + count);
    switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *number = advice.is_read_mostly; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *number = number_of(advice.preferred); break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        return put_accessed_by(data, dataSize, advice.accessed_by);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *number = number_of(advice.prefetched);
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        *number = (int)advice.preferred.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: *number = advice.preferred.id; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *number = (int)advice.prefetched.type;
        break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: *number = advice.prefetched.id; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRangeGetAttributes(void **data, size_t *dataSizes,
                                     CUmem_range_attribute *attributes, size_t numAttributes,
                                     CUdeviceptr devPtr, size_t count)
{
    CUresult result = data == NULL || dataSizes == NULL || attributes == NULL || numAttributes == 0
                          ? CUDA_ERROR_INVALID_VALUE
                          : CUDA_SUCCESS;

    for (size_t i = 0; i < numAttributes && result == CUDA_SUCCESS; i++) {
        result = sim_cuMemRangeGetAttribute(data[i], dataSizes[i], attributes[i], devPtr, count);
    }
    return result;
}
