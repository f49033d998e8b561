/* SPDX-License-Identifier: MIT */
#include "snapshot/model.h"

#include <errno.h>
#include <string.h>

#include "snapshot/sort.h"

int cca_model_init(struct cca_model *model, size_t reserve_bytes)
{
    *model = (struct cca_model){.rank = -1, .oom.device = -1};
    return cca_arena_init(&model->arena, reserve_bytes);
}

void cca_model_fini(struct cca_model *model)
{
    cca_arena_fini(&model->arena);
    *model = (struct cca_model){0};
}

void *cca_model_array(struct cca_model *model, size_t count, size_t item_bytes)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, item_bytes, &bytes)) {
        return NULL;
    }
    return cca_arena_take(&model->arena, bytes > 0 ? bytes : 1);
}

static bool is_id(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

static void keep_entries(struct cca_model_device *device, const uint64_t id[2])
{
    size_t kept = 0;

    for (size_t i = 0; i < device->entry_count; i++) {
        unsigned pool = device->entries[i].pool;

        if (pool != 0 && pool <= device->pool_count && is_id(device->pools[pool - 1].id, id)) {
            device->entries[kept++] = device->entries[i];
        }
    }
    device->entry_count = kept;
}

void cca_model_keep_pool(struct cca_model *model, int device, const uint64_t id[2])
{
    size_t segments = 0, devices = 0;

    for (size_t i = 0; i < model->segment_count; i++) {
        const struct cca_model_segment *segment = &model->segments[i];

        if (segment->device == device && is_id(segment->pool_id, id)) {
            model->segments[segments++] = *segment;
        }
    }
    model->segment_count = segments;
    for (size_t i = 0; i < model->device_count; i++) {
        if (model->devices[i].ordinal == device) {
            keep_entries(&model->devices[i], id);
            model->devices[devices++] = model->devices[i];
        }
    }
    model->device_count = devices;
    model->only_pool[0] = id[0];
    model->only_pool[1] = id[1];
}

const char *cca_model_text(struct cca_model *model, const char *text)
{
    size_t bytes = text != NULL ? strlen(text) + 1 : 0;
    char *copy = bytes > 1 ? cca_arena_take(&model->arena, bytes) : NULL;

    if (copy == NULL) {
        return "";
    }
    memcpy(copy, text, bytes);
    return copy;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_devices(const void *a, const void *b)
{
    const struct cca_model_device *left = a, *right = b;

    return (left->ordinal > right->ordinal) - (left->ordinal < right->ordinal);
}

static int compare_segments(const void *a, const void *b)
{
    const struct cca_model_segment *left = a, *right = b;

    if (left->device != right->device) {
        return left->device < right->device ? -1 : 1;
    }
    return compare_u64(left->address, right->address);
}

static int compare_blocks(const void *a, const void *b)
{
    const struct cca_model_block *left = a, *right = b;

    return compare_u64(left->address, right->address);
}

void cca_model_sort(struct cca_model *model)
{
    cca_sort(model->devices, model->device_count, sizeof(*model->devices), compare_devices);
    cca_sort(model->segments, model->segment_count, sizeof(*model->segments), compare_segments);
    for (size_t i = 0; i < model->segment_count; i++) {
        const struct cca_model_segment *segment = &model->segments[i];

        if (segment->block_count > 1) {
            cca_sort(model->blocks + segment->first_block, segment->block_count,
                     sizeof(*model->blocks), compare_blocks);
        }
    }
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

struct cca_model_shares cca_model_shares(const struct cca_model *model,
                                         const struct cca_model_device *device)
{
    struct cca_model_shares shares = {
        .reserved = (uint64_t)device->stats.reserved_bytes[CCA_STAT_ALL].current,
        .allocated = (uint64_t)device->stats.allocated_bytes[CCA_STAT_ALL].current,
    };
    uint64_t used = device->free_time_ns != 0 ? less(device->total_bytes, device->free_bytes) : 0;

    for (size_t i = 0; i < model->unmanaged_count; i++) {
        bool is_here = model->unmanaged[i].device == device->ordinal;

        shares.unmanaged += is_here ? model->unmanaged[i].bytes : 0;
    }
    shares.cached = less(shares.reserved, shares.allocated + device->pending_bytes);
    shares.other = less(used, shares.reserved + shares.unmanaged);
    return shares;
}
