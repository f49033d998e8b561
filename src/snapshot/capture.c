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

static struct cca_heap *heap_at(struct cca_allocator *allocator, int ordinal)
{
    return atomic_load(&allocator->heaps[ordinal]);
}

/* Heap lock held. */
static void count_heap(struct cca_heap *heap, int ordinal, struct counts *counts)
{
    counts->devices++;
    counts->segments += heap->segment_records.items_taken;
    counts->blocks += heap->block_records.items_taken;
    counts->entries[ordinal] = cca_trace_ring_count(&heap->observer.ring);
    counts->pools[ordinal] = cca_pool_table_rows(&heap->observer.pools).count;
}

static void lock_all(struct cca_allocator *allocator)
{
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        if (heap_at(allocator, i) != NULL) {
            cca_lock_take_urgent(&heap_at(allocator, i)->lock);
        }
    }
}

static void unlock_all(struct cca_allocator *allocator)
{
    for (int i = CCA_DEVICES_MAX - 1; i >= 0; i--) {
        if (heap_at(allocator, i) != NULL) {
            cca_lock_drop(&heap_at(allocator, i)->lock);
        }
    }
}

/* All heap locks held. */
static struct counts count_all(struct cca_allocator *allocator)
{
    struct counts counts = {0};
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        if (heap_at(allocator, i) != NULL) {
            count_heap(heap_at(allocator, i), i, &counts);
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
    return block->state == CCA_BLOCK_LIVE      ? CCA_MODEL_ALLOCATED
           : block->state == CCA_BLOCK_PENDING ? CCA_MODEL_PENDING_FREE
                                               : CCA_MODEL_INACTIVE;
}

static void copy_segment(struct cca_model *model, const struct cca_segment *segment, int device)
{
    struct cca_model_segment *copy = &model->segments[model->segment_count++];
    *copy = (struct cca_model_segment){
        .device = device,
        .is_small = segment->is_small,
        .address = segment->addr,
        .total_size = segment->bytes,
        .stream = segment->key == CCA_KEY_READY ? 0 : segment->key,
        .pool_id = {segment->pool == NULL ? 0 : segment->pool->id.capture,
                    segment->pool == NULL ? 0 : segment->pool->id.handle},
        .context = atomic_load(&segment->heap->context),
        .stack = segment->stack,
        .first_block = model->block_count,
    };
    for (const struct cca_block *block = segment->first; block != NULL; block = block->next) {
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
}

static void copy_heap(struct cca_model *model, struct cca_heap *heap, int ordinal,
                      const struct room *room)
{
    struct cca_model_device *device = &model->devices[model->device_count++];
    const struct cca_trace_ring *ring = &heap->observer.ring;
    device->ordinal = ordinal;
    device->pending_bytes = heap->pending_bytes;
    device->stats = heap->observer.stats;
    device->counters = heap->observer.counters;
    struct cca_pool_rows pools = cca_pool_table_rows(&heap->observer.pools);
    device->pools = room->pools[ordinal];
    device->pool_count = pools.count;
    if (pools.count != 0) {
        memcpy(device->pools, pools.rows, pools.count * sizeof(*pools.rows));
    }
    device->entries = room->entries[ordinal];
    device->entry_count = cca_trace_ring_copy(ring, device->entries,
                                              room->capacity.entries[ordinal]);
    device->lost_entries = cca_trace_ring_lost(ring) + cca_trace_ring_count(ring) -
                           device->entry_count;
    CCA_LIST_EACH (link, &heap->segments) {
        copy_segment(model, CCA_LIST_ENTRY(link, struct cca_segment, link), ordinal);
    }
}

/* All heap locks held. */
static void copy_all(struct cca_model *model, struct cca_allocator *allocator,
                     const struct room *room)
{
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        if (heap_at(allocator, i) != NULL) {
            copy_heap(model, heap_at(allocator, i), i, room);
        }
    }
}

static int copy_state(struct cca_model *model, struct cca_allocator *allocator)
{
    lock_all(allocator);
    struct counts counts = count_all(allocator);
    for (int tries = 1;; tries++) {
        struct room room = {0};
        bool is_last = tries ==
                       COUNT_TRIES; /* the last room is made under the locks: it must fit */
        if (!is_last) {
            unlock_all(allocator);
        }
        int rc = make_room(model, &counts, &room);
        if (!is_last) {
            lock_all(allocator);
            counts = count_all(allocator);
        }
        if (rc == 0 && fits(&counts, &room)) {
            copy_all(model, allocator, &room);
        }
        if (rc != 0 || fits(&counts, &room)) {
            unlock_all(allocator);
            return rc;
        }
    }
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

static int copy_settings(struct cca_model *model, const struct cca_config *config)
{
    struct setting_copy copy = {.model = model};
    cca_config_each(config, count_setting, &copy.capacity);
    model->settings = cca_model_array(model, copy.capacity, sizeof(*model->settings));
    if (model->settings == NULL) {
        return -ENOMEM;
    }
    cca_config_each(config, copy_setting, &copy);
    model->allocator_settings = (struct cca_model_allocator_settings){
        .conf_text = "",
        .max_split_size = config->max_split_size == CCA_NO_LIMIT ? -1
                                                                 : (int64_t)config->max_split_size,
        .release_lock_on_cudamalloc = true,
        .pinned_num_register_threads = 1,
        .trace_alloc_max_entries = (int64_t)config->max_entries,
    };
    return 0;
}

int cca_capture_model(struct cca_model *model, struct cca_allocator *allocator,
                      const struct cca_config *config)
{
    size_t entry_bytes = (size_t)config->max_entries * sizeof(struct cca_trace_entry);
    int rc = cca_model_init(model, BASE_RESERVE + 4 * entry_bytes);
    if (rc != 0) {
        return rc;
    }
    rc = copy_state(model, allocator);
    if (rc == 0) {
        rc = copy_settings(model, config);
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
