/* SPDX-License-Identifier: MIT */
#include "snapshot/walk.h"

#include "snapshot/walk_own.h"

size_t cca_walk_shared_count(const struct cca_model *model)
{
    return model->stack_count + model->frame_count;
}

static void walk_frame(const struct cca_model *model, struct cca_writer *writer, size_t index)
{
    const struct cca_model_frame *frame = &model->frames[index];
    size_t id = model->stack_count + index;

    if (!writer->ops->shared_begin(writer, id)) {
        return;
    }
    cca_writer_dict_begin(writer);
    cca_writer_string(writer, "name", frame->name);
    cca_writer_string(writer, "filename", frame->filename);
    cca_writer_int(writer, "line", frame->line);
    /* With the modules' build ids this is all that names and lines can be found from later. */
    cca_writer_uint(writer, "address", frame->address);
    cca_writer_dict_end(writer);
    writer->ops->shared_end(writer, id);
}

static void walk_frames(const struct cca_model *model, struct cca_writer *writer, uint32_t number)
{
    const struct cca_model_stack *stack = cca_model_stack_of(model, number);
    size_t id = (size_t)number - 1;

    cca_writer_key(writer, "frames");
    if (stack == NULL) {
        cca_writer_list_begin(writer);
        cca_writer_list_end(writer);
        return;
    }
    if (!writer->ops->shared_begin(writer, id)) {
        return;
    }
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < stack->count; i++) {
        walk_frame(model, writer, model->stack_frames[stack->first + i]);
    }
    cca_writer_list_end(writer);
    writer->ops->shared_end(writer, id);
}

static void walk_pool_id(struct cca_writer *writer, const char *key, uint64_t first,
                         uint64_t second)
{
    cca_writer_key(writer, key);
    writer->ops->tuple_begin(writer, 2);
    writer->ops->put_uint(writer, first);
    writer->ops->put_uint(writer, second);
    writer->ops->tuple_end(writer);
}

static const char *state_text(enum cca_model_state state)
{
    switch (state) {
    case CCA_MODEL_ALLOCATED: return "active_allocated";
    case CCA_MODEL_PENDING_FREE: return "active_pending_free";
    case CCA_MODEL_INACTIVE: break;
    }
    return "inactive";
}

static void walk_block(const struct cca_model *model, struct cca_writer *writer,
                       const struct cca_model_block *block)
{
    cca_writer_dict_begin(writer);
    cca_writer_uint(writer, "address", block->address);
    cca_writer_uint(writer, "size", block->size);
    cca_writer_uint(writer, "requested_size", block->requested_size);
    cca_writer_string(writer, "state", state_text(block->state));
    walk_frames(model, writer, block->stack);
    cca_writer_int(writer, "alloc_time_us",
                   block->alloc_time_ns != 0 ? cca_model_wall_us(model, block->alloc_time_ns) : 0);
    cca_writer_uint(writer, "thread", block->thread);
    if (block->is_exported) {
        cca_writer_bool(writer, "exported", true);
    }
    cca_writer_dict_end(writer);
}

struct sums {
    uint64_t allocated, active, requested;
};

static struct sums sum_blocks(const struct cca_model_block *blocks, size_t count)
{
    struct sums sums = {0};

    for (size_t i = 0; i < count; i++) {
        if (blocks[i].state == CCA_MODEL_INACTIVE) {
            continue;
        }
        sums.active += blocks[i].size;
        sums.requested += blocks[i].requested_size;
        sums.allocated += blocks[i].state == CCA_MODEL_ALLOCATED ? blocks[i].size : 0;
    }
    return sums;
}

