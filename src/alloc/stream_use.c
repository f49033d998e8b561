/* SPDX-License-Identifier: MIT */
#include "alloc/stream_use.h"

#include "alloc/allocator_internal.h"
#include "alloc/capture.h"
#include "alloc/device_call.h"
#include "alloc/fence.h"
#include "base/check.h"
#include "base/clock.h"

void cca_stream_use_record(struct cca_heap *heap, struct cca_block *block, cca_key stream,
                           bool in_capture)
{
    CCA_ASSERT(block->state == CCA_BLOCK_LIVE);
    if (stream == block->key || block->uses == &heap->used_everywhere) {
        return;
    }
    for (struct cca_stream_use *use = block->uses; use != NULL; use = use->next) {
        if (use->stream == stream) {
            use->in_capture &= in_capture;
            return;
        }
    }
    struct cca_stream_use *use = cca_pool_take(&heap->use_records);
    if (use == NULL) {
        cca_stream_use_record_all(heap, block);
        return;
    }
    use->stream = stream;
    use->in_capture = in_capture;
    use->next = block->uses;
    block->uses = use;
}

void cca_stream_use_record_all(struct cca_heap *heap, struct cca_block *block)
{
    cca_stream_use_drop(heap, block->uses);
    block->uses = &heap->used_everywhere;
}

void cca_stream_use_drop(struct cca_heap *heap, struct cca_stream_use *uses)
{
    while (uses != NULL && uses != &heap->used_everywhere) {
        struct cca_stream_use *next = uses->next;
        cca_pool_give(&heap->use_records, uses);
        uses = next;
    }
}

static struct cca_use_event *take_event(struct cca_heap *heap)
{
    if (cca_list_is_empty(&heap->idle_use_events)) {
        return cca_pool_take(&heap->use_event_records);
    }
    struct cca_list *link = heap->idle_use_events.next;
    cca_list_remove(link);
    return CCA_LIST_ENTRY(link, struct cca_use_event, link);
}

/* Their device events are kept for later use. */
static void make_idle(struct cca_heap *heap, struct cca_list *events)
{
    CCA_LIST_EACH (link, events) {
        CCA_LIST_ENTRY(link, struct cca_use_event, link)->block = NULL;
    }
    cca_list_splice(&heap->idle_use_events, events);
}

/* Their device events died with the context. */
static void forget(struct cca_heap *heap, struct cca_list *events)
{
    CCA_LIST_EACH (link, events) {
        cca_list_remove(link);
        cca_pool_give(&heap->use_event_records, CCA_LIST_ENTRY(link, struct cca_use_event, link));
    }
}

/* The stream's queue, a new one when it has none; NULL when memory is refused. */
static struct cca_use_queue *queue_of(struct cca_heap *heap, cca_key stream)
{
    struct cca_list *before = &heap->use_queues;
    CCA_LIST_EACH (link, &heap->use_queues) {
        struct cca_use_queue *queue = CCA_LIST_ENTRY(link, struct cca_use_queue, link);
        if (queue->stream == stream) {
            return queue;
        }
        if (queue->stream > stream) {
            before = link;
            break;
        }
    }
    struct cca_use_queue *queue = cca_pool_take(&heap->use_queue_records);
    if (queue != NULL) {
        queue->stream = stream;
        cca_list_init(&queue->events);
        cca_list_push_back(before, &queue->link); /* in front of `before` */
    }
    return queue;
}

/* An event record for each use on another stream than `key`, in the same order. False when memory
 * is refused. */
static bool prepare(struct cca_heap *heap, struct cca_block *block, struct cca_stream_use **uses,
                    cca_key key, struct cca_list *events)
{
    struct cca_stream_use **at = uses;
    size_t count = 0;
    while (*at != NULL) {
        struct cca_stream_use *use = *at;
        if (use->stream == key) {
            *at = use->next;
            cca_pool_give(&heap->use_records, use);
            continue;
        }
        struct cca_use_event *event = take_event(heap);
        if (event == NULL || queue_of(heap, use->stream) == NULL || ++count > UINT16_MAX) {
            cca_pool_give(&heap->use_event_records, event);
            return false;
        }
        event->block = block;
        event->key = key;
        cca_list_push_back(events, &event->link);
        at = &use->next;
    }
    return true;
}

/* Whether the context of this generation is up; it stays so until cca_device_call_end. No lock
 * held.
 */
static bool is_callable(struct cca_heap *heap, uint64_t generation)
{
    if (!cca_device_call_begin(heap)) {
        return false;
    }
    if (atomic_load(&heap->generation) == generation) {
        return true;
    }
    cca_device_call_end(heap);
    return false;
}

