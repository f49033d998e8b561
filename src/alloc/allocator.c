/* SPDX-License-Identifier: MIT */
#include "alloc/allocator.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/capture.h"
#include "alloc/collect.h"
#include "alloc/device_call.h"
#include "alloc/fence.h"
#include "alloc/heap_parts.h"
#include "alloc/ladder.h"
#include "alloc/look_up.h"
#include "alloc/private_pool.h"
#include "alloc/release.h"
#include "alloc/stream_use.h"
#include "alloc/verify.h"
#include "base/clock.h"

enum { POLL_PER_ALLOC = 4 };

int cca_allocator_create(const struct cca_config *config, struct cca_allocator **allocator_out)
{
    struct cca_allocator *allocator = cca_sysmem_map(sizeof(*allocator));
    if (allocator == NULL) {
        return -ENOMEM;
    }
    allocator->config = config;
    allocator->settings = *config;
    allocator->gives_dedicated = config->ipc == CCA_IPC_DEDICATED;
    cca_policy_init(&allocator->policy, config);
    cca_policy_init_dedicated(&allocator->dedicated, config);
    cca_recording_init(allocator, config);
    cca_lock_init(&allocator->lock, CCA_RANK_ALLOCATOR);
    cca_segment_map_init(&allocator->segments);
    cca_gate_init(&allocator->gate);
    cca_callbacks_init(&allocator->callbacks);
    cca_pool_init(&allocator->heap_records, sizeof(struct cca_heap));
    *allocator_out = allocator;
    return 0;
}

void cca_allocator_destroy(struct cca_allocator *allocator)
{
    if (allocator == NULL) {
        return;
    }
    CCA_EACH_HEAP (heap, allocator) {
        cca_heap_fini(heap);
    }
    cca_pool_fini(&allocator->heap_records);
    cca_sysmem_unmap(allocator, sizeof(*allocator));
}

/* An address that comes back although its free was never seen: the old block is forgotten. */
static void forget_stale(struct cca_heap *heap, uint64_t addr, uint64_t now_ns)
{
    struct cca_block *stale = cca_block_map_find(&heap->live, addr);
    if (stale == NULL || !stale->segment->is_passed) {
        return;
    }
    (void)cca_block_map_remove(&heap->live, addr);
    struct cca_request request = {.key = stale->key, .thread = stale->thread};
    cca_heap_remove_passed(heap, stale, &request, now_ns);
}

/* The block becomes findable by its address. False when memory for the map is refused. Called with
 * the heap lock held. */
static bool publish(struct cca_heap *heap, struct cca_block *block, uint64_t now_ns)
{
    int error = cca_block_map_insert(&heap->live, block);
    if (CCA_UNLIKELY(error == -EEXIST)) {
        forget_stale(heap, block->addr, now_ns);
        error = cca_block_map_insert(&heap->live, block);
    }
    cca_look_up_note(heap, block->addr);
    return error == 0;
}

/* A request that no memory can serve: counted and traced, the driver is not asked. */
static struct cca_status refuse(struct cca_heap *heap, const struct cca_request *request)
{
    struct cca_event event = cca_heap_event(CCA_EVENT_OOM, request, cca_clock_ns());
    event.requested_bytes = event.block_bytes = request->bytes;
    cca_heap_report(heap, &event);
    return (struct cca_status){CCA_NO_MEMORY, 0};
}

static struct cca_status state_status(const struct cca_heap *heap)
{
    return (struct cca_status){heap->state == CCA_HEAP_DEAD ? CCA_FATAL : CCA_UNSUPPORTED, 0};
}

/* On a miss: whoever has registered gives memory back, and the cache is searched again. */
static struct cca_block *ask_for_memory(struct cca_heap *heap, const struct cca_request *request,
                                        size_t rounded)
{
    struct cca_callbacks *callbacks = &heap->allocator->callbacks;
    const struct cca_policy *policy = &heap->allocator->policy;
    uint64_t generation = heap->generation;
    if (atomic_load(&callbacks->free_count) == 0) {
        return NULL;
    }
    int depth = cca_heap_step_out(heap), ordinal = heap->device.ordinal;
    bool has_freed = cca_callbacks_free_memory(callbacks, ordinal, rounded);
    cca_heap_step_in(heap, depth);
    if (!has_freed || heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return NULL;
    }
    cca_heap_count_search(heap, policy, request, rounded);
    return cca_heap_take_cached(heap, policy, request, rounded, cca_clock_ns());
}

/* What follows a miss. */
static struct cca_status serve_miss(struct cca_heap *heap, const struct cca_request *request,
                                    size_t rounded, struct cca_block **block_out)
{
    *block_out = ask_for_memory(heap, request, rounded);
    if (*block_out != NULL) {
        return cca_status_ok();
    }
    return heap->state == CCA_HEAP_UP ? cca_ladder_climb(heap, request, rounded, block_out)
                                      : state_status(heap);
}

/* Out of the cache, else by what follows a miss. The pool is held meanwhile, as the lock may be
 * dropped. */
