/* SPDX-License-Identifier: MIT */
#include "model.h"

#define STEP (UINT64_C(2) << 20)

static struct cca_status status(enum cca_status_kind kind)
{
    return (struct cca_status){kind, kind == CCA_OK ? 0 : 2};
}

static bool is_running(const struct model *model, const struct model_use *use)
{
    return use->at > model->done[use->stream];
}

static void forget_finished(struct model *model)
{
    int kept = 0;
    for (int i = 0; i < model->use_count; i++) {
        if (is_running(model, &model->uses[i])) {
            model->uses[kept++] = model->uses[i];
        }
    }
    model->use_count = kept;
}

/* Bit per stream with unfinished work in the range. */
static uint64_t users_of(const struct model *model, uint64_t start, uint64_t end)
{
    uint64_t mask = 0;
    for (int i = 0; i < model->use_count; i++) {
        const struct model_use *use = &model->uses[i];
        if (use->start < end && start < use->end && is_running(model, use)) {
            mask |= UINT64_C(1) << use->stream;
        }
    }
    return mask;
}

void model_finish(struct model *model, int stream, uint32_t count)
{
    uint32_t left = model->submitted[stream] - model->done[stream];
    model->done[stream] += count < left ? count : left;
    forget_finished(model);
}

void model_finish_all(struct model *model)
{
    for (int i = 0; i < model->stream_count; i++) {
        model->done[i] = model->submitted[i];
    }
    forget_finished(model);
}

static struct cca_status mem_alloc(void *self, size_t bytes, uint64_t *addr_out)
{
    struct model *model = self;
    if (model->fail_allocs > 0) {
        model->fail_allocs--;
        return status(CCA_NO_MEMORY);
    }
    if (bytes > model->memory_bytes - model->used_bytes || model->alloc_count == MODEL_ALLOCS_MAX) {
        return status(CCA_NO_MEMORY);
    }
    *addr_out = model->next_addr;
    model->next_addr += (bytes + STEP - 1) / STEP * STEP;
    memset(&model->allocs[model->alloc_count], 0, sizeof(model->allocs[0]));
    model->allocs[model->alloc_count].addr = *addr_out;
    model->allocs[model->alloc_count++].bytes = bytes;
    model->used_bytes += bytes;
    return status(CCA_OK);
}

/* The driver's own free waits for what its memory was used for. That serves for work before a free
 * that would have waited as well, and for nothing else. */
static void wait_for_freed(struct model *model, uint64_t start, uint64_t end)
{
    int kept = 0;
    for (int i = 0; i < model->use_count; i++) {
        const struct model_use *use = &model->uses[i];
        if (!use->is_freed || use->end <= start || end <= use->start) {
            model->uses[kept++] = *use;
        }
    }
    model->use_count = kept;
}

static struct cca_status mem_free(void *self, uint64_t addr)
{
    struct model *model = self;
    assert_false(model->no_interfering);
    if (model->frees_wait && !model->no_recording) {
        model_finish_all(model);
    }
    for (unsigned i = 0; i < model->alloc_count; i++) {
        uint64_t end = addr + model->allocs[i].bytes;
        if (model->allocs[i].addr != addr) {
            continue;
        }
        if (model->no_recording) {
            wait_for_freed(model, addr, end);
        }
        assert_int_equal(users_of(model, addr, end), 0);
        model->used_bytes -= model->allocs[i].bytes;
        model->allocs[i] = model->allocs[--model->alloc_count];
        return status(CCA_OK);
    }
    fail_msg("memory was freed that is not there");
    return status(CCA_FATAL);
}

static struct cca_status mem_info(void *self, size_t *free_out, size_t *total_out)
{
    struct model *model = self;
    *total_out = model->memory_bytes;
    *free_out = model->memory_bytes - model->used_bytes;
    return status(CCA_OK);
}

static struct cca_status event_create(void *self, cca_device_event *event_out)
{
    struct model *model = self;
    if (model->fail_events > 0) {
        model->fail_events--;
        return status(CCA_NO_MEMORY);
    }
    assert_true(model->event_count + 1 < MODEL_EVENTS_MAX);
    *event_out = ++model->event_count;
    model->events[*event_out].generation = model->generation;
    return status(CCA_OK);
}

static void event_destroy(void *self, cca_device_event event)
{
    (void)self, (void)event;
}

static struct cca_status mark(struct model *model, cca_device_event event, int first, int end)
{
    assert_false(model->no_recording);
    assert_int_equal(model->events[event].generation, model->generation);
    if (model->fail_events > 0) {
        model->fail_events--;
        return status(CCA_UNSUPPORTED);
    }
    memset(model->events[event].seen, 0, sizeof(model->events[event].seen));
    for (int i = first; i < end; i++) {
        model->events[event].seen[i] = model->submitted[i];
    }
    return status(CCA_OK);
}

