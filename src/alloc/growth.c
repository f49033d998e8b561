/* SPDX-License-Identifier: MIT */
#include "alloc/growth.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/expandable.h"
#include "alloc/private_pool.h"
#include "alloc/siblings.h"
#include "base/clock.h"
#include "base/log.h"

bool cca_growth_is_over_limit(struct cca_heap *heap, size_t bytes)
{
    return bytes > heap->limit_bytes || cca_siblings_reserved(heap) > heap->limit_bytes - bytes;
}

typedef struct cca_status (*mem_alloc_fn)(void *self, size_t bytes, uint64_t *addr_out);

/* Graph memory is legal to ask for in a capture, and a caller that captures says so. */
static mem_alloc_fn mem_alloc_of(const struct cca_heap *heap, const struct cca_request *request)
{
    const struct cca_device_ops *ops = heap->device.ops;
    return request->api == CCA_API_OWN && ops->mem_alloc_relaxed != NULL ? ops->mem_alloc_relaxed
                                                                         : ops->mem_alloc;
}

/* One driver allocation of `bytes`. CCA_NO_MEMORY also when the limit forbids it. */
static struct cca_status grow_by(struct cca_heap *heap, const struct cca_request *request,
                                 size_t rounded, size_t bytes, struct cca_block **block_out)
{
    const struct cca_policy *policy = &heap->allocator->policy;
    if (cca_growth_is_over_limit(heap, bytes)) {
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    /* Before the driver is asked: memory without a record would have to go back at once, which a
     * capture forbids. */
    struct cca_segment *records = cca_heap_take_records(heap);
    if (records == NULL) {
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    uint64_t generation = heap->generation, began_ns = cca_clock_ns();
    struct cca_growth growth = {
        .segment = records, .bytes = bytes, .is_contended = heap->in_flight++ != 0};
    unsigned growths = ++heap->growths;
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    heap->reserved_bytes += bytes;
    heap->in_flight_bytes += bytes;
    int depth = cca_heap_step_out(heap);
    if (cca_device_call_begin(heap)) {
        status = mem_alloc_of(heap, request)(heap->device.self, bytes, &growth.addr);
        cca_device_call_end(heap);
    }
    cca_heap_step_in(heap, depth);
    growth.is_contended |= heap->growths != growths;
    heap->in_flight--;
    heap->in_flight_bytes -= bytes;
    if (heap->generation != generation || status.kind != CCA_OK) {
        cca_heap_give_records(heap, records);
    }
    if (heap->generation != generation) {
        heap->reserved_bytes -= bytes; /* the memory went with its context */
        return (struct cca_status){CCA_UNSUPPORTED, 0};
    }
    if (status.kind != CCA_OK) {
        heap->reserved_bytes -= bytes;
        if (status.kind == CCA_FATAL) {
            heap->state = CCA_HEAP_DEAD;
        }
        return status;
    }
    uint64_t now_ns = cca_clock_ns();
    growth.took_ns = now_ns - began_ns;
    *block_out = cca_heap_add_segment(heap, policy, request, rounded, &growth, now_ns);
    return cca_status_ok();
}

/* Writing may block, so not under the lock. */
static void say_not_mapped(struct cca_heap *heap, int raw)
{
    static int said;
    int depth = cca_heap_step_out(heap);
    cca_log_once(&said, CCA_LOG_WARN,
                 "memory cannot be mapped now (driver error %d): segments that do not expand serve "
                 "instead",
                 raw);
    cca_heap_step_in(heap, depth);
}

/* What was freed beside a capture can go back to the driver only with a whole segment, as unmapping
 * waits for nothing: once much of that waits, segments that could go back are better. */
static bool may_expand(const struct cca_heap *heap)
{
    bool is_crowded = heap->pending_bytes > heap->pending_max_bytes;
    return heap->expands && !(is_crowded && cca_gate_is_closed(&heap->allocator->gate));
}

struct cca_status cca_growth_usual(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded, struct cca_block **block_out)
{
    bool is_dedicated = request->pool != NULL && request->pool->is_dedicated;
    size_t bytes = cca_policy_segment_bytes(
        is_dedicated ? &heap->allocator->dedicated : &heap->allocator->policy, rounded);
    uint64_t generation = heap->generation;
    if (may_expand(heap) && !is_dedicated && !cca_growth_is_over_limit(heap, bytes)) {
        struct cca_status status = cca_expandable_grow(heap, request, rounded, block_out);
        if (status.kind != CCA_UNSUPPORTED || heap->generation != generation ||
            heap->state != CCA_HEAP_UP) {
            return status;
        }
        say_not_mapped(heap, status.raw);
        if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
            return status;
        }
    }
    return grow_by(heap, request, rounded, bytes, block_out);
}

struct cca_status cca_growth_exact(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded, struct cca_block **block_out)
{
    size_t usual = cca_policy_segment_bytes(&heap->allocator->policy, rounded);
    size_t bytes = (rounded + CCA_LARGE_ROUND - 1) / CCA_LARGE_ROUND * CCA_LARGE_ROUND;
    if (!heap->rekeys || (bytes >= usual && !heap->expands)) {
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    return grow_by(heap, request, rounded, bytes, block_out);
}
