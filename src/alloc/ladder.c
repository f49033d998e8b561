/* SPDX-License-Identifier: MIT */
#include "alloc/ladder.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/expandable.h"
#include "alloc/fence.h"
#include "alloc/private_pool.h"
#include "alloc/stream_use.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

/* Frees memory of one generation; a context that is gone has taken it along. True when the context
 * turns out to have failed. A free that fails otherwise leaves the memory out of our books all the
 * same. The lock is dropped meanwhile. */
static bool free_memory(struct cca_heap *heap, uint64_t addr, uint64_t generation)
{
    struct cca_status status = cca_status_ok();
    int depth = cca_heap_step_out(heap);
    if (cca_device_call_begin(heap)) {
        if (atomic_load(&heap->generation) == generation) {
            status = heap->device.ops->mem_free(heap->device.self, addr);
        }
        cca_device_call_end(heap);
    }
    cca_heap_step_in(heap, depth);
    return status.kind == CCA_FATAL;
}

/* Frees the memory of detached segments. The driver's free may wait for the whole device: call it
 * where the program's own call would wait, or when the device is seen to be idle. */
static size_t free_detached(struct cca_heap *heap, struct cca_detached *detached)
{
    size_t bytes = 0;
    uint64_t generation = heap->generation;
    CCA_LIST_EACH (link, &detached->segments) {
        struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
        uint64_t began_ns = cca_clock_ns();
        bytes += segment->bytes;
        if (free_memory(heap, segment->addr, generation) && heap->generation == generation) {
            heap->state = CCA_HEAP_DEAD;
        }
        cca_heap_forget_segment(heap, segment, cca_clock_ns() - began_ns);
    }
    return bytes + cca_expandable_unmap(heap, &detached->pages);
}

/* Nothing goes back to the driver while a capture is open. */
static bool can_release(const struct cca_heap *heap)
{
    return heap->state == CCA_HEAP_UP && heap->captures == 0 &&
           !cca_gate_is_closed(&heap->allocator->gate);
}

/* Of one private pool, or with NULL of all. */
static size_t release_before(struct cca_heap *heap, struct cca_private_pool *only,
                             uint64_t before_seq)
{
    struct cca_detached detached;
    cca_heap_detached_init(&detached);
    if (!can_release(heap)) {
        return 0;
    }
    if (only != NULL) {
        cca_heap_detach_pool(heap, only, before_seq, cca_clock_ns(), &detached);
    } else {
        cca_heap_detach_releasable(heap, before_seq, cca_clock_ns(), &detached);
    }
    return free_detached(heap, &detached);
}

/* Whether a free by the driver would return at once: the device is seen to be done with everything
 * submitted before. A core in stream order leaves the waiting to the driver; where the driver has
 * no context events nothing can be seen, and READY memory goes back as natively, with its wait. */
static bool is_idle_now(struct cca_heap *heap)
{
    uint64_t generation = heap->generation;
    if (!heap->rekeys || !heap->device.has_context_events) {
        return true;
    }
    struct cca_proof proof = cca_fence_prove(heap);
    if (proof.id != 0 && heap->generation == generation) {
        cca_fence_poll(heap, CCA_FENCE_ALL);
    }
    return heap->generation == generation && cca_fence_is_proven(heap, &proof);
}

size_t cca_ladder_release_ready(struct cca_heap *heap)
{
    return release_before(heap, NULL, 0);
}

/* Whether nothing that is not over can use the block any more. */
static bool is_usable_by_all(const struct cca_heap *heap, const struct cca_block *block)
{
    return block->key == CCA_KEY_READY || !heap->rekeys;
}

/* Whether the block may go back to the driver unwaited: what streams hold may still be in use, but
 * for a core driven in stream order, where the driver's own free waits. */
static bool may_release(const struct cca_heap *heap, const struct cca_block *block)
{
    return cca_block_is_whole(block) && is_usable_by_all(heap, block);
}

