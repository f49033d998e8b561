/* SPDX-License-Identifier: MIT */
#include "alloc/allocator.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/fence.h"
#include "alloc/ladder.h"
#include "alloc/private_pool.h"
#include "alloc/stream_use.h"
#include "alloc/verify.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

enum { POLL_PER_ALLOC = 4 };
#define PENDING_DEFAULT_MAX ((size_t)1 << 30)
#define DETACH_WAIT_NS      (2000ull * 1000 * 1000)

int cca_allocator_create(const struct cca_config *config, struct cca_allocator **allocator_out)
{
    struct cca_allocator *allocator = cca_sysmem_map(sizeof(*allocator));
    if (allocator == NULL) {
        return -ENOMEM;
    }
    allocator->config = config;
    allocator->settings = *config;
    cca_policy_init(&allocator->policy, config);
    cca_lock_init(&allocator->lock, CCA_RANK_ALLOCATOR);
    cca_ptrmap_init(&allocator->blocks);
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
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        if (allocator->heaps[i] != NULL) {
            cca_heap_fini(allocator->heaps[i]);
        }
    }
    cca_ptrmap_fini(&allocator->blocks);
    cca_pool_fini(&allocator->heap_records);
    cca_sysmem_unmap(allocator, sizeof(*allocator));
}

static struct cca_heap *heap_of_device(struct cca_allocator *allocator, int ordinal)
{
    struct cca_heap *heap = atomic_load(&allocator->heaps[ordinal]);
    if (heap == NULL) {
        heap = cca_pool_take(&allocator->heap_records);
        if (heap == NULL) {
            return NULL;
        }
        cca_heap_init(heap, allocator, ordinal, &allocator->settings);
        atomic_store(&allocator->heaps[ordinal], heap);
    }
    return heap;
}

/* Forgets the context's memory; heap lock held. */
static void take_down(struct cca_allocator *allocator, struct cca_heap *heap)
{
    atomic_fetch_and(&allocator->up_mask, ~(1ull << heap->device.ordinal));
    heap->state = CCA_HEAP_DOWN;
    atomic_store(&heap->context, 0);
    cca_heap_drop(heap, cca_clock_ns());
}

static size_t pending_cap(const struct cca_config *config, size_t total_bytes)
{
    if (config->pending_max != 0) {
        return config->pending_max;
    }
    size_t tenth = total_bytes / 10;
    return tenth == 0 || tenth > PENDING_DEFAULT_MAX ? PENDING_DEFAULT_MAX : tenth;
}

struct cca_heap *cca_allocator_attach(struct cca_allocator *allocator,
                                      const struct cca_device *device, uint64_t context)
{
    if (device->ordinal < 0 || device->ordinal >= CCA_DEVICES_MAX) {
        return NULL;
    }
    size_t free_bytes = 0, total_bytes = 0;
    device->ops->mem_info(device->self, &free_bytes, &total_bytes);

    cca_lock_take(&allocator->lock);
    struct cca_heap *heap = heap_of_device(allocator, device->ordinal);
    if (heap != NULL) {
        cca_lock_take(&heap->lock);
        if (heap->state != CCA_HEAP_DOWN && atomic_load(&heap->context) != context) {
            take_down(allocator, heap);
        }
        if (heap->state == CCA_HEAP_DOWN) {
            heap->device = *device;
            heap->device_bytes = total_bytes;
            heap->pending_max_bytes = pending_cap(allocator->config, total_bytes);
            cca_heap_set_fraction(heap, heap->memory_fraction, total_bytes);
            heap->state = CCA_HEAP_UP;
            atomic_fetch_add(&heap->generation, 1); /* no event made before belongs to it */
            atomic_store(&heap->context, context);
            atomic_fetch_or(&allocator->up_mask, 1ull << device->ordinal);
        }
        cca_lock_drop(&heap->lock);
    }
    uint64_t up = atomic_load(&allocator->up_mask);
    cca_lock_drop(&allocator->lock);

    if (!device->has_context_events && (up & (up - 1)) != 0 && cca_allocator_stop(allocator)) {
        cca_log(CCA_LOG_WARN,
                "caching ends: a second device is in use and the driver (before 12.5) "
                "cannot tell when both are done with memory");
    }
    return heap;
}

