/* SPDX-License-Identifier: MIT */
#include "alloc/fence.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/fence_marks.h"
#include "alloc/stream_use.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

enum { FENCE_BLOCKS_MAX = 64, POLL_PAUSE_MIN_US = 20, POLL_PAUSE_MAX_US = 1000 };
#define FENCE_BYTES_MAX   ((size_t)64 << 20)
#define CAP_WAIT_NS       (100ull * 1000 * 1000)
#define CAP_WINDOW_NS     (10ull * 1000 * 1000 * 1000)
#define CAP_PER_WINDOW_NS (1000ull * 1000 * 1000)

static void report_fence(struct cca_heap *heap, enum cca_event_kind kind, uint64_t duration_ns)
{
    struct cca_event event = {.kind = kind, .time_ns = cca_clock_ns(), .duration_ns = duration_ns};
    cca_heap_report(heap, &event);
}

/* A fence without blocks and marks; NULL when memory is refused. */
static struct cca_fence *take_idle(struct cca_heap *heap)
{
    struct cca_fence *fence = heap->idle_fences;
    if (fence != NULL) {
        heap->idle_fences = fence->next_idle;
    } else {
        fence = cca_pool_take(&heap->fence_records);
        if (fence == NULL) {
            return NULL;
        }
        cca_list_init(&fence->blocks);
    }
    report_fence(heap, CCA_EVENT_FENCE, 0);
    return fence;
}

static void make_idle(struct cca_heap *heap, struct cca_fence *fence)
{
    CCA_ASSERT(cca_list_is_empty(&fence->blocks) && fence->recorders == 0);
    if (cca_list_is_linked(&fence->link)) {
        cca_list_remove(&fence->link);
    }
    fence->block_count = fence->bytes = 0;
    fence->marks = 0;
    fence->rekeys = false;
    fence->next_idle = heap->idle_fences;
    heap->idle_fences = fence;
}

static void enqueue(struct cca_heap *heap, struct cca_fence *fence)
{
    fence->id = ++heap->last_fence_id;
    cca_list_push_back(&heap->fences, &fence->link);
}

/* The block is READY; in a core driven in stream order it stays its stream's, or its neighbours
 * could never join it again. */
static void complete_block(struct cca_heap *heap, struct cca_block *block, uint64_t now_ns)
{
    cca_heap_complete_free(heap, block, heap->rekeys ? CCA_KEY_READY : block->key, now_ns);
}

/* All work before the fence is over: its blocks are READY, its rekey order is carried out. */
static void complete(struct cca_heap *heap, struct cca_fence *fence)
{
    uint64_t now_ns = cca_clock_ns();
    CCA_LIST_EACH (link, &fence->blocks) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        cca_list_remove(&block->wait);
        complete_block(heap, block, now_ns);
    }
    if (fence->rekeys) {
        cca_heap_rekey(heap, fence->rekey_key, fence->rekey_before, now_ns);
        heap->is_reclaiming &= fence->rekey_key != CCA_KEY_READY;
    }
    make_idle(heap, fence);
}

static void append(struct cca_fence *fence, struct cca_block *block)
{
    cca_list_push_back(&fence->blocks, &block->wait);
    fence->block_count++;
    fence->bytes += block->bytes;
}

/* Sets a block aside whose work cannot be marked now (a capture, a failed call, an old driver); its
 * place in the order of frees tells what will prove it. */
static void set_aside(struct cca_heap *heap, struct cca_block *block)
{
    block->freed_seq = ++heap->frees;
    cca_list_push_back(&heap->unfenced, &block->wait);
}

/* Completes the blocks set aside before `mark`. Only where work of other contexts cannot matter. */
static void complete_set_aside(struct cca_heap *heap, uint64_t mark)
{
    CCA_LIST_EACH (link, &heap->unfenced) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        if (block->freed_seq < mark) {
            cca_list_remove(&block->wait);
            complete_block(heap, block, cca_clock_ns());
        }
    }
}