/* Records each event on the stream of its use. No lock held. */
static struct cca_status record(struct cca_device *device, struct cca_list *events,
                                const struct cca_stream_use *uses)
{
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    if (device->ops->event_record_stream == NULL) {
        return status;
    }
    CCA_LIST_EACH (link, events) {
        struct cca_use_event *event = CCA_LIST_ENTRY(link, struct cca_use_event, link);
        status = event->event != 0 ? cca_status_ok()
                                   : device->ops->event_create(device->self, &event->event);
        if (status.kind == CCA_OK) {
            status = device->ops->event_record_stream(device->self, event->event, uses->stream);
        }
        if (status.kind != CCA_OK) {
            break;
        }
        uses = uses->next;
    }
    return status;
}

static void enqueue(struct cca_heap *heap, struct cca_block *block, struct cca_list *events,
                    const struct cca_stream_use *uses)
{
    CCA_LIST_EACH (link, events) {
        cca_list_remove(link);
        cca_list_push_back(&queue_of(heap, uses->stream)->events, link);
        block->use_events++;
        uses = uses->next;
    }
}

bool cca_stream_use_defer(struct cca_heap *heap, struct cca_block *block,
                          struct cca_stream_use *uses, cca_key key)
{
    uint64_t generation = heap->generation;
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    struct cca_list events;
    cca_list_init(&events);
    bool is_prepared = uses != &heap->used_everywhere && prepare(heap, block, &uses, key, &events);
    if (uses == NULL) {
        return false;
    }
    if (is_prepared) {
        heap->use_recorders++; /* keeps the queues */
        cca_lock_drop(&heap->lock);
        if (cca_gate_enter(&heap->allocator->gate)) {
            if (is_callable(heap, generation)) {
                status = record(&heap->device, &events, uses);
                cca_device_call_end(heap);
            }
            cca_gate_leave(&heap->allocator->gate);
        }
        cca_lock_take(&heap->lock);
        heap->use_recorders--;
        if (heap->generation != generation) {
            forget(heap, &events);
            cca_stream_use_drop(heap, uses);
            return true;
        }
    }
    if (status.kind == CCA_OK) {
        enqueue(heap, block, &events, uses);
    } else {
        make_idle(heap, &events);
        cca_fence_block(heap, block, CCA_FENCE_ORDERED);
    }
    cca_stream_use_drop(heap, uses);
    return true;
}

void cca_stream_use_put_off(struct cca_heap *heap, struct cca_block *block,
                            struct cca_stream_use *uses, cca_key key,
                            struct cca_free_markers *markers)
{
    if (uses != &heap->used_everywhere) {
        uses->freed_on = key;
        uses->markers = markers;
    }
    block->uses = uses;
    cca_list_push_back(&heap->deferred, &block->wait);
}

/* Off the list, with its uses, which have no markers any more. */
static struct cca_stream_use *undefer(struct cca_heap *heap, struct cca_block *block)
{
    struct cca_stream_use *uses = block->uses;
    cca_list_remove(&block->wait);
    block->uses = NULL;
    if (uses != &heap->used_everywhere) {
        cca_capture_unmark(heap, uses->markers);
        uses->markers = NULL;
    }
    return uses;
}

void cca_stream_use_take_back(struct cca_heap *heap, struct cca_block *block)
{
    cca_stream_use_drop(heap, undefer(heap, block));
}

/* Drops the uses that were recorded only inside a capture. */
static struct cca_stream_use *without_captured(struct cca_heap *heap, struct cca_stream_use *uses)
{
    struct cca_stream_use *kept = NULL, **end = &kept;
    if (uses == &heap->used_everywhere) {
        return uses;
    }
    while (uses != NULL) {
        struct cca_stream_use *next = uses->next;
        if (uses->in_capture) {
            cca_pool_give(&heap->use_records, uses);
        } else {
            uses->next = NULL;
            *end = uses;
            end = &uses->next;
        }
        uses = next;
    }
    return kept;
}

static bool is_used_outside(const struct cca_heap *heap, const struct cca_stream_use *uses)
{
    while (uses != NULL && uses != &heap->used_everywhere && uses->in_capture) {
        uses = uses->next;
    }
    return uses != NULL;
}

void cca_stream_use_capture_ends(struct cca_heap *heap, const struct cca_private_pool *pool)
{
    CCA_LIST_EACH (link, &heap->deferred) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        if (block->segment->pool == pool && !is_used_outside(heap, block->uses)) {
            cca_key key = block->uses->freed_on;
            cca_stream_use_take_back(heap, block);
            cca_heap_complete_free(heap, block, key, cca_clock_ns());
        }
    }
}