static struct cca_status serve(struct cca_heap *heap, const struct cca_request *request,
                               struct cca_block **block_out)
{
    const struct cca_policy *policy = &heap->allocator->policy;
    size_t rounded = cca_policy_round(policy, request->bytes);
    cca_heap_count_search(heap, policy, request, rounded);
    *block_out = cca_heap_take_cached(heap, policy, request, rounded, cca_clock_ns());
    if (*block_out != NULL) {
        return cca_status_ok();
    }
    if (request->pool == NULL) {
        return serve_miss(heap, request, rounded, block_out);
    }
    request->pool->holders++;
    struct cca_status status = serve_miss(heap, request, rounded, block_out);
    request->pool->holders--;
    cca_private_pool_sweep(heap);
    return status;
}

/* Blocks that a handle for other processes may be asked for: those of calls without a stream. */
static bool takes_dedicated(const struct cca_heap *heap, const struct cca_request *request)
{
    return atomic_load_explicit(&heap->allocator->gives_dedicated, memory_order_relaxed) &&
           request->key == CCA_KEY_READY && request->api != CCA_API_OWN &&
           request->bytes >= CCA_DEDICATED_MIN;
}

static struct cca_status alloc_locked(struct cca_heap *heap, struct cca_request *request,
                                      struct cca_block **block_out)
{
    if (heap->state != CCA_HEAP_UP) {
        return state_status(heap);
    }
    if (request->bytes >= CCA_REQUEST_LIMIT) {
        return refuse(heap, request);
    }
    if (cca_fence_is_awaited(heap)) {
        cca_fence_poll(heap, POLL_PER_ALLOC);
        if (heap->state != CCA_HEAP_UP) {
            return state_status(heap);
        }
    }
    if (!cca_list_is_empty(&heap->use_queues)) {
        cca_stream_use_poll(heap);
        if (heap->state != CCA_HEAP_UP) {
            return state_status(heap);
        }
    }
    if (heap->captures > 0 && request->api == CCA_API_OWN) {
        cca_capture_look(heap, request);
        if (heap->state != CCA_HEAP_UP) {
            return state_status(heap);
        }
    }
    if (!cca_list_is_empty(&heap->routes)) {
        request->pool = cca_private_pool_route(heap, request);
    }
    if (request->pool == NULL && takes_dedicated(heap, request)) {
        request->pool = cca_private_pool_dedicated(heap);
    }
    return serve(heap, request, block_out);
}

/* Caching ends over calls of the program that are not handled; callers of cca_my_malloc say
 * themselves on which stream and in which capture they are, and are served on. */
static bool serves(const struct cca_allocator *allocator, const struct cca_request *request)
{
    return cca_allocator_is_serving(allocator) ||
           (request->api == CCA_API_OWN && allocator->config->mode == CCA_MODE_CACHE);
}

struct cca_status cca_allocator_alloc(struct cca_allocator *allocator, struct cca_heap *heap,
                                      const struct cca_request *request, uint64_t *addr_out)
{
    if (!serves(allocator, request)) {
        return (struct cca_status){CCA_UNSUPPORTED, 0};
    }
    struct cca_block *block = NULL;
    struct cca_request routed = *request;
    routed.pool = NULL;
    routed.capture = 0;
    cca_lock_take(&heap->lock);
    struct cca_status status = alloc_locked(heap, &routed, &block);
    if (status.kind == CCA_OK) {
        uint64_t addr = block->addr;
        if (publish(heap, block, block->alloc_time_ns)) {
            *addr_out = addr;
        } else {
            cca_heap_request_free(heap, block, request, cca_clock_ns());
            cca_heap_complete_free(heap, block, request->key, cca_clock_ns());
            status = (struct cca_status){CCA_NO_MEMORY, 0};
        }
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
    return status;
}

/* Whether the program's own call would wait for the device: cudaFree does, the asynchronous calls
 * do not, and neither does cudaFree for memory that was allocated asynchronously. */
static bool waits_natively(const struct cca_block *block, const struct cca_request *request)
{
    bool is_async = request->api == CCA_API_FREE_ASYNC || request->api == CCA_API_DRIVER_FREE_ASYNC;
    return !is_async && request->key == CCA_KEY_READY && block->key == CCA_KEY_READY;
}

/* A free in stream order: at once, but for uses on other streams. */
static void free_in_order(struct cca_heap *heap, struct cca_block *block, cca_key key,
                          struct cca_stream_use *uses)
{
    uint64_t generation = heap->generation;
    struct cca_free_markers *markers = NULL;
    if (uses != NULL && heap->captures > 0) {
        markers = cca_capture_mark(heap, block, uses);
        if (heap->generation != generation) {
            cca_stream_use_drop(heap, uses);
            return;
        }
        if (heap->captures > 0) {
            cca_stream_use_put_off(heap, block, uses, key, markers);
            return;
        }
        cca_capture_unmark(heap, markers); /* the last capture has ended meanwhile */
    }
    if (!cca_stream_use_defer(heap, block, uses, key)) {
        cca_heap_complete_free(heap, block, key, cca_clock_ns());
        cca_collect_over_limit(heap, false);
    }
}

/* A free once it is known to be ours; heap lock held. */
static void free_locked(struct cca_allocator *allocator, struct cca_heap *heap,
                        struct cca_block *block, const struct cca_request *request)
{
    uint64_t generation = heap->generation;
    bool is_stopped = !serves(allocator, request);
    bool is_strict = allocator->config->free_sync == CCA_FREE_STRICT;
    bool is_plain = waits_natively(block, request);
    bool may_wait = is_plain && (is_strict || is_stopped || !heap->device.has_context_events);
    struct cca_stream_use *uses = cca_stream_use_detach(block);
    cca_heap_request_free(heap, block, request, cca_clock_ns());
    if (request->key != CCA_KEY_READY && !is_stopped) {
        free_in_order(heap, block, request->key, uses);
        return;
    }
    cca_stream_use_drop(heap, uses); /* the fence covers every stream */
    cca_fence_block(heap, block,
                    may_wait   ? CCA_FENCE_WAITS
                    : is_plain ? CCA_FENCE_LATER
                               : CCA_FENCE_ORDERED);
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return;
    }
    if (is_stopped) {
        if (may_wait) {
            cca_release_ready(heap);
        }
        return;
    }
    cca_collect_over_limit(heap, may_wait);
    if (heap->pending_bytes <= heap->pending_max_bytes) {
        return;
    }
    if (!cca_gate_is_closed(&allocator->gate)) {
        cca_fence_hold_cap(heap);
    } else if (may_wait) {
        cca_release_over_cap(heap);
    }
}