/* Whether no other context is up, whose streams may use memory of this heap. */
static bool is_alone(const struct cca_heap *heap)
{
    return atomic_load(&heap->allocator->up_mask) == 1ull << heap->device.ordinal;
}

void cca_fence_synchronized(struct cca_heap *heap, cca_key key, uint64_t mark)
{
    /* A wait for one context says nothing of blocks freed in the order of another one's streams. */
    if (key == CCA_KEY_READY && !is_alone(heap)) {
        return;
    }
    if (heap->rekeys) {
        cca_heap_rekey(heap, key, mark, cca_clock_ns());
    }
    if (!heap->device.has_context_events && key == CCA_KEY_READY) {
        complete_set_aside(heap, mark);
    }
}

/* Waits for everything on the heap's context: what drivers without context events offer instead.
 * The lock is dropped meanwhile. */
static bool synchronize(struct cca_heap *heap)
{
    uint64_t generation = heap->generation, began_ns = cca_clock_ns();
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    /* The thread stays inside the library: a signal handler that began a capture here would wait
     * for the gate that this very thread holds. */
    cca_lock_drop(&heap->lock);
    if (cca_gate_enter(&heap->allocator->gate)) {
        status = heap->device.ops->synchronize(heap->device.self);
        cca_gate_leave(&heap->allocator->gate);
    }
    cca_lock_take(&heap->lock);
    if (heap->generation != generation) {
        return false;
    }
    report_fence(heap, CCA_EVENT_FREE_WAITED, cca_clock_ns() - began_ns);
    if (status.kind == CCA_FATAL) {
        heap->state = CCA_HEAP_DEAD;
    }
    return status.kind == CCA_OK;
}

static void wait_for_context(struct cca_heap *heap, struct cca_block *block)
{
    uint64_t generation = heap->generation, mark;
    set_aside(heap, block);
    mark = heap->frees + 1;
    if (synchronize(heap) && heap->generation == generation) {
        cca_fence_synchronized(heap, CCA_KEY_READY, mark);
    }
}

/* No mark could be made. The free still waits, as natively, unless a capture forbids it. */
static void wait_unmarked(struct cca_heap *heap, struct cca_block *block)
{
    uint64_t generation = heap->generation;
    set_aside(heap, block);
    uint64_t mark = heap->frees + 1;
    if (!cca_gate_is_closed(&heap->allocator->gate) && heap->state == CCA_HEAP_UP &&
        synchronize(heap) && heap->generation == generation && is_alone(heap)) {
        complete_set_aside(heap, mark);
    }
}

/* As the native free, waits for the heap's own context and for every other that ever had peer
 * access with it. `done_out`: the marks that are over. No lock held. */
static struct cca_status wait_for_marks(struct cca_heap *heap, const struct cca_fence *fence,
                                        uint64_t marks, uint64_t *done_out)
{
    struct cca_allocator *allocator = heap->allocator;
    uint64_t own = 1ull << heap->device.ordinal;
    uint64_t todo = marks & (own | atomic_load(&allocator->peers[heap->device.ordinal]));
    struct cca_status own_status = cca_status_ok();
    for (; todo != 0; todo &= todo - 1) {
        int ordinal = __builtin_ctzll(todo);
        struct cca_heap *other = atomic_load(&allocator->heaps[ordinal]);
        if (!cca_fence_has_event(fence, ordinal, atomic_load(&other->generation))) {
            continue; /* the context is gone, and its work with it: the query will say so */
        }
        struct cca_status status = other->device.ops->event_wait(other->device.self,
                                                                 fence->events[ordinal].event);
        *done_out |= status.kind == CCA_OK ? 1ull << ordinal : 0;
        own_status = other == heap ? status : own_status;
    }
    return own_status;
}

/* A fence of its own for one block: recorded, waited for on the block's own context, and complete
 * when no other context has work left from before. */
