/* SPDX-License-Identifier: MIT */
#include "snapshot/capture.h"

#include <errno.h>
#include <string.h>

#include "alloc/allocator_internal.h"
#include "alloc/private_pool.h"
#include "base/clock.h"
#include "config/config.h"

enum { COUNT_TRIES = 3 };

/* Room for everything else of a model: stacks, names, module tables. */
#define BASE_RESERVE ((size_t)1 << 30)

struct counts {
    size_t devices, segments, blocks, entries[CCA_DEVICES_MAX], pools[CCA_DEVICES_MAX];
};

static struct cca_heap *heap_at(struct cca_allocator *allocator, int slot)
{
    return atomic_load(&allocator->heaps[slot]);
}

/* Stretches of an expandable segment that have memory; each is shown as a segment. */
static size_t count_stretches(const struct cca_segment *segment)
{
    size_t count = 0;
    bool was_mapped = false;
    for (const struct cca_block *block = segment->first; block != NULL; block = block->next) {
        bool is_mapped = cca_block_is_mapped(block);
        count += is_mapped && !was_mapped;
        was_mapped = is_mapped;
    }
    return count;
}

/* One copy under way. */
struct capture {
    struct cca_allocator *allocator;
    const struct cca_capture_options *options;
    uint64_t locked; /* bit i: the lock of heap i is held */
};

static bool is_locked(const struct capture *capture, int slot)
{
    return (capture->locked >> slot & 1) != 0;
}

/* Whether it is a device's own heap, which keeps the accounts of all its contexts. */
static bool is_of_device(const struct cca_heap *heap)
{
    return heap->accounts == heap;
}

/* Heap lock held. */
static void count_heap(const struct capture *capture, struct cca_heap *heap, struct counts *counts)
{
    size_t entries = cca_trace_ring_count(&heap->observer.ring);
    size_t most = capture->options->last_entries;

    counts->segments += heap->segment_records.items_taken;
    if (heap->expandables != 0) {
        CCA_LIST_EACH (link, &heap->segments) {
            const struct cca_segment *segment = CCA_LIST_ENTRY(link, struct cca_segment, link);
            counts->segments += cca_segment_is_expandable(segment) ? count_stretches(segment) : 0;
        }
    }
    counts->blocks += heap->block_records.items_taken;
    if (is_of_device(heap)) {
        counts->entries[heap->slot] = most != 0 && entries > most ? most : entries;
        counts->pools[heap->slot] = cca_pool_table_rows(&heap->observer.pools).count;
    }
}

static void lock_all(struct capture *capture)
{
    capture->locked = 0;
    for (int i = CCA_HEAPS_MAX - 1; i >= 0; i--) {
        struct cca_heap *heap = heap_at(capture->allocator, i);

        if (heap != NULL && cca_lock_take_urgent_within(&heap->lock, capture->options->lock_ms)) {
            capture->locked |= UINT64_C(1) << i;
        }
    }
}

static void unlock_all(const struct capture *capture)
{
    for (int i = 0; i < CCA_HEAPS_MAX; i++) {
        if (is_locked(capture, i)) {
            cca_lock_drop(&heap_at(capture->allocator, i)->lock);
        }
    }
}

/* Of the heaps that are locked, but for `devices`. */
static struct counts count_all(const struct capture *capture)
{
    struct counts counts = {0};
    for (int i = 0; i < CCA_HEAPS_MAX; i++) {
        struct cca_heap *heap = heap_at(capture->allocator, i);

        counts.devices += heap != NULL && is_of_device(heap);
        if (heap != NULL && is_locked(capture, i)) {
            count_heap(capture, heap, &counts);
        }
    }
    return counts;
}

/* The arrays of a model, with some room for what comes before the locks are held again, and
 * touched, so that the copy does not wait for the kernel's pages. */
struct room {
    struct counts capacity;
    struct cca_trace_entry *entries[CCA_DEVICES_MAX];
    struct cca_pool_row *pools[CCA_DEVICES_MAX];
};

static size_t with_slack(size_t count)
{
    return count + count / 8 + 64;
}

static void *touched_array(struct cca_model *model, size_t count, size_t item_bytes)
{
    void *array = cca_model_array(model, count, item_bytes);
    if (array != NULL) {
        memset(array, 0, count * item_bytes);
    }
    return array;
}

static int make_room(struct cca_model *model, const struct counts *counts, struct room *room)
{
    room->capacity.devices = counts->devices + 1;
    room->capacity.segments = with_slack(counts->segments);
    room->capacity.blocks = with_slack(counts->blocks);
    model->devices = touched_array(model, room->capacity.devices, sizeof(*model->devices));
    model->segments = touched_array(model, room->capacity.segments, sizeof(*model->segments));
    model->blocks = touched_array(model, room->capacity.blocks, sizeof(*model->blocks));
    if (model->devices == NULL || model->segments == NULL || model->blocks == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        if (counts->pools[i] != 0) {
            room->capacity.pools[i] = with_slack(counts->pools[i]);
            room->pools[i] = touched_array(model, room->capacity.pools[i], sizeof(**room->pools));
            if (room->pools[i] == NULL) {
                return -ENOMEM;
            }
        }
        if (counts->entries[i] == 0) {
            continue;
        }
        room->capacity.entries[i] = with_slack(counts->entries[i]);
        room->entries[i] = touched_array(model, room->capacity.entries[i],
                                         sizeof(*room->entries[i]));
        if (room->entries[i] == NULL) {
            return -ENOMEM;
        }
    }
    return 0;
}