static void walk_segment(const struct cca_model *model, struct cca_writer *writer,
                         const struct cca_model_segment *segment)
{
    const struct cca_model_block *blocks = model->blocks + segment->first_block;
    struct sums sums = sum_blocks(blocks, segment->block_count);

    cca_writer_dict_begin(writer);
    cca_writer_int(writer, "device", segment->device);
    cca_writer_uint(writer, "address", segment->address);
    cca_writer_uint(writer, "total_size", segment->total_size);
    cca_writer_uint(writer, "allocated_size", sums.allocated);
    cca_writer_uint(writer, "active_size", sums.active);
    cca_writer_uint(writer, "requested_size", sums.requested);
    cca_writer_uint(writer, "stream", segment->stream);
    cca_writer_string(writer, "segment_type", segment->is_small ? "small" : "large");
    walk_pool_id(writer, "segment_pool_id", segment->pool_id[0], segment->pool_id[1]);
    cca_writer_bool(writer, "is_expandable", segment->is_expandable);
    walk_frames(model, writer, segment->stack);
    cca_writer_key(writer, "blocks");
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < segment->block_count; i++) {
        walk_block(model, writer, &blocks[i]);
    }
    cca_writer_list_end(writer);
    cca_writer_uint(writer, "context", segment->context);
    cca_writer_dict_end(writer);
}

static void walk_segments(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "segments");
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < model->segment_count; i++) {
        walk_segment(model, writer, &model->segments[i]);
    }
    cca_writer_list_end(writer);
}

/* {0, 0}: the default pool. */
static void walk_entry_pool(struct cca_writer *writer, const struct cca_model_device *device,
                            uint16_t number)
{
    static const uint64_t none[2] = {0, 0};
    bool is_known = device != NULL && number != 0 && number <= device->pool_count;
    const uint64_t *id = is_known ? device->pools[number - 1].id : none;

    walk_pool_id(writer, "pool_id", id[0], id[1]);
}

/* `device` may be NULL for an entry of the default pool. */
static void walk_entry(const struct cca_model *model, struct cca_writer *writer,
                       const struct cca_model_device *device, const struct cca_trace_entry *entry,
                       int64_t time_us)
{
    const struct cca_model_stack *stack = cca_model_stack_of(model, entry->stack);
    bool is_oom = entry->kind == CCA_EVENT_OOM;

    cca_writer_dict_begin(writer);
    cca_writer_string(writer, "action", cca_event_kind_name((enum cca_event_kind)entry->kind));
    cca_writer_uint(writer, is_oom ? "device_free" : "addr", entry->addr);
    cca_writer_uint(writer, "size", entry->requested_bytes);
    cca_writer_uint(writer, "stream", entry->stream);
    cca_writer_int(writer, "time_us", time_us);
    cca_writer_string(writer, "compile_context", "N/A");
    cca_writer_string(writer, "user_metadata", cca_texts_get(model->texts, entry->metadata));
    walk_entry_pool(writer, device, entry->pool);
    if (stack != NULL && stack->count > 0) {
        walk_frames(model, writer, entry->stack);
    }
    cca_writer_uint(writer, "thread", entry->thread);
    cca_writer_string(writer, "api", cca_api_name(cca_trace_entry_api(entry)));
    cca_writer_dict_end(writer);
}

static bool has_segment(const struct cca_model *model, int ordinal)
{
    for (size_t i = 0; i < model->segment_count; i++) {
        if (model->segments[i].device == ordinal) {
            return true;
        }
    }
    return false;
}

/* Viewers list no device that has neither an event nor a segment, and fail when there is none. */
static void walk_stand_in(const struct cca_model *model, struct cca_writer *writer,
                          const struct cca_model_device *device)
{
    const struct cca_trace_entry entry = {
        .kind = CCA_EVENT_SNAPSHOT,
        .requested_bytes = device != NULL
                               ? (uint64_t)device->stats.active_bytes[CCA_STAT_ALL].current
                               : 0,
    };

    walk_entry(model, writer, device, &entry, model->dump_time_us);
}

static void walk_trace(const struct cca_model *model, struct cca_writer *writer,
                       const struct cca_model_device *device)
{
    for (size_t i = 0; i < device->entry_count; i++) {
        walk_entry(model, writer, device, &device->entries[i],
                   cca_model_wall_us(model, device->entries[i].time_ns));
    }
}