static void wait_for_block(struct cca_heap *heap, struct cca_block *block)
{
    uint64_t generation = heap->generation, began_ns = cca_clock_ns();
    struct cca_fence *fence = take_idle(heap);
    enum cca_fence_record_result result = fence == NULL ? CCA_FENCE_NOT_POSSIBLE
                                                        : cca_fence_record(heap, fence, true);
    if (heap->generation != generation) {
        return;
    }
    if (result != CCA_FENCE_RECORDED) {
        if (fence != NULL) {
            make_idle(heap, fence);
        }
        wait_unmarked(heap, block);
        return;
    }
    uint64_t marks = fence->marks, done = 0;
    fence->recorders++;
    int depth = cca_heap_step_out(heap);
    struct cca_status status = wait_for_marks(heap, fence, marks, &done);
    cca_heap_step_in(heap, depth);
    if (heap->generation != generation) {
        return;
    }
    fence->recorders--;
    report_fence(heap, CCA_EVENT_FREE_WAITED, cca_clock_ns() - began_ns);
    append(fence, block);
    enqueue(heap, fence);
    fence->marks &= ~done;
    if (status.kind == CCA_FATAL) {
        heap->state = CCA_HEAP_DEAD;
        return;
    }
    fence->recorders++;
    bool is_over = cca_fence_query(heap, fence);
    if (heap->generation != generation) {
        return;
    }
    fence->recorders--;
    if (is_over) {
        complete(heap, fence);
    }
}

/* Whether the fence can be recorded again without creating events. */
static bool can_join(const struct cca_heap *heap, const struct cca_fence *fence)
{
    uint64_t todo = atomic_load(&heap->allocator->up_mask);
    for (; todo != 0; todo &= todo - 1) {
        int ordinal = __builtin_ctzll(todo);
        const struct cca_heap *other = atomic_load(&heap->allocator->heaps[ordinal]);
        if (!cca_fence_has_event(fence, ordinal, atomic_load(&other->generation))) {
            return false;
        }
    }
    return true;
}

/* Joins the open fence, or opens one. A new fence is offered to others only after its first record.
 */
static void join(struct cca_heap *heap, struct cca_block *block)
{
    uint64_t generation = heap->generation;
    struct cca_fence *fence = heap->open_fence;
    bool is_new = fence == NULL || !can_join(heap, fence);
    if (is_new) {
        fence = take_idle(heap);
    } else {
        report_fence(heap, CCA_EVENT_FENCE_JOIN, 0);
    }
    enum cca_fence_record_result result = fence == NULL ? CCA_FENCE_NOT_POSSIBLE
                                                        : cca_fence_record(heap, fence, is_new);
    if (heap->generation != generation) {
        return;
    }
    if (result != CCA_FENCE_RECORDED) {
        if (is_new && fence != NULL) {
            make_idle(heap, fence);
        }
        set_aside(heap, block);
        return;
    }
    append(fence, block);
    if (is_new) {
        enqueue(heap, fence);
        heap->open_fence = fence;
    }
    if (heap->open_fence == fence &&
        (fence->block_count >= FENCE_BLOCKS_MAX || fence->bytes >= FENCE_BYTES_MAX)) {
        heap->open_fence = NULL;
    }
}

/* A deliberate defect for the test that must catch it. */
#ifdef CCA_SABOTAGE_NO_FENCE
static const bool is_fence_left_out = true;
#else
static const bool is_fence_left_out = false;
#endif

void cca_fence_block(struct cca_heap *heap, struct cca_block *block, bool waits)
{
    if (heap->captures > 0) {
        set_aside(heap, block);
    } else if (is_fence_left_out) {
        cca_heap_complete_free(heap, block, CCA_KEY_READY, cca_clock_ns());
    } else if (waits) {
        (heap->device.has_context_events ? wait_for_block : wait_for_context)(heap, block);
    } else if (heap->device.has_context_events) {
        join(heap, block);
    } else {
        set_aside(heap, block);
    }
}