/* The block of the pool with most to give back, or NULL. */
static struct cca_block *largest_idle(struct cca_heap *heap, struct cca_block_pool *pool)
{
    struct cca_block *largest = NULL;
    size_t most = 0;
    for (struct cca_block *block = cca_block_pool_first(pool); block != NULL;
         block = cca_block_pool_next(block)) {
        size_t bytes = is_usable_by_all(heap, block) ? cca_block_releasable_bytes(block) : 0;
        largest = bytes > most ? block : largest;
        most = bytes > most ? bytes : most;
    }
    return largest;
}

static size_t idle_bytes(const struct cca_heap *heap)
{
    return heap->pools[0].whole_bytes + heap->pools[1].whole_bytes;
}

void cca_ladder_hold_cache_limit(struct cca_heap *heap)
{
    size_t limit = heap->allocator->settings.cache_limit;
    struct cca_detached detached;
    cca_heap_detached_init(&detached);
    if (!can_release(heap) || idle_bytes(heap) <= limit || !is_idle_now(heap)) {
        return;
    }
    for (size_t idle = 0; (idle = idle_bytes(heap)) > limit;) {
        struct cca_block *block = largest_idle(heap, &heap->pools[0]);
        block = block != NULL ? block : largest_idle(heap, &heap->pools[1]);
        if (block == NULL) {
            break;
        }
        uint64_t now_ns = cca_clock_ns();
        if (cca_block_is_whole(block)) {
            cca_heap_detach_segment(heap, block->segment, now_ns, &detached);
        } else if (!cca_expandable_detach(heap, block, idle - limit, now_ns, &detached.pages)) {
            break;
        }
    }
    free_detached(heap, &detached);
}

/* Releases the candidates of at least average age; their number and the sum of their ages are kept
 * up to date. False when there was none. */
static bool collect_old(struct cca_heap *heap, double *ages, size_t *count,
                        struct cca_detached *out)
{
    struct cca_block_pool *pool = &heap->pools[0];
    double average = *ages / (double)*count;
    struct cca_block *block = cca_block_pool_first(pool);
    bool has_released = false;
    while (block != NULL) {
        struct cca_block *next = cca_block_pool_next(block);
        double age = cca_block_pool_age(pool, block);
        if (may_release(heap, block) && age >= average) {
            *ages -= age;
            --*count;
            has_released = true;
            cca_heap_detach_segment(heap, block->segment, cca_clock_ns(), out);
        }
        block = next;
    }
    return has_released;
}

/* Collects idle large segments, the oldest first, while more than the threshold's part of the limit
 * is held. */
static void collect(struct cca_heap *heap)
{
    double threshold = heap->allocator->policy.gc_threshold, ages = 0;
    struct cca_block_pool *pool = &heap->pools[0];
    struct cca_detached detached;
    size_t count = 0;
    cca_heap_detached_init(&detached);
    if (heap->limit_bytes == CCA_NO_LIMIT || !(threshold > 0) || !can_release(heap)) {
        return;
    }
    size_t wanted = (size_t)(threshold * (double)heap->limit_bytes);
    if (heap->reserved_bytes <= wanted || !is_idle_now(heap)) {
        return;
    }
    for (struct cca_block *block = cca_block_pool_first(pool); block != NULL;
         block = cca_block_pool_next(block)) {
        count += may_release(heap, block);
        ages += may_release(heap, block) ? cca_block_pool_age(pool, block) : 0;
    }
    while (heap->reserved_bytes > wanted && count > 0 &&
           collect_old(heap, &ages, &count, &detached)) {
    }
    free_detached(heap, &detached);
}

static void report_plain(struct cca_heap *heap, enum cca_event_kind kind)
{
    struct cca_event event = cca_heap_event(kind, NULL, cca_clock_ns());
    cca_heap_report(heap, &event);
}

static void poll_all(struct cca_heap *heap)
{
    cca_fence_poll(heap, CCA_FENCE_ALL);
    cca_stream_use_poll(heap);
}