struct cca_heap *cca_allocator_heap(struct cca_allocator *allocator, uint64_t context)
{
    uint64_t todo = atomic_load(&allocator->up_mask);
    for (; todo != 0; todo &= todo - 1) {
        struct cca_heap *heap = atomic_load(&allocator->heaps[__builtin_ctzll(todo)]);
        if (atomic_load(&heap->context) == context) {
            return heap;
        }
    }
    return NULL;
}

/* Calls of other threads that are inside the context's driver functions end before it goes. They
 * are short; one that is not (a free behind endless work) does not hold the program up for ever. */
static void wait_for_device_calls(struct cca_heap *heap)
{
    uint64_t deadline_ns = cca_clock_ns() + DETACH_WAIT_NS;
    while (atomic_load(&heap->device_calls) != 0 && cca_clock_ns() < deadline_ns) {
        cca_clock_sleep_us(20);
    }
}

void cca_allocator_detach(struct cca_allocator *allocator, int ordinal)
{
    if (ordinal < 0 || ordinal >= CCA_DEVICES_MAX) {
        return;
    }
    cca_lock_take(&allocator->lock);
    struct cca_heap *heap = atomic_load(&allocator->heaps[ordinal]);
    if (heap != NULL) {
        cca_lock_take(&heap->lock);
        if (heap->state != CCA_HEAP_DOWN) {
            take_down(allocator, heap);
        }
        cca_lock_drop(&heap->lock);
    }
    cca_lock_drop(&allocator->lock);
    if (heap != NULL) {
        wait_for_device_calls(heap);
    }
}

/* An address that comes back although its free was never seen: the old block is forgotten. Called
 * with the heap lock held. */
static void forget_stale(struct cca_heap *heap, uint64_t addr, uint64_t now_ns)
{
    struct cca_block *stale = cca_ptrmap_find(&heap->allocator->blocks, addr);
    if (stale == NULL || stale->segment->heap != heap || !stale->segment->is_passed) {
        return;
    }
    cca_ptrmap_remove(&heap->allocator->blocks, addr);
    struct cca_request request = {.key = stale->key, .thread = stale->thread};
    cca_heap_remove_passed(heap, stale, &request, now_ns);
}

/* The block becomes findable by its address. False when memory for the map is refused. */
static bool publish(struct cca_heap *heap, struct cca_block *block, uint64_t now_ns)
{
    struct cca_ptrmap *blocks = &heap->allocator->blocks;
    int error = cca_ptrmap_insert(blocks, block->addr, block);
    if (error == -EEXIST) {
        forget_stale(heap, block->addr, now_ns);
        error = cca_ptrmap_insert(blocks, block->addr, block);
    }
    return error == 0;
}