static bool fits(const struct counts *counts, const struct room *room)
{
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        if (counts->pools[i] > room->capacity.pools[i]) {
            return false;
        }
    }
    return counts->devices <= room->capacity.devices &&
           counts->segments <= room->capacity.segments && counts->blocks <= room->capacity.blocks;
}

static enum cca_model_state model_state(const struct cca_block *block)
{
    /* CLAIMED is free as well. */
    return block->state == CCA_BLOCK_LIVE      ? CCA_MODEL_ALLOCATED
           : block->state == CCA_BLOCK_PENDING ? CCA_MODEL_PENDING_FREE
                                               : CCA_MODEL_INACTIVE;
}

/* The blocks from `first` up to the first without memory, which is returned. */
static const struct cca_block *copy_stretch(struct cca_model *model,
                                            const struct cca_segment *segment,
                                            const struct cca_block *first, int device)
{
    const struct cca_block *block = first;
    struct cca_model_segment *copy = &model->segments[model->segment_count++];
    *copy = (struct cca_model_segment){
        .device = device,
        .is_small = segment->is_small,
        .is_expandable = cca_segment_is_expandable(segment),
        .address = first->addr,
        .stream = segment->key == CCA_KEY_READY ? 0 : segment->key,
        .pool_id = {segment->pool == NULL ? 0 : segment->pool->id.capture,
                    segment->pool == NULL ? 0 : segment->pool->id.handle},
        .context = atomic_load(&segment->heap->context),
        .stack = segment->stack,
        .first_block = model->block_count,
    };
    for (; block != NULL && cca_block_is_mapped(block); block = block->next) {
        copy->total_size += block->bytes;
        model->blocks[model->block_count++] = (struct cca_model_block){
            .address = block->addr,
            .size = block->bytes,
            .requested_size = block->requested_bytes,
            .alloc_time_ns = block->alloc_time_ns,
            .stack = block->stack,
            .thread = block->thread,
            .state = model_state(block),
        };
    }
    copy->block_count = model->block_count - copy->first_block;
    return block;
}

static void copy_segment(struct cca_model *model, const struct cca_segment *segment, int device)
{
    const struct cca_block *block = segment->first;
    while (block != NULL) {
        block = cca_block_is_mapped(block) ? copy_stretch(model, segment, block, device)
                                           : block->next;
    }
}

static void copy_entries(const struct capture *capture, const struct cca_trace_ring *ring,
                         struct cca_model_device *device, size_t capacity)
{
    size_t most = capture->options->last_entries;
    size_t held = cca_trace_ring_count(ring);

    most = most != 0 && most < capacity ? most : capacity;
    device->entry_count = cca_trace_ring_copy(ring, device->entries, most);
    device->cut_entries = held - device->entry_count;
    device->lost_entries = cca_trace_ring_lost(ring) + device->cut_entries;
}

static void copy_accounts(const struct capture *capture, struct cca_model *model,
                          struct cca_heap *heap, struct cca_model_device *device,
                          const struct room *room)
{
    const struct cca_observer *observer = &heap->observer;
    device->memory_fraction = heap->memory_fraction;
    device->limit_bytes = heap->limit_bytes == CCA_NO_LIMIT ? 0 : heap->limit_bytes;
    device->total_bytes = heap->device_bytes;
    device->stats = observer->stats;
    device->counters = observer->counters;
    struct cca_pool_rows pools = cca_pool_table_rows(&heap->observer.pools);
    device->pools = room->pools[device->ordinal];
    device->pool_count = pools.count;
    if (pools.count != 0) {
        memcpy(device->pools, pools.rows, pools.count * sizeof(*pools.rows));
    }
    device->peak_time_ns = observer->peak_time_ns;
    device->skipped_entries = observer->skipped;
    device->entries = room->entries[device->ordinal];
    copy_entries(capture, &observer->ring, device, room->capacity.entries[device->ordinal]);
    model->allocator_settings.trace_alloc_max_entries = (int64_t)observer->recording.ring_entries;
}

/* The blocks of one context. */
static void copy_blocks(struct cca_model *model, const struct cca_heap *heap,
                        struct cca_model_device *device)
{
    device->pending_bytes += heap->pending_bytes;
    CCA_LIST_EACH (link, &heap->segments) {
        copy_segment(model, CCA_LIST_ENTRY(link, struct cca_segment, link), device->ordinal);
    }
}

