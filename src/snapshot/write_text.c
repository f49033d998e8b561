/* SPDX-License-Identifier: MIT */
#include "snapshot/write_text.h"

#include "base/compiler.h"
#include "base/format.h"
#include "snapshot/top_stacks.h"

enum { COLUMNS = 75, METRIC_WIDTH = 21, NUMBER_WIDTH = 6, COUNT_WIDTH = 7, TOP_STACKS = 10 };

enum unit { UNIT_BYTES, UNIT_COUNT };

struct text {
    struct cca_model *model;
    struct cca_sink *sink;
};

static void put_repeated(struct cca_sink *sink, char c, size_t count)
{
    while (count-- > 0) {
        cca_sink_byte(sink, (unsigned char)c);
    }
}

static void put_rule(struct cca_sink *sink, char c)
{
    cca_sink_byte(sink, '|');
    put_repeated(sink, c, COLUMNS);
    cca_sink_str(sink, "|\n");
}

/* Centred, the odd blank on the right, as Python's format does. */
static void put_centred(struct cca_sink *sink, const struct cca_text *text, size_t width)
{
    size_t blanks = text->len < width ? width - text->len : 0;

    put_repeated(sink, ' ', blanks / 2);
    cca_sink_bytes(sink, text->buf, text->len);
    put_repeated(sink, ' ', blanks - blanks / 2);
}

static void put_right(struct cca_sink *sink, int64_t value, size_t width)
{
    char buf[24];
    struct cca_text text;

    cca_text_init(&text, buf, sizeof(buf));
    cca_text_i64(&text, value);
    put_repeated(sink, ' ', text.len < width ? width - text.len : 0);
    cca_sink_bytes(sink, buf, text.len);
}

/* `value` in the unit that `guide` asks for, so that the rows of a group share one. */
static void put_cell(struct cca_sink *sink, enum unit unit, int64_t value, int64_t guide)
{
    static const char *const byte_units[] = {" B  ", " KiB", " MiB", " GiB", " TiB", " PiB"};
    static const char *const count_units[] = {"   ", " K ", " M "};
    bool is_bytes = unit == UNIT_BYTES;
    int64_t step = is_bytes ? 1024 : 1000;
    int64_t most = is_bytes ? 768 * 1024 : 750 * 1000;
    size_t last = (is_bytes ? CCA_ARRAY_LEN(byte_units) : CCA_ARRAY_LEN(count_units)) - 1;
    size_t at = 0;

    for (; at < last && guide >= most; at++) {
        guide /= step;
        value /= step;
    }
    cca_sink_str(sink, " | ");
    put_right(sink, value, is_bytes ? NUMBER_WIDTH : COUNT_WIDTH);
    cca_sink_str(sink, is_bytes ? byte_units[at] : count_units[at]);
}

static void put_row(struct cca_sink *sink, const char *metric, enum unit unit,
                    const struct cca_stat *stat, const struct cca_stat *guide)
{
    struct cca_text text;
    char buf[METRIC_WIDTH + 1];

    cca_text_init(&text, buf, sizeof(buf));
    cca_text_str(&text, metric);
    cca_sink_str(sink, "| ");
    cca_sink_bytes(sink, buf, text.len);
    put_repeated(sink, ' ', METRIC_WIDTH - text.len);
    put_cell(sink, unit, stat->current, guide->current);
    put_cell(sink, unit, stat->peak, guide->peak);
    put_cell(sink, unit, stat->allocated, guide->allocated);
    put_cell(sink, unit, stat->freed, guide->freed);
    cca_sink_str(sink, " |\n");
}

static void put_group(struct cca_sink *sink, const char *metric, enum unit unit,
                      const struct cca_stat *stats)
{
    put_rule(sink, '-');
    put_row(sink, metric, unit, &stats[CCA_STAT_ALL], &stats[CCA_STAT_ALL]);
    put_row(sink, "      from large pool", unit, &stats[CCA_STAT_LARGE], &stats[CCA_STAT_ALL]);
    put_row(sink, "      from small pool", unit, &stats[CCA_STAT_SMALL], &stats[CCA_STAT_ALL]);
}

static void put_single(struct cca_sink *sink, const char *metric, const struct cca_stat *stat)
{
    put_rule(sink, '-');
    put_row(sink, metric, UNIT_COUNT, stat, stat);
}

static void put_labelled(struct cca_sink *sink, const char *label, int64_t value, size_t width)
{
    char buf[64];
    struct cca_text text;

    cca_text_init(&text, buf, sizeof(buf));
    cca_text_str(&text, label);
    cca_text_i64(&text, value);
    put_centred(sink, &text, width);
}