/* Gives back what a proof allows. Without one nothing goes back, for the driver's free might wait
 * without end; but see is_idle_now about drivers that can prove nothing. A core driven in stream
 * order gives back all that is free, as the driver's own free waits. */
static size_t release_proven(struct cca_heap *heap, struct cca_private_pool *only,
                             const struct cca_proof *proof)
{
    if (!heap->rekeys) {
        return release_before(heap, only, UINT64_MAX);
    }
    if (cca_fence_is_proven(heap, proof)) {
        return release_before(heap, only, proof->before_seq);
    }
    return heap->device.has_context_events ? 0 : release_before(heap, only, 0);
}

/* Waits at most so long for everything freed so far, then releases. */
static size_t release_waiting(struct cca_heap *heap, struct cca_private_pool *only,
                              uint64_t wait_ms)
{
    if (heap->captures > 0) {
        return 0;
    }
    uint64_t generation = heap->generation, pause_us = 0;
    uint64_t deadline_ns = cca_clock_ns() + wait_ms * 1000000;
    report_plain(heap, CCA_EVENT_SYNC);
    struct cca_proof proof = cca_fence_prove(heap);
    while (proof.id != 0 && heap->generation == generation && heap->state == CCA_HEAP_UP) {
        poll_all(heap);
        bool is_over = cca_fence_is_proven(heap, &proof) && cca_stream_use_is_idle(heap);
        if (is_over || cca_clock_ns() >= deadline_ns) {
            break;
        }
        cca_fence_pause(heap, &pause_us);
    }
    return heap->generation == generation ? release_proven(heap, only, &proof) : 0;
}

size_t cca_ladder_release(struct cca_heap *heap, uint64_t wait_ms)
{
    return release_waiting(heap, NULL, wait_ms);
}

size_t cca_ladder_release_pool(struct cca_heap *heap, struct cca_private_pool *pool,
                               uint64_t wait_ms)
{
    pool->holders++; /* the lock is dropped meanwhile */
    size_t bytes = pool->uses == 0 ? release_waiting(heap, pool, wait_ms) : 0;
    pool->holders--;
    cca_private_pool_sweep(heap);
    return bytes;
}

