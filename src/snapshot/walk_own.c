/* SPDX-License-Identifier: MIT */
#include "snapshot/walk_own.h"

#include "base/format.h"

static void walk_process(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_string(writer, "version", model->version);
    cca_writer_string(writer, "host", model->host);
    cca_writer_int(writer, "pid", model->pid);
    cca_writer_key(writer, "rank");
    if (model->rank >= 0) {
        writer->ops->put_int(writer, model->rank);
    } else {
        writer->ops->none(writer);
    }
    cca_writer_string(writer, "program", model->program);
    cca_writer_key(writer, "command_line");
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < model->command_line_count; i++) {
        writer->ops->string(writer, model->command_line[i], true);
    }
    cca_writer_list_end(writer);
    cca_writer_int(writer, "start_time_us", model->start_time_us);
    cca_writer_int(writer, "dump_time_us", model->dump_time_us);
    cca_writer_string(writer, "cause", model->cause);
    cca_writer_bool(writer, "is_partial", model->is_partial);
    cca_writer_int(writer, "mark_time_us",
                   model->mark_ns != 0 ? cca_model_wall_us(model, model->mark_ns) : 0);
    cca_writer_string(writer, "unwinder", model->unwinder);
    cca_writer_string(writer, "symbolized", model->symbolized);
    if (model->only_pool[0] != 0 || model->only_pool[1] != 0) {
        cca_writer_key(writer, "only_pool");
        cca_writer_list_begin(writer);
        writer->ops->put_uint(writer, model->only_pool[0]);
        writer->ops->put_uint(writer, model->only_pool[1]);
        cca_writer_list_end(writer);
    }
    cca_writer_int(writer, "driver_version", model->driver_version);
    cca_writer_int(writer, "runtime_version", model->runtime_version);
}

static void walk_hooks(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "hook_coverage");
    cca_writer_dict_begin(writer);
    for (size_t i = 0; i < model->hook_count; i++) {
        const struct cca_model_hook *hook = &model->hooks[i];

        cca_writer_key(writer, hook->api);
        cca_writer_dict_begin(writer);
        cca_writer_string(writer, "door", hook->door);
        cca_writer_uint(writer, "seen", hook->seen);
        cca_writer_uint(writer, "served", hook->served);
        cca_writer_uint(writer, "passed", hook->passed);
        cca_writer_uint(writer, "missed", hook->missed);
        cca_writer_dict_end(writer);
    }
    cca_writer_dict_end(writer);
}

static void walk_settings(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "settings");
    cca_writer_dict_begin(writer);
    for (size_t i = 0; i < model->setting_count; i++) {
        cca_writer_string(writer, model->settings[i].name, model->settings[i].value);
    }
    cca_writer_dict_end(writer);
}

static void walk_messages(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "messages");
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < model->message_count; i++) {
        writer->ops->string(writer, model->messages[i], true);
    }
    cca_writer_list_end(writer);
}

static void walk_stat(void *user, const char *key, int64_t value)
{
    struct cca_writer *writer = user;

    writer->ops->key(writer, key, false);
    writer->ops->put_int(writer, value);
}

typedef void (*walk_device_fn)(const struct cca_model_device *device, const struct cca_model *model,
                               struct cca_writer *writer);

static void walk_device_stats(const struct cca_model_device *device, const struct cca_model *model,
                              struct cca_writer *writer)
{
    (void)model;
    struct cca_pool_rows pools = {device->pools, device->pool_count};

    cca_stats_each(&device->stats, pools, walk_stat, writer);
}