static void put_table(struct cca_sink *sink, const struct cca_model_device *device)
{
    const struct cca_stats *stats = &device->stats;

    put_rule(sink, '=');
    cca_sink_byte(sink, '|');
    put_labelled(sink, "CUDA memory summary, device ID ", device->ordinal, COLUMNS);
    cca_sink_str(sink, "|\n");
    put_rule(sink, '-');
    cca_sink_byte(sink, '|');
    put_labelled(sink, "CUDA OOMs: ", stats->num_ooms, 36);
    cca_sink_byte(sink, '|');
    put_labelled(sink, "cudaMalloc retries: ", stats->num_alloc_retries, 38);
    cca_sink_str(sink, "|\n");
    put_rule(sink, '=');
    cca_sink_str(sink,
                 "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n");
    put_group(sink, "Allocated memory", UNIT_BYTES, stats->allocated_bytes);
    put_group(sink, "Active memory", UNIT_BYTES, stats->active_bytes);
    put_group(sink, "Requested memory", UNIT_BYTES, stats->requested_bytes);
    put_group(sink, "GPU reserved memory", UNIT_BYTES, stats->reserved_bytes);
    put_group(sink, "Non-releasable memory", UNIT_BYTES, stats->inactive_split_bytes);
    put_group(sink, "Allocations", UNIT_COUNT, stats->allocation);
    put_group(sink, "Active allocs", UNIT_COUNT, stats->active);
    put_group(sink, "GPU reserved segments", UNIT_COUNT, stats->segment);
    put_group(sink, "Non-releasable allocs", UNIT_COUNT, stats->inactive_split);
    put_single(sink, "Oversize allocations", &stats->oversize_allocations);
    put_single(sink, "Oversize GPU segments", &stats->oversize_segments);
    put_rule(sink, '=');
}

static void put_size(struct cca_sink *sink, uint64_t bytes)
{
    char buf[48];
    struct cca_text text;

    cca_text_init(&text, buf, sizeof(buf));
    cca_text_size(&text, bytes);
    cca_sink_bytes(sink, buf, text.len);
}

static void put_milliseconds(struct cca_sink *sink, int64_t ns)
{
    char buf[48];
    struct cca_text text;

    cca_text_init(&text, buf, sizeof(buf));
    cca_text_double(&text, (double)ns / 1e6, 3);
    cca_sink_bytes(sink, buf, text.len);
    cca_sink_str(sink, " ms");
}

static void put_counters(struct cca_sink *sink, const struct cca_model_device *device)
{
    const struct cca_counters *counters = &device->counters;

    cca_sink_str(sink, "\nallocations ");
    cca_sink_i64(sink, counters->allocs);
    cca_sink_str(sink, ", from the cache ");
    cca_sink_i64(sink, counters->hits);
    cca_sink_str(sink, ", passed through ");
    cca_sink_i64(sink, counters->passed);
    cca_sink_str(sink, "\ndriver allocations ");
    cca_sink_i64(sink, counters->driver_allocs);
    cca_sink_str(sink, " (");
    put_milliseconds(sink, counters->driver_alloc_ns);
    cca_sink_str(sink, "), driver frees ");
    cca_sink_i64(sink, counters->driver_frees);
    cca_sink_str(sink, " (");
    put_milliseconds(sink, counters->driver_free_ns);
    cca_sink_str(sink, ")\nfrees that waited ");
    cca_sink_i64(sink, counters->free_waits);
    cca_sink_str(sink, " (");
    put_milliseconds(sink, counters->free_wait_ns);
    cca_sink_str(sink, "), bytes pending ");
    cca_sink_u64(sink, device->pending_bytes);
    cca_sink_str(sink, "\nevents kept ");
    cca_sink_u64(sink, device->entry_count);
    cca_sink_str(sink, ", lost ");
    cca_sink_u64(sink, device->lost_entries);
    cca_sink_str(sink, device->is_partial ? "\nincomplete: its lock was not free in time\n" : "\n");
}

static void put_share(struct cca_sink *sink, const char *label, uint64_t bytes)
{
    cca_sink_str(sink, label);
    put_size(sink, bytes);
}