/* Devices and segments ascend by ordinal. */
static int highest_ordinal(const struct cca_model *model)
{
    int highest = -1;

    if (model->device_count > 0) {
        highest = model->devices[model->device_count - 1].ordinal;
    }
    if (model->segment_count > 0 && model->segments[model->segment_count - 1].device > highest) {
        highest = model->segments[model->segment_count - 1].device;
    }
    return highest;
}

static void walk_traces(const struct cca_model *model, struct cca_writer *writer)
{
    int highest = highest_ordinal(model);
    size_t next = 0;

    cca_writer_key(writer, "device_traces");
    cca_writer_list_begin(writer);
    for (int ordinal = 0; ordinal <= highest || ordinal == 0; ordinal++) {
        const struct cca_model_device *device = NULL;

        if (next < model->device_count && model->devices[next].ordinal == ordinal) {
            device = &model->devices[next++];
        }
        cca_writer_list_begin(writer);
        if (device != NULL) {
            walk_trace(model, writer, device);
        }
        if ((device == NULL || device->entry_count == 0) && !has_segment(model, ordinal)) {
            walk_stand_in(model, writer, device);
        }
        cca_writer_list_end(writer);
    }
    cca_writer_list_end(writer);
}

static bool has_lost_entries(const struct cca_model *model)
{
    for (size_t i = 0; i < model->device_count; i++) {
        if (model->devices[i].lost_entries > 0) {
            return true;
        }
    }
    return false;
}

static void walk_allocator_settings(const struct cca_model *model, struct cca_writer *writer)
{
    static const char *const classes[CCA_MODEL_DIVISIONS] = {
        "1",   "2",   "4",    "8",    "16",   "32",   "64",    "128",
        "256", "512", "1024", "2048", "4096", "8192", "16384", "32768"};
    const struct cca_model_allocator_settings *settings = &model->allocator_settings;

    cca_writer_key(writer, "allocator_settings");
    cca_writer_dict_begin(writer);
    cca_writer_string(writer, "PYTORCH_CUDA_ALLOC_CONF", settings->conf_text);
    cca_writer_int(writer, "max_split_size", settings->max_split_size);
    cca_writer_double(writer, "garbage_collection_threshold",
                      settings->garbage_collection_threshold);
    cca_writer_bool(writer, "expandable_segments", settings->expandable_segments);
    cca_writer_int(writer, "pinned_num_register_threads", settings->pinned_num_register_threads);
    cca_writer_bool(writer, "release_lock_on_cudamalloc", settings->release_lock_on_cudamalloc);
    cca_writer_bool(writer, "pinned_use_cuda_host_register",
                    settings->pinned_use_cuda_host_register);
    cca_writer_bool(writer, "graph_capture_record_stream_reuse",
                    settings->graph_capture_record_stream_reuse);
    cca_writer_key(writer, "roundup_power2_divisions");
    cca_writer_dict_begin(writer);
    for (size_t i = 0; i < CCA_MODEL_DIVISIONS; i++) {
        cca_writer_int(writer, classes[i], settings->roundup_power2_divisions[i]);
    }
    cca_writer_dict_end(writer);
    cca_writer_int(writer, "trace_alloc_max_entries", settings->trace_alloc_max_entries);
    cca_writer_bool(writer, "trace_alloc_overflowed", has_lost_entries(model));
    cca_writer_dict_end(writer);
}

static void walk_annotations(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "external_annotations");
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct cca_model_annotation *annotation = &model->annotations[i];

        cca_writer_dict_begin(writer);
        cca_writer_int(writer, "device", annotation->device);
        cca_writer_int(writer, "time_us", cca_model_wall_us(model, annotation->time_ns));
        cca_writer_string(writer, "name", annotation->name);
        cca_writer_string(writer, "stage", annotation->is_end ? "END" : "START");
        cca_writer_dict_end(writer);
    }
    cca_writer_list_end(writer);
}

void cca_walk_model(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_dict_begin(writer);
    walk_segments(model, writer);
    walk_traces(model, writer);
    walk_allocator_settings(model, writer);
    walk_annotations(model, writer);
    cca_walk_own(model, writer);
    cca_writer_dict_end(writer);
}