/* A closed fence with a rekey order, recorded and queued. NULL when that is not possible now, or
 * the heap was dropped meanwhile. */
static struct cca_fence *queue_rekey(struct cca_heap *heap, cca_key key)
{
    uint64_t generation = heap->generation, before = heap->frees + 1;
    struct cca_fence *fence = take_idle(heap);
    if (fence == NULL) {
        return NULL;
    }
    enum cca_fence_record_result result = cca_fence_record(heap, fence, true);
    if (heap->generation != generation) {
        return NULL;
    }
    if (result != CCA_FENCE_RECORDED) {
        make_idle(heap, fence);
        return NULL;
    }
    fence->rekeys = heap->rekeys;
    fence->rekey_key = key;
    fence->rekey_before = before;
    enqueue(heap, fence);
    return fence;
}

void cca_fence_rekey(struct cca_heap *heap, cca_key key)
{
    if (heap->captures > 0) {
        return; /* the blocks keep their key; the next reclaim covers them */
    }
    if (heap->device.has_context_events) {
        (void)queue_rekey(heap, key);
    } /* else a stream's blocks wait for the next free or call that waits for the context */
}

static bool streams_hold_free_blocks(const struct cca_heap *heap)
{
    for (int small = 0; small < 2; small++) {
        const struct cca_block *first = cca_block_pool_first(&heap->pools[small]);
        if (first != NULL && first->key != CCA_KEY_READY) { /* READY sorts last */
            return true;
        }
    }
    return false;
}

bool cca_fence_reclaim(struct cca_heap *heap)
{
    if (!heap->rekeys || heap->is_reclaiming || heap->captures > 0 ||
        !heap->device.has_context_events || !streams_hold_free_blocks(heap)) {
        return false;
    }
    uint64_t generation = heap->generation;
    heap->is_reclaiming = true;
    bool is_queued = queue_rekey(heap, CCA_KEY_READY) != NULL;
    if (heap->generation != generation) {
        return false;
    }
    heap->is_reclaiming = is_queued;
    if (is_queued) {
        cca_fence_poll(heap, CCA_FENCE_ALL);
    }
    return is_queued && heap->generation == generation && !heap->is_reclaiming;
}

/* Frees whose record was not possible at the time get their fence now, if it is possible by now. */
static void fence_set_aside(struct cca_heap *heap)
{
    if (cca_list_is_empty(&heap->unfenced) || !heap->device.has_context_events) {
        return;
    }
    uint64_t generation = heap->generation;
    struct cca_list blocks;
    cca_list_init(&blocks);
    cca_list_splice(&blocks, &heap->unfenced);
    struct cca_fence *fence = take_idle(heap);
    enum cca_fence_record_result result = fence == NULL ? CCA_FENCE_NOT_POSSIBLE
                                                        : cca_fence_record(heap, fence, true);
    if (heap->generation != generation) {
        return;
    }
    if (result != CCA_FENCE_RECORDED) {
        cca_list_splice(&heap->unfenced, &blocks);
        if (fence != NULL) {
            make_idle(heap, fence);
        }
        return;
    }
    CCA_LIST_EACH (link, &blocks) {
        cca_list_remove(link);
        append(fence, CCA_LIST_ENTRY(link, struct cca_block, wait));
    }
    enqueue(heap, fence);
}

void cca_fence_poll(struct cca_heap *heap, int max)
{
    if (heap->is_polling || heap->state != CCA_HEAP_UP || heap->captures > 0 ||
        cca_gate_is_closed(&heap->allocator->gate)) {
        return;
    }
    uint64_t generation = heap->generation;
    heap->is_polling = true;
    fence_set_aside(heap);
    while (heap->generation == generation && max-- > 0 && !cca_list_is_empty(&heap->fences)) {
        struct cca_fence *fence = CCA_LIST_ENTRY(heap->fences.next, struct cca_fence, link);
        if (fence->recorders != 0) {
            break; /* being recorded: it may not be closed now */
        }
        if (fence == heap->open_fence) {
            heap->open_fence = NULL;
        }
        fence->recorders++;
        bool is_over = cca_fence_query(heap, fence);
        if (heap->generation != generation) {
            return;
        }
        fence->recorders--;
        if (!is_over) {
            break;
        }
        complete(heap, fence);
    }
    if (heap->generation == generation) {
        heap->is_polling = false;
    }
}