/* Who holds the device, and what is held by calls that are not served. */
static void put_shares(const struct text *text, const struct cca_model_device *device)
{
    const struct cca_model_shares shares = cca_model_shares(text->model, device);
    struct cca_sink *sink = text->sink;

    put_share(sink, "device total ", device->total_bytes);
    if (device->free_time_ns != 0) {
        put_share(sink, ", free ", device->free_bytes);
    }
    put_share(sink, "; reserved ", shares.reserved);
    put_share(sink, " (allocated ", shares.allocated);
    put_share(sink, ", pending ", device->pending_bytes);
    put_share(sink, ", cached ", shares.cached);
    put_share(sink, "), unmanaged ", shares.unmanaged);
    put_share(sink, ", other ", shares.other);
    cca_sink_byte(sink, '\n');
    for (size_t i = 0; i < text->model->unmanaged_count; i++) {
        const struct cca_model_unmanaged *row = &text->model->unmanaged[i];

        if (row->device != device->ordinal) {
            continue;
        }
        put_share(sink, "  unmanaged ", row->bytes);
        cca_sink_str(sink, " in ");
        cca_sink_u64(sink, row->count);
        cca_sink_str(sink, " by ");
        cca_sink_str(sink, row->api != NULL ? row->api : "");
        cca_sink_str(sink, " of ");
        cca_sink_str(sink, row->library != NULL ? row->library : "");
        cca_sink_byte(sink, '\n');
    }
}

static void put_oom(const struct text *text)
{
    const struct cca_model_oom *oom = &text->model->oom;
    struct cca_sink *sink = text->sink;

    cca_sink_str(sink, "\nout of memory on device ");
    cca_sink_i64(sink, oom->device);
    put_share(sink, ": asked for ", oom->requested_bytes);
    put_share(sink, ", of the driver ", oom->segment_bytes);
    if (oom->limit_bytes != 0) {
        put_share(sink, ", limit ", oom->limit_bytes);
    }
    put_share(sink, "; largest free block ", oom->largest_free_bytes);
    put_share(sink, ", lost to fragmentation ", oom->stranded_bytes);
    if (oom->advice != NULL && oom->advice[0] != '\0') {
        cca_sink_str(sink, "; try ");
        cca_sink_str(sink, oom->advice);
    }
    cca_sink_byte(sink, '\n');
}

static void put_stack(const struct text *text, const struct cca_holder *holder, size_t place)
{
    const struct cca_model *model = text->model;
    const struct cca_model_stack *stack = cca_model_stack_of(model, holder->stack);

    put_right(text->sink, (int64_t)place, 3);
    cca_sink_str(text->sink, ". ");
    put_size(text->sink, holder->bytes);
    cca_sink_str(text->sink, " in ");
    cca_sink_u64(text->sink, holder->blocks);
    cca_sink_str(text->sink, holder->blocks == 1 ? " block\n" : " blocks\n");
    for (size_t i = 0; stack != NULL && i < stack->count; i++) {
        const struct cca_model_frame *frame = &model->frames[model->stack_frames[stack->first + i]];

        cca_sink_str(text->sink, "       ");
        cca_sink_str(text->sink, frame->name != NULL ? frame->name : "");
        cca_sink_str(text->sink, "  ");
        cca_sink_str(text->sink, frame->filename != NULL ? frame->filename : "");
        if (frame->line > 0) {
            cca_sink_byte(text->sink, ':');
            cca_sink_i64(text->sink, frame->line);
        }
        cca_sink_byte(text->sink, '\n');
    }
    if (stack == NULL) {
        cca_sink_str(text->sink, "       (no call stack)\n");
    }
}

static void put_top_stacks(const struct text *text, const struct cca_model_device *device)
{
    size_t count = 0;
    const struct cca_holder *holders = cca_top_stacks(text->model, device->ordinal, &count);

    cca_sink_str(text->sink, "\nlive memory by call stack, innermost frame first\n");
    for (size_t i = 0; holders != NULL && i < count && i < TOP_STACKS; i++) {
        put_stack(text, &holders[i], i + 1);
    }
    if (count == 0) {
        cca_sink_str(text->sink, "  none\n");
    }
}

void cca_write_text(struct cca_model *model, struct cca_sink *sink)
{
    const struct text text = {.model = model, .sink = sink};

    cca_sink_str(sink, "program ");
    cca_sink_str(sink, model->program != NULL ? model->program : "");
    cca_sink_str(sink, ", pid ");
    cca_sink_i64(sink, model->pid);
    cca_sink_str(sink, ", host ");
    cca_sink_str(sink, model->host != NULL ? model->host : "");
    cca_sink_str(sink, ", cause ");
    cca_sink_str(sink, model->cause != NULL ? model->cause : "");
    cca_sink_byte(sink, '\n');
    if (model->oom.device >= 0) {
        put_oom(&text);
    }
    for (size_t i = 0; i < model->device_count; i++) {
        cca_sink_byte(sink, '\n');
        put_table(sink, &model->devices[i]);
        put_counters(sink, &model->devices[i]);
        put_shares(&text, &model->devices[i]);
        put_top_stacks(&text, &model->devices[i]);
    }
}