void cca_stream_use_captures_over(struct cca_heap *heap)
{
    uint64_t generation = heap->generation;
    while (heap->generation == generation && heap->captures == 0 && heap->state == CCA_HEAP_UP &&
           !cca_list_is_empty(&heap->deferred)) {
        struct cca_block *block = CCA_LIST_ENTRY(heap->deferred.next, struct cca_block, wait);
        struct cca_stream_use *uses = undefer(heap, block);
        cca_key key = uses == &heap->used_everywhere ? CCA_KEY_READY : uses->freed_on;
        if (!cca_stream_use_defer(heap, block, without_captured(heap, uses), key)) {
            cca_heap_complete_free(heap, block, key, cca_clock_ns());
        }
    }
}

/* Asks about the event at the front of the queue, with the lock dropped. */
static enum cca_status_kind query_front(struct cca_heap *heap, struct cca_use_queue *queue)
{
    cca_device_event event = CCA_LIST_ENTRY(queue->events.next, struct cca_use_event, link)->event;
    uint64_t generation = heap->generation;
    enum cca_status_kind kind = CCA_NOT_READY;
    cca_lock_drop(&heap->lock);
    if (is_callable(heap, generation)) {
        kind = heap->device.ops->event_query(heap->device.self, event).kind;
        cca_device_call_end(heap);
    }
    cca_lock_take(&heap->lock);
    return kind;
}

static void complete_front(struct cca_heap *heap, struct cca_use_queue *queue)
{
    struct cca_use_event *event = CCA_LIST_ENTRY(queue->events.next, struct cca_use_event, link);
    struct cca_block *block = event->block;
    cca_list_remove(&event->link);
    event->block = NULL;
    cca_list_push_back(&heap->idle_use_events, &event->link);
    CCA_ASSERT(block->use_events > 0);
    if (--block->use_events == 0) {
        cca_heap_complete_free(heap, block, event->key, cca_clock_ns());
    }
}

void cca_stream_use_poll(struct cca_heap *heap)
{
    if (heap->is_polling_uses || !cca_fence_may_query(heap)) {
        return;
    }
    uint64_t generation = heap->generation;
    heap->is_polling_uses = true;
    /* Only this loop takes queues and events out, so what it holds stays while the lock is dropped.
     */
    CCA_LIST_EACH (link, &heap->use_queues) {
        struct cca_use_queue *queue = CCA_LIST_ENTRY(link, struct cca_use_queue, link);
        while (!cca_list_is_empty(&queue->events)) {
            enum cca_status_kind kind = query_front(heap, queue);
            if (heap->generation != generation) {
                return;
            }
            if (kind == CCA_FATAL) {
                heap->state = CCA_HEAP_DEAD;
                heap->is_polling_uses = false;
                return;
            }
            if (kind != CCA_OK) {
                break;
            }
            complete_front(heap, queue);
        }
        if (cca_list_is_empty(&queue->events) && heap->use_recorders == 0) {
            link_next = link->next;
            cca_list_remove(link);
            cca_pool_give(&heap->use_queue_records, queue);
        }
    }
    heap->is_polling_uses = false;
}

bool cca_stream_use_is_idle(const struct cca_heap *heap)
{
    if (!cca_list_is_empty(&heap->deferred)) {
        return false;
    }
    CCA_LIST_EACH (link, &heap->use_queues) {
        if (!cca_list_is_empty(&CCA_LIST_ENTRY(link, struct cca_use_queue, link)->events)) {
            return false;
        }
    }
    return true;
}

void cca_stream_use_drop_all(struct cca_heap *heap)
{
    CCA_LIST_EACH (link, &heap->use_queues) {
        struct cca_use_queue *queue = CCA_LIST_ENTRY(link, struct cca_use_queue, link);
        CCA_LIST_EACH (event_link, &queue->events) {
            CCA_LIST_ENTRY(event_link, struct cca_use_event, link)->block->use_events = 0;
        }
        forget(heap, &queue->events);
        cca_list_remove(link);
        cca_pool_give(&heap->use_queue_records, queue);
    }
    forget(heap, &heap->idle_use_events);
    CCA_LIST_EACH (link, &heap->deferred) {
        cca_stream_use_take_back(heap, CCA_LIST_ENTRY(link, struct cca_block, wait));
    }
    heap->is_polling_uses = false;
}