static struct cca_status event_record(void *self, cca_device_event event)
{
    struct model *model = self;
    assert_true(model->has_context_events);
    return mark(model, event, 0, model->stream_count);
}

static struct cca_status event_record_stream(void *self, cca_device_event event,
                                             cca_stream_id stream)
{
    return mark(self, event, (int)stream - 1, (int)stream);
}

static struct cca_status event_query(void *self, cca_device_event event)
{
    struct model *model = self;
    assert_false(model->no_interfering);
    assert_int_equal(model->events[event].generation, model->generation);
    for (int i = 0; i < model->stream_count; i++) {
        if (model->done[i] < model->events[event].seen[i]) {
            return status(CCA_NOT_READY);
        }
    }
    return status(CCA_OK);
}

static struct cca_status event_wait(void *self, cca_device_event event)
{
    struct model *model = self;
    assert_false(model->no_interfering);
    assert_int_equal(model->events[event].generation, model->generation);
    for (int i = 0; i < model->stream_count; i++) {
        if (model->done[i] < model->events[event].seen[i]) {
            model->done[i] = model->events[event].seen[i];
        }
    }
    forget_finished(model);
    return status(CCA_OK);
}

static struct cca_status synchronize(void *self)
{
    struct model *model = self;
    assert_false(model->no_recording);
    model_finish_all(model);
    return status(CCA_OK);
}

static struct cca_status address_reserve(void *self, size_t bytes, uint64_t *addr_out)
{
    struct model *model = self;
    if (model->fail_allocs > 0 || model->reservation_count == MODEL_RESERVATIONS_MAX) {
        model->fail_allocs -= model->fail_allocs > 0;
        return status(CCA_NO_MEMORY);
    }
    *addr_out = model->next_addr;
    model->next_addr += bytes;
    model->reserved_start[model->reservation_count] = *addr_out;
    model->reserved_bytes[model->reservation_count++] = bytes;
    return status(CCA_OK);
}

/* The allocation that overlaps, or -1. */
static int find_allocation(const struct model *model, uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < model->alloc_count; i++) {
        if (model->allocs[i].addr < end && start < model->allocs[i].addr + model->allocs[i].bytes) {
            return (int)i;
        }
    }
    return -1;
}

static struct cca_status address_free(void *self, uint64_t addr, size_t bytes)
{
    struct model *model = self;
    assert_int_equal(find_allocation(model, addr, addr + bytes), -1);
    for (int i = 0; i < model->reservation_count; i++) {
        if (model->reserved_start[i] == addr && model->reserved_bytes[i] == bytes) {
            int last = --model->reservation_count;
            model->reserved_start[i] = model->reserved_start[last];
            model->reserved_bytes[i] = model->reserved_bytes[last];
            return status(CCA_OK);
        }
    }
    fail_msg("addresses were given back that are not reserved");
    return status(CCA_FATAL);
}

static struct cca_status map(void *self, uint64_t addr, size_t page_bytes, size_t pages,
                             uint64_t peers)
{
    struct model *model = self;
    uint64_t bytes = page_bytes * pages;
    bool is_reserved = false;
    for (int i = 0; i < model->reservation_count; i++) {
        is_reserved |= addr >= model->reserved_start[i] &&
                       addr + bytes <= model->reserved_start[i] + model->reserved_bytes[i];
    }
    assert_true(is_reserved && pages > 0);
    assert_int_equal(find_allocation(model, addr, addr + bytes), -1);
    if (model->fail_allocs > 0) {
        model->fail_allocs--;
        return status(CCA_NO_MEMORY);
    }
    if (bytes > model->memory_bytes - model->used_bytes ||
        model->alloc_count + pages > MODEL_ALLOCS_MAX) {
        return status(CCA_NO_MEMORY);
    }
    for (size_t i = 0; i < pages; i++) {
        model->allocs[model->alloc_count].is_mapped = true;
        model->allocs[model->alloc_count].devices = peers;
        model->allocs[model->alloc_count].addr = addr + i * page_bytes;
        model->allocs[model->alloc_count++].bytes = page_bytes;
    }
    model->used_bytes += bytes;
    return status(CCA_OK);
}

