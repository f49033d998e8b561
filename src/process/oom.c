/* SPDX-License-Identifier: MIT */
#include "process/oom.h"

#include "base/format.h"
#include "base/log.h"
#include "config/config.h"
#include "snapshot/top_stacks.h"

enum { TOP_STACKS = 3, TOP_FRAMES = 6, TEXT_BYTES = 6144, ADVICE_BYTES = 256 };

#define LARGE_SEGMENT_BYTES ((uint64_t)20 << 20)
#define MIB                 ((uint64_t)1 << 20)

static uint64_t capacity_of(const struct cca_oom_figures *figures)
{
    /* What the driver has for us: what we hold, and what is free there. */
    uint64_t capacity = figures->reserved + figures->device_free;

    return figures->limit != 0 && figures->limit < capacity ? figures->limit : capacity;
}

/* The largest power of two of MiB that is not above the segment: blocks of that size and more are
 * then kept whole. */
static uint64_t split_size_for(uint64_t segment_bytes)
{
    uint64_t bytes = 32 * MIB;

    while (2 * bytes <= segment_bytes) {
        bytes *= 2;
    }
    return bytes;
}

const char *cca_oom_advice(const struct cca_oom_figures *figures, char *buf, size_t cap)
{
    uint64_t capacity = capacity_of(figures);
    uint64_t needed = figures->live + figures->rounded;
    uint64_t needed_whole = needed + figures->stranded - figures->stranded_large;
    struct cca_text text;

    cca_text_init(&text, buf, cap);
    if (needed + figures->pending > capacity && needed <= capacity && figures->pending != 0) {
        cca_text_str(&text, "freed memory was still in use on the device: a longer CCA_OOM_WAIT_MS "
                            "would help");
    } else if (needed_whole <= capacity && figures->stranded_segment >= 32 * MIB &&
               (figures->max_split == 0 || figures->max_split > figures->stranded_segment)) {
        cca_text_str(&text, "the memory is there but cut up: CCA_MAX_SPLIT_SIZE=");
        cca_text_u64(&text, split_size_for(figures->stranded_segment) / MIB);
        cca_text_str(&text, "M would help");
    } else if (figures->limit != 0 && needed > figures->limit &&
               needed <= figures->reserved + figures->device_free) {
        cca_text_str(&text, "the device has the memory: a limit (CCA_MEMORY_LIMIT or "
                            "CCA_MEMORY_FRACTION) of ");
        cca_text_size(&text, needed);
        cca_text_str(&text, " or more would help");
    }
    return buf;
}

/* Free parts of segments in use, of the device of model->oom. */
static void examine_segments(const struct cca_model *model, struct cca_oom_figures *figures)
{
    for (size_t i = 0; i < model->segment_count; i++) {
        const struct cca_model_segment *segment = &model->segments[i];
        uint64_t free_bytes = 0;

        if (segment->device != model->oom.device) {
            continue;
        }
        for (size_t j = 0; j < segment->block_count; j++) {
            const struct cca_model_block *block = &model->blocks[segment->first_block + j];

            if (block->state == CCA_MODEL_INACTIVE) {
                free_bytes += block->size;
                figures->largest_free = block->size > figures->largest_free ? block->size
                                                                            : figures->largest_free;
            }
        }
        if (free_bytes == 0 || free_bytes == segment->total_size) {
            continue;
        }
        figures->stranded += free_bytes;
        if (segment->total_size <= LARGE_SEGMENT_BYTES) {
            continue;
        }
        figures->stranded_large += free_bytes;
        if (figures->stranded_segment == 0 || segment->total_size < figures->stranded_segment) {
            figures->stranded_segment = segment->total_size;
        }
    }
}

static struct cca_model_device *find_device(const struct cca_model *model)
{
    for (size_t i = 0; i < model->device_count; i++) {
        if (model->devices[i].ordinal == model->oom.device) {
            return &model->devices[i];
        }
    }
    return NULL;
}