static void walk_device_counters(const struct cca_model_device *device,
                                 const struct cca_model *model, struct cca_writer *writer)
{
    const struct cca_counters *counters = &device->counters;

    (void)model;
    cca_writer_int(writer, "allocs", counters->allocs);
    cca_writer_int(writer, "hits", counters->hits);
    cca_writer_int(writer, "passed_through", counters->passed);
    cca_writer_int(writer, "driver_allocs", counters->driver_allocs);
    cca_writer_int(writer, "driver_frees", counters->driver_frees);
    cca_writer_int(writer, "driver_alloc_time_us", counters->driver_alloc_ns / 1000);
    cca_writer_int(writer, "driver_alloc_median_us",
                   (int64_t)(cca_counters_driver_alloc_median_ns(counters) / 1000));
    cca_writer_int(writer, "driver_free_time_us", counters->driver_free_ns / 1000);
    cca_writer_int(writer, "free_waits", counters->free_waits);
    cca_writer_int(writer, "free_wait_time_us", counters->free_wait_ns / 1000);
    cca_writer_int(writer, "fences", counters->fences);
    cca_writer_int(writer, "fence_joins", counters->fence_joins);
    cca_writer_uint(writer, "pending_bytes", device->pending_bytes);
    cca_writer_uint(writer, "limit_bytes", device->limit_bytes);
    cca_writer_double(writer, "memory_fraction", device->memory_fraction);
    cca_writer_uint(writer, "lost_entries", device->lost_entries);
    cca_writer_uint(writer, "cut_entries", device->cut_entries);
    cca_writer_uint(writer, "skipped_entries", device->skipped_entries);
    cca_writer_uint(writer, "truncated_stacks", device->unwind.truncated);
    cca_writer_uint(writer, "missing_stacks", device->unwind.missing);
    cca_writer_uint(writer, "slow_stacks", device->unwind.slow);
    cca_writer_uint(writer, "fallback_stacks", device->unwind.fallback);
}

/* When the most memory was live; a replay to that moment tells who held it. */
static void walk_device_peak(const struct cca_model_device *device, const struct cca_model *model,
                             struct cca_writer *writer)
{
    cca_writer_int(writer, "time_us",
                   device->peak_time_ns != 0 ? cca_model_wall_us(model, device->peak_time_ns) : 0);
    cca_writer_int(writer, "bytes", device->stats.allocated_bytes[CCA_STAT_ALL].peak);
}

static void walk_device_estimate(const struct cca_model_device *device,
                                 const struct cca_model *model, struct cca_writer *writer)
{
    const struct cca_model_estimate *estimate = &device->estimate;

    (void)model;
    cca_writer_int(writer, "allocs", estimate->allocs);
    cca_writer_int(writer, "frees", estimate->frees);
    cca_writer_int(writer, "alloc_time_us", estimate->alloc_ns / 1000);
    cca_writer_int(writer, "free_time_us", estimate->free_ns / 1000);
    cca_writer_int(writer, "hits", estimate->hits);
    cca_writer_int(writer, "driver_allocs", estimate->driver_allocs);
    cca_writer_int(writer, "driver_frees", estimate->driver_frees);
    cca_writer_int(writer, "reserved_peak", estimate->reserved_peak);
}

/* A list indexed by ordinal: one dict per device, an empty one for an ordinal that is not there. */
static void walk_by_ordinal(const struct cca_model *model, struct cca_writer *writer,
                            const char *key, walk_device_fn walk)
{
    int ordinal = 0;

    cca_writer_key(writer, key);
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < model->device_count; i++) {
        for (; ordinal <= model->devices[i].ordinal; ordinal++) {
            cca_writer_dict_begin(writer);
            if (ordinal == model->devices[i].ordinal) {
                walk(&model->devices[i], model, writer);
            }
            cca_writer_dict_end(writer);
        }
    }
    cca_writer_list_end(writer);
}

static void walk_build_id(const struct cca_module *module, struct cca_writer *writer)
{
    static const char hex[] = "0123456789abcdef";
    char digits[2 * sizeof(module->build_id) + 1];
    struct cca_text text;

    cca_text_init(&text, digits, sizeof(digits));
    for (unsigned i = 0; i < module->build_id_len && i < sizeof(module->build_id); i++) {
        cca_text_char(&text, hex[module->build_id[i] >> 4]);
        cca_text_char(&text, hex[module->build_id[i] & 15]);
    }
    cca_writer_key(writer, "build_id");
    writer->ops->string(writer, digits, false);
}