/* Unlike a free it waits for nothing. */
static struct cca_status unmap(void *self, uint64_t addr, size_t page_bytes, size_t pages)
{
    struct model *model = self;
    assert_false(model->no_interfering);
    assert_int_equal(users_of(model, addr, addr + page_bytes * pages), 0);
    for (size_t i = 0; i < pages; i++) {
        uint64_t start = addr + i * page_bytes;
        int found = find_allocation(model, start, start + page_bytes);
        assert_true(found >= 0 && model->allocs[found].addr == start &&
                    model->allocs[found].bytes == page_bytes);
        model->allocs[found] = model->allocs[--model->alloc_count];
        model->used_bytes -= page_bytes;
    }
    return status(CCA_OK);
}

static struct cca_status allow_access(void *self, uint64_t addr, size_t page_bytes, size_t pages,
                                      int accessor)
{
    struct model *model = self;
    for (unsigned i = 0; i < model->alloc_count; i++) {
        if (model->allocs[i].addr < addr || addr + page_bytes * pages <= model->allocs[i].addr) {
            continue;
        }
        assert_true(model->allocs[i].is_mapped && model->allocs[i].bytes == page_bytes);
        model->allocs[i].devices |= UINT64_C(1) << accessor;
    }
    return status(CCA_OK);
}

void model_check_access(const struct model *model, uint64_t devices)
{
    for (unsigned i = 0; i < model->alloc_count; i++) {
        assert_true(!model->allocs[i].is_mapped || model->allocs[i].devices == devices);
    }
}

struct cca_device model_device(struct model *model)
{
    static const struct cca_device_ops ops = {
        .mem_alloc = mem_alloc,
        .mem_free = mem_free,
        .mem_info = mem_info,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_record = event_record,
        .event_record_stream = event_record_stream,
        .event_query = event_query,
        .event_wait = event_wait,
        .synchronize = synchronize,
        .address_reserve = address_reserve,
        .address_free = address_free,
        .map = map,
        .unmap = unmap,
        .allow_access = allow_access,
    };
    return (struct cca_device){.ops = &ops,
                               .self = model,
                               .has_context_events = model->has_context_events,
                               .map_granularity = model->can_map ? STEP : 0};
}

void model_init(struct model *model, uint64_t memory_bytes)
{
    memset(model, 0, sizeof(*model));
    model->memory_bytes = memory_bytes;
    model->next_addr = UINT64_C(0x700000000000);
    model->stream_count = 4;
    model->has_context_events = true;
}

void model_reset(struct model *model)
{
    model->alloc_count = 0;
    model->reservation_count = 0;
    model->used_bytes = 0;
    model->generation++;
    model->live_count = model->use_count = 0;
    model_finish_all(model);
}

/* Every byte of it: mapped pages lie side by side. */
static bool is_inside_an_allocation(const struct model *model, uint64_t addr, size_t bytes)
{
    uint64_t at = addr;
    while (at < addr + bytes) {
        int found = find_allocation(model, at, at + 1);
        if (found < 0) {
            return false;
        }
        at = model->allocs[found].addr + model->allocs[found].bytes;
    }
    return true;
}

void model_handed_out(struct model *model, uint64_t addr, size_t bytes, int stream)
{
    uint64_t own = stream == MODEL_NO_STREAM ? 0 : UINT64_C(1) << stream;
    assert_true(is_inside_an_allocation(model, addr, bytes));
    assert_int_equal(addr % 512, 0);
    for (int i = 0; i < model->live_count; i++) {
        const struct model_block *other = &model->live[i];
        assert_false(addr < other->addr + other->bytes && other->addr < addr + bytes);
    }
    if ((users_of(model, addr, addr + bytes) & ~own) != 0) {
        fail_msg("memory was handed out that others still use");
    }
    assert_true(model->live_count < MODEL_LIVE_MAX);
    model->live[model->live_count++] = (struct model_block){
        .addr = addr, .bytes = bytes, .stream = stream};
}

struct model_block model_take(struct model *model, int index)
{
    struct model_block block = model->live[index];
    model->live[index] = model->live[--model->live_count];
    return block;
}

bool model_work(struct model *model, const struct model_block *block, int stream)
{
    if (model->use_count == MODEL_USES_MAX) {
        return false;
    }
    model->uses[model->use_count++] = (struct model_use){
        .start = block->addr,
        .end = block->addr + block->bytes,
        .stream = stream,
        .at = ++model->submitted[stream],
    };
    return true;
}

void model_freed(struct model *model, const struct model_block *block)
{
    for (int i = 0; i < model->use_count; i++) {
        struct model_use *use = &model->uses[i];
        use->is_freed |= block->addr <= use->start && use->end <= block->addr + block->bytes;
    }
}

uint64_t model_users(const struct model *model, const struct model_block *block)
{
    return users_of(model, block->addr, block->addr + block->bytes);
}