void cca_oom_examine(struct cca_model *model, const struct cca_config *config)
{
    const struct cca_model_device *device = find_device(model);
    struct cca_oom_figures figures = {.rounded = model->oom.requested_bytes};
    char advice[ADVICE_BYTES];

    if (device == NULL) {
        return;
    }
    figures.live = (uint64_t)device->stats.allocated_bytes[CCA_STAT_ALL].current;
    figures.pending = device->pending_bytes;
    figures.reserved = (uint64_t)device->stats.reserved_bytes[CCA_STAT_ALL].current;
    figures.limit = model->oom.limit_bytes;
    figures.device_free = device->free_bytes;
    figures.max_split = config->max_split_size == CCA_NO_LIMIT ? 0 : config->max_split_size;
    examine_segments(model, &figures);
    model->oom.largest_free_bytes = figures.largest_free;
    model->oom.stranded_bytes = figures.stranded;
    model->oom.advice = cca_model_text(model, cca_oom_advice(&figures, advice, sizeof(advice)));
}

static void put(struct cca_text *text, const char *before, uint64_t bytes)
{
    cca_text_str(text, before);
    cca_text_size(text, bytes);
}

static void put_figures(struct cca_text *text, const struct cca_model *model,
                        const struct cca_model_device *device)
{
    uint64_t reserved = (uint64_t)device->stats.reserved_bytes[CCA_STAT_ALL].current;
    uint64_t live = (uint64_t)device->stats.allocated_bytes[CCA_STAT_ALL].current;
    uint64_t cached = reserved - live - device->pending_bytes;
    uint64_t used = device->total_bytes - device->free_bytes;

    cca_text_str(text, "cca: out of memory on device ");
    cca_text_i64(text, device->ordinal);
    put(text, ": ", model->oom.requested_bytes);
    put(text, " asked for; ", device->free_bytes);
    put(text, " of ", device->total_bytes);
    cca_text_str(text, " free");
    if (model->oom.limit_bytes != 0 && model->oom.limit_bytes != device->total_bytes) {
        put(text, ", limit ", model->oom.limit_bytes);
    }
    put(text, "\n  held by the program ", live);
    put(text, ", freed but still in use ", device->pending_bytes);
    put(text, ", cached ", cached);
    put(text, "; largest free block ", model->oom.largest_free_bytes);
    put(text, "\n  lost to fragmentation ", model->oom.stranded_bytes);
    cca_text_str(text, " (");
    cca_text_double(
        text, reserved != 0 ? 100.0 * (double)model->oom.stranded_bytes / (double)reserved : 0, 1);
    put(text, " %); other memory on the device ", used > reserved ? used - reserved : 0);
}

static void put_stacks(struct cca_text *text, struct cca_model *model)
{
    size_t count = 0;
    const struct cca_holder *holders = cca_top_stacks(model, model->oom.device, &count);

    for (size_t i = 0; holders != NULL && i < count && i < TOP_STACKS; i++) {
        put(text, "\n  ", holders[i].bytes);
        cca_text_str(text, " in ");
        cca_text_u64(text, holders[i].blocks);
        cca_text_str(text, holders[i].blocks == 1 ? " block by " : " blocks by ");
        cca_top_stacks_describe(model, holders[i].stack, TOP_FRAMES, text);
    }
}

void cca_oom_print(struct cca_model *model, uint64_t quiet_before)
{
    const struct cca_model_device *device = find_device(model);
    char buf[TEXT_BYTES];
    struct cca_text text;

    if (device == NULL) {
        return;
    }
    cca_text_init(&text, buf, sizeof(buf) - 1);
    put_figures(&text, model, device);
    put_stacks(&text, model);
    if (model->oom.advice != NULL && model->oom.advice[0] != '\0') {
        cca_text_str(&text, "\n  ");
        cca_text_str(&text, model->oom.advice);
    }
    if (quiet_before > 0) {
        cca_text_str(&text, "\n  (");
        cca_text_u64(&text, quiet_before);
        cca_text_str(&text, " more failures since the last report)");
    }
    buf[text.len] = '\n';
    buf[text.len + 1] = '\0';
    cca_log_text(buf);
}