/* What all contexts of a device hold. */
static void copy_contexts(const struct capture *capture, struct cca_model *model,
                          struct cca_model_device *device)
{
    for (int i = 0; i < CCA_HEAPS_MAX; i++) {
        const struct cca_heap *heap = heap_at(capture->allocator, i);

        if (heap == NULL || heap->accounts->slot != device->ordinal) {
            continue;
        }
        if (is_locked(capture, i)) {
            copy_blocks(model, heap, device);
        } else {
            device->is_partial = true;
            model->is_partial = true;
        }
    }
}

/* The locks that could be had are held. */
static void copy_all(const struct capture *capture, struct cca_model *model,
                     const struct room *room)
{
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        struct cca_heap *heap = heap_at(capture->allocator, i);
        struct cca_model_device *device;

        if (heap == NULL || !is_of_device(heap) || model->device_count == room->capacity.devices) {
            continue;
        }
        device = &model->devices[model->device_count++];
        device->ordinal = i;
        if (is_locked(capture, i)) {
            copy_accounts(capture, model, heap, device, room);
            copy_contexts(capture, model, device);
        } else {
            device->is_partial = true;
            model->is_partial = true;
        }
    }
}

static size_t reserve_bytes(const struct counts *counts)
{
    size_t bytes = BASE_RESERVE + 8 * (counts->segments * sizeof(struct cca_model_segment) +
                                       counts->blocks * sizeof(struct cca_model_block));
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        bytes += 8 * counts->entries[i] * sizeof(struct cca_trace_entry);
    }
    return bytes;
}

/* Makes room without the locks and copies with them; when more came in between, again; the last
 * room is made under the locks, and so fits. */
static int copy_state(struct cca_model *model, struct capture *capture)
{
    lock_all(capture);
    struct counts counts = count_all(capture);
    int rc = cca_model_init(model, reserve_bytes(&counts));
    for (int tries = 1; rc == 0; tries++) {
        struct room room = {0};
        bool is_last = tries == COUNT_TRIES;
        if (!is_last) {
            unlock_all(capture);
        }
        rc = make_room(model, &counts, &room);
        if (!is_last) {
            lock_all(capture);
            counts = count_all(capture);
        }
        if (rc == 0 && fits(&counts, &room)) {
            copy_all(capture, model, &room);
            break;
        }
    }
    unlock_all(capture);
    return rc;
}

struct setting_copy {
    struct cca_model *model;
    size_t capacity;
};

static void count_setting(void *user, const char *name, const char *value)
{
    (void)name;
    (void)value;
    (*(size_t *)user)++;
}

static void copy_setting(void *user, const char *name, const char *value)
{
    struct setting_copy *copy = user;
    if (copy->model->setting_count < copy->capacity) {
        copy->model->settings[copy->model->setting_count++] = (struct cca_model_setting){
            .name = cca_model_text(copy->model, name),
            .value = cca_model_text(copy->model, value),
        };
    }
}

/* As they are now: the program may have changed them since the start. */
static int copy_settings(struct cca_model *model, const struct capture *capture,
                         const struct cca_config *at_start)
{
    struct setting_copy copy = {.model = model};
    struct cca_config *config = cca_model_array(model, 1, sizeof(*config));
    if (config == NULL) {
        return -ENOMEM;
    }
    if (!cca_allocator_copy_settings(capture->allocator, capture->options->lock_ms, config)) {
        *config = *at_start;
    }
    cca_config_each(config, count_setting, &copy.capacity);
    model->settings = cca_model_array(model, copy.capacity, sizeof(*model->settings));
    if (model->settings == NULL) {
        return -ENOMEM;
    }
    cca_config_each(config, copy_setting, &copy);
    model->allocator_settings = (struct cca_model_allocator_settings){
        .conf_text = config->conf,
        .max_split_size = config->max_split_size == CCA_NO_LIMIT ? -1
                                                                 : (int64_t)config->max_split_size,
        .expandable_segments = config->expandable_segments,
        .garbage_collection_threshold = config->garbage_collection_threshold,
        .graph_capture_record_stream_reuse = config->graph_capture_reuse,
        .release_lock_on_cudamalloc = true,
        .pinned_num_register_threads = 1,
        .trace_alloc_max_entries = model->allocator_settings.trace_alloc_max_entries,
    };
    for (size_t i = 0; i < CCA_MODEL_DIVISIONS; i++) {
        model->allocator_settings.roundup_power2_divisions[i] = config->divisions.of[i];
    }
    return 0;
}

int cca_capture_model(struct cca_model *model, struct cca_allocator *allocator,
                      const struct cca_config *config, const struct cca_capture_options *options)
{
    struct capture capture = {.allocator = allocator, .options = options};
    int rc = copy_state(model, &capture);
    if (rc == 0) {
        rc = copy_settings(model, &capture, config);
    }
    if (rc != 0) {
        cca_model_fini(model);
        return rc;
    }
    uint64_t now_ns = cca_clock_ns();
    model->dump_time_us = cca_clock_wall_us(now_ns);
    model->wall_base_us = model->dump_time_us - (int64_t)(now_ns / 1000);
    if (model->device_count != 0) {
        model->devices[0].unwind = cca_unwind_counts(); /* of the process, so shown once */
    }
    cca_model_sort(model);
    return 0;
}