static void walk_module(struct cca_writer *writer, const struct cca_module *module)
{
    cca_writer_dict_begin(writer);
    cca_writer_string(writer, "path", module->path);
    cca_writer_uint(writer, "base", module->base);
    cca_writer_uint(writer, "start", module->start);
    cca_writer_uint(writer, "end", module->end);
    walk_build_id(module, writer);
    cca_writer_bool(writer, "is_unloaded", module->is_unloaded);
    cca_writer_dict_end(writer);
}

static void walk_modules(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "modules");
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < model->modules.count; i++) {
        walk_module(writer, &model->modules.list[i]);
    }
    for (size_t i = 0; i < model->gone_count; i++) {
        walk_module(writer, model->gone[i]);
    }
    cca_writer_list_end(writer);
}

static void walk_devices(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "devices");
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < model->device_count; i++) {
        const struct cca_model_device *device = &model->devices[i];
        const struct cca_model_shares shares = cca_model_shares(model, device);

        cca_writer_dict_begin(writer);
        cca_writer_int(writer, "device", device->ordinal);
        cca_writer_uint(writer, "total", device->total_bytes);
        cca_writer_uint(writer, "free", device->free_bytes);
        cca_writer_int(writer, "free_time_us",
                       device->free_time_ns != 0 ? cca_model_wall_us(model, device->free_time_ns)
                                                 : 0);
        cca_writer_uint(writer, "reserved", shares.reserved);
        cca_writer_uint(writer, "allocated", shares.allocated);
        cca_writer_uint(writer, "pending", device->pending_bytes);
        cca_writer_uint(writer, "cached", shares.cached);
        cca_writer_uint(writer, "unmanaged", shares.unmanaged);
        cca_writer_uint(writer, "other", shares.other);
        cca_writer_bool(writer, "partial", device->is_partial);
        cca_writer_dict_end(writer);
    }
    cca_writer_list_end(writer);
}

static void walk_unmanaged(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "unmanaged");
    cca_writer_list_begin(writer);
    for (size_t i = 0; i < model->unmanaged_count; i++) {
        const struct cca_model_unmanaged *row = &model->unmanaged[i];

        cca_writer_dict_begin(writer);
        cca_writer_int(writer, "device", row->device);
        cca_writer_string(writer, "api", row->api);
        cca_writer_string(writer, "library", row->library);
        cca_writer_uint(writer, "bytes", row->bytes);
        cca_writer_uint(writer, "count", row->count);
        cca_writer_dict_end(writer);
    }
    cca_writer_list_end(writer);
}

static void walk_oom(const struct cca_model *model, struct cca_writer *writer)
{
    const struct cca_model_oom *oom = &model->oom;

    cca_writer_key(writer, "oom");
    if (oom->device < 0) {
        writer->ops->none(writer);
        return;
    }
    cca_writer_dict_begin(writer);
    cca_writer_int(writer, "device", oom->device);
    cca_writer_uint(writer, "requested", oom->requested_bytes);
    cca_writer_uint(writer, "segment", oom->segment_bytes);
    cca_writer_uint(writer, "limit", oom->limit_bytes);
    cca_writer_uint(writer, "largest_free", oom->largest_free_bytes);
    cca_writer_uint(writer, "stranded", oom->stranded_bytes);
    cca_writer_string(writer, "advice", oom->advice);
    cca_writer_dict_end(writer);
}

void cca_walk_own(const struct cca_model *model, struct cca_writer *writer)
{
    cca_writer_key(writer, "cca");
    cca_writer_dict_begin(writer);
    walk_process(model, writer);
    walk_hooks(model, writer);
    walk_settings(model, writer);
    walk_messages(model, writer);
    walk_by_ordinal(model, writer, "stats", walk_device_stats);
    walk_by_ordinal(model, writer, "counters", walk_device_counters);
    if (model->has_estimate) {
        walk_by_ordinal(model, writer, "estimate", walk_device_estimate);
    }
    walk_modules(model, writer);
    walk_devices(model, writer);
    walk_by_ordinal(model, writer, "peak", walk_device_peak);
    walk_unmanaged(model, writer);
    walk_oom(model, writer);
    cca_writer_dict_end(writer);
}