static bool is_over_limit(const struct cca_heap *heap, size_t bytes)
{
    return bytes > heap->limit_bytes || heap->reserved_bytes > heap->limit_bytes - bytes;
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
    if (is_over_limit(heap, bytes)) {
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

/* A segment grows where settings and device allow it, else there is a new one. */
static struct cca_status grow(struct cca_heap *heap, const struct cca_request *request,
                              size_t rounded, struct cca_block **block_out)
{
    bool is_dedicated = request->pool != NULL && request->pool->is_dedicated;
    size_t bytes = cca_policy_segment_bytes(
        is_dedicated ? &heap->allocator->dedicated : &heap->allocator->policy, rounded);
    uint64_t generation = heap->generation;
    if (heap->expands && !is_dedicated && !is_over_limit(heap, bytes)) {
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

/* The last rung: a segment for this request alone. Where the last megabytes of a device are wanted
 * a segment of the usual size may not fit although the request does, and natively it would be
 * served. PyTorch fails here, and so does the core in stream order. */
static struct cca_status grow_exactly(struct cca_heap *heap, const struct cca_request *request,
                                      size_t rounded, struct cca_block **block_out)
{
    size_t usual = cca_policy_segment_bytes(&heap->allocator->policy, rounded);
    size_t bytes = (rounded + CCA_LARGE_ROUND - 1) / CCA_LARGE_ROUND * CCA_LARGE_ROUND;
    if (!heap->rekeys || (bytes >= usual && !heap->expands)) {
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    return grow_by(heap, request, rounded, bytes, block_out);
}

/* Without an oversize rule there is nothing to gain here. With one: the smallest oversize block
 * that is big enough goes back, else the largest ones until their sum is. True when enough did. */
static bool release_oversize(struct cca_heap *heap, const struct cca_request *request,
                             size_t rounded)
{
    const struct cca_policy *policy = &heap->allocator->policy;
    if (policy->max_split_size == CCA_NO_LIMIT || !can_release(heap) || !is_idle_now(heap)) {
        return false;
    }
    size_t wanted = rounded > policy->max_split_size ? rounded : policy->max_split_size, found = 0;
    struct cca_block_pool *pool = cca_heap_pool(heap, request->pool, cca_policy_is_small(rounded));
    /* Memory in a stream's order may still be in use; only what is READY may go back unwaited. */
    cca_key key = heap->rekeys ? CCA_KEY_READY : request->key;
    struct cca_detached detached;
    cca_heap_detached_init(&detached);
    struct cca_block *block = cca_block_pool_lower_bound(pool, key, wanted);
    while (block != NULL && cca_segment_is_expandable(block->segment)) {
        block = cca_block_pool_next_of_key(block);
    }
    if (block != NULL && !cca_block_is_split(block)) {
        found = block->bytes;
        cca_heap_detach_segment(heap, block->segment, cca_clock_ns(), &detached);
    }
    block = found < wanted ? cca_block_pool_largest(pool, key) : NULL;
    while (block != NULL && found < wanted && block->bytes >= policy->max_split_size) {
        struct cca_block *smaller = cca_block_pool_previous_of_key(block);
        if (cca_block_is_whole(block)) {
            found += block->bytes;
            cca_heap_detach_segment(heap, block->segment, cca_clock_ns(), &detached);
        }
        block = smaller;
    }
    free_detached(heap, &detached);
    return found >= wanted;
}

/* Waits, within the time allowed, until a fence gives back a block that fits or everything freed so
 * far is proven over; then releases all that is free and looks once more. */
static struct cca_block *wait_and_release(struct cca_heap *heap, const struct cca_request *request,
                                          size_t rounded)
{
    const struct cca_policy *policy = &heap->allocator->policy;
    uint64_t generation = heap->generation, pause_us = 0;
    uint64_t deadline_ns = cca_clock_ns() + heap->allocator->config->oom_wait_ms * 1000000;
    struct cca_block *block = NULL;

    report_plain(heap, CCA_EVENT_SYNC);
    struct cca_proof proof = cca_fence_prove(heap);
    for (;;) {
        if (heap->generation != generation) {
            return NULL;
        }
        poll_all(heap);
        if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
            return NULL;
        }
        /* In stream order what became free goes back before it is looked at, as in PyTorch. */
        block = heap->rekeys ? cca_heap_take_cached(heap, policy, request, rounded, cca_clock_ns())
                             : NULL;
        if (block != NULL) {
            return block;
        }
        bool is_over = (cca_fence_is_proven(heap, &proof) ||
                        (proof.id == 0 && cca_list_is_empty(&heap->fences))) &&
                       cca_stream_use_is_idle(heap);
        if ((is_over && heap->releases_in_flight == 0) || cca_clock_ns() >= deadline_ns) {
            break;
        }
        if (is_over) {
            /* Another thread is giving memory back: what we ask for may be there in a moment. */
            release_proven(heap, NULL, &proof);
        }
        cca_fence_pause(heap, &pause_us);
    }
    release_proven(heap, NULL, &proof);
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return NULL;
    }
    return cca_heap_take_cached(heap, policy, request, rounded, cca_clock_ns());
}

/* With the lock dropped. */
static void tell_observers(struct cca_heap *heap, size_t rounded, size_t free_bytes,
                           bool is_rejection)
{
    struct cca_oom_info info = {
        .ordinal = heap->device.ordinal,
        .is_rejection = is_rejection,
        .bytes = cca_policy_segment_bytes(&heap->allocator->policy, rounded),
        .limit_bytes = heap->limit_bytes != CCA_NO_LIMIT ? heap->limit_bytes : heap->total_bytes,
        .reserved_bytes = heap->reserved_bytes,
        .free_bytes = free_bytes,
        .total_bytes = heap->total_bytes,
    };
    int depth = cca_heap_step_out(heap);
    cca_callbacks_tell_oom(&heap->allocator->callbacks, &info);
    cca_heap_step_in(heap, depth);
}

static void report_oom(struct cca_heap *heap, const struct cca_request *request, size_t rounded)
{
    uint64_t generation = heap->generation;
    size_t free_bytes = 0, total_bytes = 0;
    int depth = cca_heap_step_out(heap);
    heap->device.ops->mem_info(heap->device.self, &free_bytes, &total_bytes);
    cca_heap_step_in(heap, depth);
    if (heap->generation != generation) {
        return;
    }
    struct cca_event event = cca_heap_event(CCA_EVENT_OOM, request, cca_clock_ns());
    event.addr = free_bytes;
    event.requested_bytes = event.block_bytes = rounded;
    cca_heap_report(heap, &event);
    tell_observers(heap, rounded, free_bytes, false);
}

static struct cca_status give_up(struct cca_heap *heap, const struct cca_request *request,
                                 size_t rounded, struct cca_status status)
{
    if (heap->state == CCA_HEAP_DEAD) {
        return (struct cca_status){CCA_FATAL, status.raw};
    }
    if (heap->state != CCA_HEAP_UP || status.kind != CCA_NO_MEMORY) {
        return status.kind == CCA_FATAL ? status : (struct cca_status){CCA_UNSUPPORTED, status.raw};
    }
    report_oom(heap, request, rounded);
    return status;
}

struct cca_status cca_ladder_climb(struct cca_heap *heap, const struct cca_request *request,
                                   size_t rounded, struct cca_block **block_out)
{
    uint64_t generation = heap->generation;
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    if (cca_fence_reclaim(heap)) {
        *block_out = cca_heap_take_cached(heap, &heap->allocator->policy, request, rounded,
                                          cca_clock_ns());
        if (*block_out != NULL) {
            return cca_status_ok();
        }
    }
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return give_up(heap, request, rounded, status);
    }
    collect(heap);
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return give_up(heap, request, rounded, status);
    }
    if (heap->allocator->settings.oom_reject &&
        is_over_limit(heap, cca_policy_segment_bytes(&heap->allocator->policy, rounded))) {
        report_plain(heap, CCA_EVENT_REJECT);
        tell_observers(heap, rounded, 0, true);
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    status = grow(heap, request, rounded, block_out);
    if (status.kind != CCA_NO_MEMORY || heap->generation != generation) {
        return status.kind == CCA_OK ? status : give_up(heap, request, rounded, status);
    }
    if (request->pool == NULL) {
        *block_out = cca_heap_borrow(heap, &heap->allocator->policy, request, rounded,
                                     cca_clock_ns());
        if (*block_out != NULL) {
            return cca_status_ok();
        }
    }
    if (heap->captures > 0) {
        return give_up(heap, request, rounded, status);
    }
    if (heap->rekeys && heap->device_bytes != 0 && rounded > heap->device_bytes) {
        return give_up(heap, request, rounded, status); /* nothing given back could make room */
    }
    if (release_oversize(heap, request, rounded) && heap->generation == generation) {
        status = grow(heap, request, rounded, block_out);
        if (status.kind != CCA_NO_MEMORY || heap->generation != generation) {
            return status.kind == CCA_OK ? status : give_up(heap, request, rounded, status);
        }
    }
    *block_out = wait_and_release(heap, request, rounded);
    if (*block_out != NULL) {
        return cca_status_ok();
    }
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return give_up(heap, request, rounded, (struct cca_status){CCA_UNSUPPORTED, 0});
    }
    report_plain(heap, CCA_EVENT_RETRY);
    status = grow(heap, request, rounded, block_out);
    if (status.kind == CCA_NO_MEMORY && heap->generation == generation) {
        status = grow_exactly(heap, request, rounded, block_out);
    }
    return status.kind == CCA_OK ? status : give_up(heap, request, rounded, status);
}