void cca_fence_pause(struct cca_heap *heap, uint64_t *pause_us)
{
    *pause_us = *pause_us == 0                      ? POLL_PAUSE_MIN_US
                : *pause_us * 2 > POLL_PAUSE_MAX_US ? POLL_PAUSE_MAX_US
                                                    : *pause_us * 2;
    int depth = cca_heap_step_out(heap);
    cca_clock_sleep_us(*pause_us);
    cca_heap_step_in(heap, depth);
}

struct cca_proof cca_fence_prove(struct cca_heap *heap)
{
    struct cca_proof proof = {.before_seq = heap->frees + 1};
    if (heap->captures == 0 && heap->device.has_context_events) {
        struct cca_fence *fence = queue_rekey(heap, CCA_KEY_READY);
        proof.id = fence == NULL ? 0 : fence->id;
    }
    return proof;
}

bool cca_fence_is_proven(const struct cca_heap *heap, const struct cca_proof *proof)
{
    if (proof->id == 0) {
        return false;
    }
    return cca_list_is_empty(&heap->fences) ||
           CCA_LIST_ENTRY(heap->fences.next, struct cca_fence, link)->id > proof->id;
}

/* Writing may block, so not under the lock. */
static void say_over_cap(struct cca_heap *heap)
{
    static int said;
    size_t most = heap->pending_max_bytes;
    int depth = cca_heap_step_out(heap);
    cca_log_once(&said, CCA_LOG_WARN,
                 "more freed memory waits for the device than CCA_PENDING_MAX allows (%zu bytes); "
                 "going on without it",
                 most);
    cca_heap_step_in(heap, depth);
}

void cca_fence_hold_cap(struct cca_heap *heap)
{
    uint64_t now_ns = cca_clock_ns(), generation = heap->generation;
    if (now_ns - heap->cap_window_start_ns > CAP_WINDOW_NS) {
        heap->cap_window_start_ns = now_ns;
        heap->cap_waited_ns = 0;
    }
    uint64_t deadline_ns = now_ns + CAP_WAIT_NS, pause_us = 0;
    while (heap->pending_bytes > heap->pending_max_bytes && now_ns < deadline_ns &&
           heap->cap_waited_ns < CAP_PER_WINDOW_NS) {
        cca_fence_poll(heap, CCA_FENCE_ALL);
        cca_stream_use_poll(heap);
        if (heap->generation != generation || heap->state != CCA_HEAP_UP ||
            heap->pending_bytes <= heap->pending_max_bytes) {
            return;
        }
        cca_fence_pause(heap, &pause_us);
        uint64_t then_ns = now_ns;
        now_ns = cca_clock_ns();
        heap->cap_waited_ns += now_ns - then_ns;
    }
    if (heap->pending_bytes > heap->pending_max_bytes) {
        say_over_cap(heap);
    }
}

void cca_fence_drop_all(struct cca_heap *heap)
{
    CCA_LIST_EACH (link, &heap->fences) {
        struct cca_fence *fence = CCA_LIST_ENTRY(link, struct cca_fence, link);
        CCA_LIST_EACH (block_link, &fence->blocks) {
            cca_list_remove(block_link);
        }
        cca_list_remove(&fence->link);
        /* A thread may still be inside a device call with this fence: its record is not used again.
         */
        if (fence->recorders == 0) {
            make_idle(heap, fence);
        }
    }
    CCA_LIST_EACH (link, &heap->unfenced) {
        cca_list_remove(link);
    }
    heap->open_fence = NULL;
    heap->is_polling = heap->is_reclaiming = false;
}