/* A block of cca_my_malloc belongs to its stream for life; the stream that it is freed on is one
 * more that used it. */
static struct cca_request in_own_order(struct cca_heap *heap, struct cca_block *block,
                                       const struct cca_request *request)
{
    struct cca_request own = *request;
    if (request->api == CCA_API_OWN) {
        if (request->key == CCA_KEY_READY) {
            cca_stream_use_record_all(heap, block); /* nobody knows on which */
        } else if (block->key != CCA_KEY_READY) {
            cca_stream_use_record(heap, block, request->key, false);
        }
        own.key = block->key;
    }
    return own;
}

/* Whether a block is free at once in the order of a stream, as nearly all are. */
static inline bool is_plain(const struct cca_heap *heap, const struct cca_block *block,
                            const struct cca_request *request)
{
    return heap->state == CCA_HEAP_UP && request->key != CCA_KEY_READY && block->uses == NULL &&
           !block->segment->is_passed && cca_allocator_is_serving(heap->allocator) &&
           (request->api != CCA_API_OWN || request->key == block->key);
}

/* All others. */
static enum cca_free_result free_specially(struct cca_heap *heap, struct cca_block *block,
                                           const struct cca_request *request)
{
    if (heap->state == CCA_HEAP_DOWN) {
        return CCA_FREE_FORWARD; /* the context is on its way down, and its memory with it */
    }
    if (block->segment->is_passed) {
        cca_heap_remove_passed(heap, block, request, cca_clock_ns());
        return CCA_FREE_FORWARD;
    }
    if (heap->state == CCA_HEAP_DEAD) {
        cca_heap_request_free(heap, block, request, cca_clock_ns());
        return CCA_FREE_FORWARD; /* the driver tells the program what is wrong */
    }
    uint64_t generation = heap->generation;
    struct cca_request own = in_own_order(heap, block, request);
    free_locked(heap->allocator, heap, block, &own);
    /* Waiting may have met the context's error: it is the program's to see. */
    bool has_failed = heap->generation == generation && heap->state == CCA_HEAP_DEAD;
    return has_failed ? CCA_FREE_FORWARD : CCA_FREE_DONE;
}

enum cca_free_result cca_allocator_free(struct cca_allocator *allocator, uint64_t addr,
                                        const struct cca_request *request)
{
    enum cca_free_result result = CCA_FREE_DONE;
    struct cca_heap *heap;
    struct cca_block *block = cca_look_up_take(allocator, addr, &heap);
    if (CCA_UNLIKELY(block == NULL)) {
        uint64_t start;
        size_t bytes;
        return cca_segment_map_find(&allocator->segments, addr, &start, &bytes) ? CCA_FREE_INVALID
                                                                                : CCA_FREE_FORWARD;
    }
    CCA_ASSERT(block->addr == addr && block->state == CCA_BLOCK_LIVE);
    if (CCA_LIKELY(is_plain(heap, block, request))) {
        cca_heap_free_now(heap, block, request, request->key, cca_heap_time_of_free(heap));
        cca_collect_over_limit(heap, false);
    } else {
        result = free_specially(heap, block, request);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
    return result;
}

void cca_allocator_note_passed(struct cca_allocator *allocator, struct cca_heap *heap,
                               const struct cca_request *request, uint64_t addr)
{
    (void)allocator;
    uint64_t now_ns = cca_clock_ns();
    struct cca_block *block = NULL;
    cca_lock_take(&heap->lock);
    if (heap->state == CCA_HEAP_UP && cca_heap_add_passed(heap, request, addr, now_ns, &block) &&
        !publish(heap, block, now_ns)) {
        cca_heap_remove_passed(heap, block, request, now_ns);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}