static bool is_serving(const struct cca_allocator *allocator)
{
    return allocator->config->mode == CCA_MODE_CACHE && !atomic_load(&allocator->is_stopped);
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

static struct cca_status alloc_locked(struct cca_heap *heap, struct cca_request *request,
                                      struct cca_block **block_out)
{
    if (heap->state != CCA_HEAP_UP) {
        return state_status(heap);
    }
    if (request->bytes >= CCA_REQUEST_LIMIT) {
        return refuse(heap, request);
    }
    if (!cca_list_is_empty(&heap->fences) || !cca_list_is_empty(&heap->unfenced)) {
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
    if (!cca_list_is_empty(&heap->routes)) {
        request->pool = cca_private_pool_route(heap, request);
    }
    return serve(heap, request, block_out);
}

struct cca_status cca_allocator_alloc(struct cca_allocator *allocator, struct cca_heap *heap,
                                      const struct cca_request *request, uint64_t *addr_out)
{
    if (!is_serving(allocator)) {
        return (struct cca_status){CCA_UNSUPPORTED, 0};
    }
    struct cca_block *block = NULL;
    struct cca_request routed = *request;
    routed.pool = NULL;
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

/* A free once it is known to be ours; heap lock held. */
static void free_locked(struct cca_allocator *allocator, struct cca_heap *heap,
                        struct cca_block *block, const struct cca_request *request)
{
    uint64_t generation = heap->generation;
    bool is_stopped = !is_serving(allocator);
    bool is_strict = allocator->config->free_sync == CCA_FREE_STRICT;
    bool may_wait = waits_natively(block, request) &&
                    (is_strict || is_stopped || !heap->device.has_context_events);
    struct cca_stream_use *uses = cca_stream_use_detach(block);
    cca_heap_request_free(heap, block, request, cca_clock_ns());
    if (request->key != CCA_KEY_READY && !is_stopped) {
        if (uses != NULL && heap->captures > 0) {
            cca_stream_use_put_off(heap, block, uses, request->key);
        } else if (!cca_stream_use_defer(heap, block, uses, request->key)) {
            cca_heap_complete_free(heap, block, request->key, cca_clock_ns());
            cca_ladder_hold_cache_limit(heap);
        }
        return;
    }
    cca_stream_use_drop(heap, uses); /* the fence covers every stream */
    cca_fence_block(heap, block, may_wait);
    if (heap->generation != generation || heap->state != CCA_HEAP_UP) {
        return;
    }
    if (is_stopped) {
        if (may_wait) {
            cca_ladder_release_ready(heap);
        }
        return;
    }
    cca_ladder_hold_cache_limit(heap);
    if (heap->pending_bytes > heap->pending_max_bytes) {
        cca_fence_hold_cap(heap);
    }
}

enum cca_free_result cca_allocator_free(struct cca_allocator *allocator, uint64_t addr,
                                        const struct cca_request *request)
{
    struct cca_block *block = cca_ptrmap_remove(&allocator->blocks, addr);
    if (block == NULL) {
        uint64_t start;
        size_t bytes;
        return cca_segment_map_find(&allocator->segments, addr, &start, &bytes) ? CCA_FREE_INVALID
                                                                                : CCA_FREE_FORWARD;
    }
    /* Records stay readable for ever, so a block that a device reset has just dropped is noticed
     * below. */
    struct cca_segment *segment = block->segment;
    struct cca_heap *heap = segment == NULL ? NULL : segment->heap;
    if (heap == NULL) {
        return CCA_FREE_FORWARD;
    }
    enum cca_free_result result = CCA_FREE_DONE;
    cca_lock_take(&heap->lock);
    if (block->addr != addr || block->state != CCA_BLOCK_LIVE || heap->state == CCA_HEAP_DOWN) {
        result = CCA_FREE_FORWARD;
    } else if (block->segment->is_passed) {
        cca_heap_remove_passed(heap, block, request, cca_clock_ns());
        result = CCA_FREE_FORWARD;
    } else if (heap->state == CCA_HEAP_DEAD) {
        cca_heap_request_free(heap, block, request, cca_clock_ns());
        result = CCA_FREE_FORWARD; /* the driver tells the program what is wrong */
    } else {
        uint64_t generation = heap->generation;
        free_locked(allocator, heap, block, request);
        if (heap->generation == generation && heap->state == CCA_HEAP_DEAD) {
            result =
                CCA_FREE_FORWARD; /* waiting met the context's error: it is the program's to see */
        }
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
    cca_lock_drop(&heap->lock);
}

/* Every heap that is or was up, in lock order. */
#define EACH_HEAP(heap, allocator)                                                             \
    for (int heap##_i = 0; heap##_i < CCA_DEVICES_MAX; heap##_i++)                             \
        for (struct cca_heap *heap = atomic_load(&(allocator)->heaps[heap##_i]); heap != NULL; \
             heap = NULL)

bool cca_allocator_stop(struct cca_allocator *allocator)
{
    bool is_first = !atomic_exchange(&allocator->is_stopped, true);
    if (is_first) {
        /* What streams hold becomes READY behind this moment. Nothing is given back here: the
         * driver's free may wait, and the call that ended caching does not. */
        EACH_HEAP(heap, allocator)
        {
            cca_lock_take(&heap->lock);
            if (heap->state == CCA_HEAP_UP) {
                cca_fence_rekey(heap, CCA_KEY_READY);
            }
            cca_lock_drop(&heap->lock);
        }
    }
    return is_first;
}

void cca_allocator_capture_begins(struct cca_allocator *allocator)
{
    cca_gate_close(&allocator->gate);
}

void cca_allocator_capture_ends(struct cca_allocator *allocator)
{
    cca_gate_open(&allocator->gate);
}

bool cca_allocator_is_stopped(const struct cca_allocator *allocator)
{
    return atomic_load(&allocator->is_stopped);
}

/* The heap of a block found in the address map, locked, while the block is still live at `addr`; or
 * NULL. */
static struct cca_heap *lock_heap_of(struct cca_block *block, uint64_t addr)
{
    struct cca_segment *segment = block == NULL ? NULL : block->segment;
    struct cca_heap *heap = segment == NULL ? NULL : segment->heap;
    if (heap == NULL) {
        return NULL;
    }
    cca_lock_take(&heap->lock);
    if (block->addr == addr && block->state == CCA_BLOCK_LIVE && !block->segment->is_passed) {
        return heap;
    }
    cca_lock_drop(&heap->lock);
    return NULL;
}

void cca_allocator_record_stream(struct cca_allocator *allocator, uint64_t addr, cca_key stream)
{
    struct cca_block *block = cca_ptrmap_find(&allocator->blocks, addr);
    struct cca_heap *heap = lock_heap_of(block, addr);
    if (heap != NULL) {
        cca_stream_use_record(heap, block, stream);
        cca_lock_drop(&heap->lock);
    }
}

void cca_allocator_stream_ends(struct cca_allocator *allocator, struct cca_heap *heap,
                               cca_key stream)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    if (heap->state == CCA_HEAP_UP && cca_heap_holds_key(heap, stream)) {
        cca_fence_rekey(heap, stream);
    }
    cca_lock_drop(&heap->lock);
}

uint64_t cca_allocator_sync_mark(struct cca_allocator *allocator, struct cca_heap *heap)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    uint64_t mark = heap->frees + 1;
    cca_lock_drop(&heap->lock);
    return mark;
}

void cca_allocator_synchronized(struct cca_allocator *allocator, struct cca_heap *heap, cca_key key,
                                uint64_t mark)
{
    cca_lock_take(&heap->lock);
    uint64_t generation = heap->generation;
    if (heap->state == CCA_HEAP_UP) {
        cca_fence_synchronized(heap, key, mark);
        cca_fence_poll(heap, CCA_FENCE_ALL);
        cca_stream_use_poll(heap);
    }
    bool is_idle = key == CCA_KEY_READY && heap->generation == generation;
    if (is_idle && !is_serving(allocator)) {
        cca_ladder_release_ready(heap);
    } else if (heap->generation == generation) {
        cca_ladder_hold_cache_limit(heap);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}

void cca_allocator_make_room(struct cca_allocator *allocator, struct cca_heap *heap, size_t bytes)
{
    size_t free_bytes = 0, total_bytes = 0;
    cca_lock_take(&heap->lock);
    size_t idle_bytes = heap->pools[0].whole_bytes + heap->pools[1].whole_bytes;
    bool has_pending = !cca_list_is_empty(&heap->fences) || !cca_list_is_empty(&heap->unfenced);
    cca_lock_drop(&heap->lock);
    if ((idle_bytes == 0 && !has_pending) ||
        heap->device.ops->mem_info(heap->device.self, &free_bytes, &total_bytes).kind != CCA_OK ||
        free_bytes / 2 > bytes) {
        return;
    }
    cca_lock_take(&heap->lock);
    if (heap->state == CCA_HEAP_UP) {
        cca_ladder_release(heap, allocator->config->oom_wait_ms);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}

void cca_allocator_poll(struct cca_allocator *allocator, struct cca_heap *heap)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    cca_fence_poll(heap, CCA_FENCE_ALL);
    cca_stream_use_poll(heap);
    cca_ladder_hold_cache_limit(heap);
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}

void cca_allocator_adjust_mem_info(struct cca_allocator *allocator, struct cca_heap *heap,
                                   size_t *free_bytes, size_t total_bytes)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    size_t cached = cca_heap_releasable_bytes(heap);
    size_t allocated = (size_t)heap->observer.stats.allocated_bytes[CCA_STAT_ALL].current;
    size_t limit = heap->limit_bytes;
    cca_lock_drop(&heap->lock);
    size_t most = total_bytes;
    if (limit != CCA_NO_LIMIT) {
        size_t left = limit > allocated ? limit - allocated : 0;
        most = left < most ? left : most;
    }
    size_t sum = *free_bytes + cached;
    *free_bytes = sum < most ? sum : most;
}

int cca_allocator_owns_try(struct cca_allocator *allocator, uint64_t addr)
{
    uint64_t start;
    size_t bytes;
    if (!cca_lock_try(&allocator->segments.lock)) {
        return -1;
    }
    bool is_ours = cca_segment_map_find_locked(&allocator->segments, addr, &start, &bytes);
    cca_lock_drop(&allocator->segments.lock);
    return is_ours;
}

struct cca_address_info cca_allocator_look_up(struct cca_allocator *allocator, uint64_t addr)
{
    struct cca_address_info info = {0};
    info.is_ours = cca_segment_map_find(&allocator->segments, addr, &info.segment_addr,
                                        &info.segment_bytes);
    struct cca_block *block = info.is_ours ? cca_ptrmap_find(&allocator->blocks, addr) : NULL;
    struct cca_segment *segment = block == NULL ? NULL : block->segment;
    if (segment != NULL) {
        struct cca_heap *heap = segment->heap;
        cca_lock_take(&heap->lock);
        info.is_live_block = block->addr == addr && block->state == CCA_BLOCK_LIVE;
        info.fills_segment = info.is_live_block && !cca_block_is_split(block);
        cca_lock_drop(&heap->lock);
    }
    return info;
}

void cca_allocator_empty_cache(struct cca_allocator *allocator)
{
    EACH_HEAP(heap, allocator)
    {
        cca_lock_take(&heap->lock);
        if (heap->state == CCA_HEAP_UP) {
            cca_ladder_release(heap, allocator->config->oom_wait_ms);
        }
        cca_verify_if_wanted(heap);
        cca_lock_drop(&heap->lock);
    }
}

int cca_allocator_with_observer(struct cca_allocator *allocator, int ordinal, cca_observer_fn fn,
                                void *user)
{
    struct cca_heap *heap = ordinal < 0 || ordinal >= CCA_DEVICES_MAX
                                ? NULL
                                : atomic_load(&allocator->heaps[ordinal]);
    if (heap == NULL) {
        return -ENODEV;
    }
    cca_lock_take(&heap->lock);
    fn(user, &heap->observer);
    cca_lock_drop(&heap->lock);
    return 0;
}

uint64_t cca_allocator_device_mask(const struct cca_allocator *allocator)
{
    uint64_t mask = 0;
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        mask |= atomic_load(&allocator->heaps[i]) != NULL ? 1ull << i : 0;
    }
    return mask;
}

void cca_allocator_fork_prepare(struct cca_allocator *allocator)
{
    cca_lock_take(&allocator->lock);
    EACH_HEAP(heap, allocator)
    {
        cca_lock_take_urgent(&heap->lock);
    }
    cca_lock_take(&allocator->segments.lock);
    cca_ptrmap_lock_all(&allocator->blocks);
}

void cca_allocator_fork_parent(struct cca_allocator *allocator)
{
    cca_ptrmap_unlock_all(&allocator->blocks);
    cca_lock_drop(&allocator->segments.lock);
    for (int i = CCA_DEVICES_MAX - 1; i >= 0; i--) {
        struct cca_heap *heap = atomic_load(&allocator->heaps[i]);
        if (heap != NULL) {
            cca_lock_drop(&heap->lock);
        }
    }
    cca_lock_drop(&allocator->lock);
}

void cca_allocator_fork_child(struct cca_allocator *allocator)
{
    cca_allocator_fork_parent(allocator);
    atomic_store(&allocator->is_stopped, true);
    /* Another thread of the parent may have held the gate, which no lock order covers. */
    cca_gate_init(&allocator->gate);
    atomic_store(&allocator->gate.captures, 1);
}
