/* SPDX-License-Identifier: MIT */
#include "support/scripted_device.h"

#include <string.h>

#define ADDR_STEP (2ull << 20)

static struct cca_status status(enum cca_status_kind kind)
{
    return (struct cca_status){kind, kind == CCA_OK ? 0 : kind == CCA_NO_MEMORY ? 2 : 999};
}

static bool counts_down(long *n)
{
    return *n > 0 && --*n == 0;
}

/* Whether a call of this kind is to fail. */
static bool fails(struct scripted_device *script, long *kind)
{
    script->calls++;
    bool any = counts_down(&script->fail_any);
    return counts_down(kind) || any;
}

static struct cca_status mem_alloc(void *self, size_t bytes, uint64_t *addr_out)
{
    struct scripted_device *script = self;
    if (script->on_alloc != NULL) {
        script->on_alloc(script->on_alloc_user);
    }
    pthread_mutex_lock(&script->mutex);
    struct cca_status result = status(CCA_OK);
    if (fails(script, &script->fail_alloc)) {
        result = status(script->fail_kind);
    } else if (script->live_bytes + bytes > script->memory_bytes ||
               script->alloc_count == SCRIPTED_ALLOCS_MAX) {
        script->refused++;
        result = status(CCA_NO_MEMORY);
    } else {
        *addr_out = script->next_addr;
        script->allocs[script->alloc_count].addr = script->next_addr;
        script->allocs[script->alloc_count++].bytes = bytes;
        script->next_addr += (bytes + ADDR_STEP - 1) / ADDR_STEP * ADDR_STEP;
        script->live_bytes += bytes;
        if (script->live_bytes > script->peak_bytes) {
            script->peak_bytes = script->live_bytes;
        }
        script->allocs_made++;
    }
    pthread_mutex_unlock(&script->mutex);
    return result;
}

static struct cca_status mem_free(void *self, uint64_t addr)
{
    struct scripted_device *script = self;
    if (script->on_free != NULL) {
        script->on_free();
    }
    pthread_mutex_lock(&script->mutex);
    bool found = false, is_lost = fails(script, &(long){0});
    for (unsigned i = script->alloc_count; i-- > 0 && !found;) {
        if (script->allocs[i].addr == addr && script->allocs[i].bytes != 0) {
            script->lost_bytes += is_lost ? script->allocs[i].bytes : 0;
            script->live_bytes -= script->allocs[i].bytes;
            script->allocs[i].bytes = 0;
            found = true;
        }
    }
    script->frees_made += found;
    script->frees_unknown += !found;
    pthread_mutex_unlock(&script->mutex);
    return status(is_lost ? script->fail_kind : CCA_OK);
}

static struct cca_status mem_info(void *self, size_t *free_out, size_t *total_out)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    *total_out = script->memory_bytes;
    *free_out = script->memory_bytes - script->live_bytes;
    pthread_mutex_unlock(&script->mutex);
    return status(CCA_OK);
}

static struct cca_status event_create(void *self, cca_device_event *event_out)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    struct cca_status result = status(CCA_OK);
    if (fails(script, &script->fail_event_create)) {
        result = status(script->fail_kind);
    } else if (script->event_count + 1 == SCRIPTED_EVENTS_MAX) {
        result = status(CCA_NO_MEMORY);
    } else {
        *event_out = ++script->event_count;
    }
    pthread_mutex_unlock(&script->mutex);
    return result;
}

static void event_destroy(void *self, cca_device_event event)
{
    (void)self;
    (void)event;
}

static struct cca_status event_record(void *self, cca_device_event event)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    struct cca_status result = status(CCA_OK);
    if (fails(script, &script->fail_event_record)) {
        result = status(script->fail_kind);
    } else {
        script->records++;
        script->events[event] = script->submitted;
        script->event_lines[event] = 0;
    }
    pthread_mutex_unlock(&script->mutex);
    return result;
}

/* The stream's slot, a new one where it has none. */
static unsigned slot_of(struct scripted_device *script, uint64_t stream)
{
    unsigned slot = 0;
    while (slot < script->stream_count && script->streams[slot].id != stream) {
        slot++;
    }
    if (slot == script->stream_count) {
        script->stream_count++;
        script->streams[slot].id = stream;
    }
    return slot;
}

static struct cca_status event_record_stream(void *self, cca_device_event event,
                                             cca_stream_id stream)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    struct cca_status result = status(CCA_OK);
    if (fails(script, &script->fail_event_record)) {
        result = status(script->fail_kind);
    } else {
        unsigned slot = slot_of(script, stream);
        script->stream_records++;
        script->events[event] = ++script->streams[slot].recorded;
        script->event_lines[event] = 1 + slot;
    }
    pthread_mutex_unlock(&script->mutex);
    return result;
}

/* How far the event's line is done. */
static uint64_t *done_on_line(struct scripted_device *script, cca_device_event event)
{
    unsigned line = script->event_lines[event];
    return line == 0 ? &script->done : &script->streams[line - 1].done;
}

static struct cca_status event_query(void *self, cca_device_event event)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    script->queries++;
    bool is_over = *done_on_line(script, event) >= script->events[event];
    enum cca_status_kind kind = script->is_broken ? CCA_FATAL : is_over ? CCA_OK : CCA_NOT_READY;
    kind = fails(script, &(long){0}) ? script->fail_kind : kind;
    pthread_mutex_unlock(&script->mutex);
    return status(kind);
}

static struct cca_status event_wait(void *self, cca_device_event event)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    script->waits++;
    uint64_t *done = done_on_line(script, event);
    *done = *done < script->events[event] ? script->events[event] : *done;
    enum cca_status_kind kind = script->is_broken ? CCA_FATAL : CCA_OK;
    kind = fails(script, &(long){0}) ? script->fail_kind : kind;
    pthread_mutex_unlock(&script->mutex);
    return status(kind);
}

static struct cca_status synchronize(void *self)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    script->synchronizes++;
    script->done = script->submitted;
    pthread_mutex_unlock(&script->mutex);
    scripted_advance_all(script);
    return status(CCA_OK);
}

static struct cca_status capture_info(void *self, cca_stream_id stream,
                                      struct cca_capture_info *info_out)
{
    struct scripted_device *script = self;
    if (!script->tells_captures) {
        return status(CCA_UNSUPPORTED);
    }
    pthread_mutex_lock(&script->mutex);
    script->capture_queries++;
    *info_out = script->streams[slot_of(script, stream)].capture;
    pthread_mutex_unlock(&script->mutex);
    return status(CCA_OK);
}

static struct cca_status node_dependencies(void *self, uint64_t node, uint64_t *nodes_out,
                                           size_t max, size_t *count_out)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    const struct cca_capture_info *info = &script->nodes[node - 1];
    script->node_queries++;
    *count_out = info->terminal_count;
    for (size_t i = 0; i < info->terminal_count && i < max; i++) {
        nodes_out[i] = info->terminals[i];
    }
    pthread_mutex_unlock(&script->mutex);
    return status(CCA_OK);
}

void scripted_capture(struct scripted_device *script, uint64_t stream, uint64_t id)
{
    script->tells_captures = true;
    script->streams[slot_of(script, stream)].capture = (struct cca_capture_info){.id = id};
}

uint64_t scripted_node(struct scripted_device *script, uint64_t stream)
{
    struct cca_capture_info *info = &script->streams[slot_of(script, stream)].capture;
    script->nodes[script->node_count++] = *info;
    info->terminal_count = 1;
    info->terminals[0] = script->node_count;
    return script->node_count;
}

void scripted_join(struct scripted_device *script, uint64_t stream, uint64_t other)
{
    struct cca_capture_info *to = &script->streams[slot_of(script, stream)].capture;
    const struct cca_capture_info *from = &script->streams[slot_of(script, other)].capture;
    to->id = from->id;
    for (size_t i = 0; i < from->terminal_count; i++) {
        if (to->terminal_count < CCA_TERMINALS_MAX) {
            to->terminals[to->terminal_count] = from->terminals[i];
        }
        to->terminal_count++;
    }
}

void scripted_set_terminal(struct scripted_device *script, uint64_t stream, uint64_t node)
{
    struct cca_capture_info *info = &script->streams[slot_of(script, stream)].capture;
    info->terminal_count = 1;
    info->terminals[0] = node;
}

static struct cca_status address_reserve(void *self, size_t bytes, uint64_t *addr_out)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    struct cca_status result = status(CCA_OK);
    unsigned i = script->reservation_count;
    if (fails(script, &script->fail_reserve) || i == SCRIPTED_RESERVATIONS_MAX) {
        result = status(CCA_NO_MEMORY);
    } else {
        *addr_out = script->next_addr;
        script->reservations[i].addr = script->next_addr;
        script->reservations[i].bytes = bytes;
        script->reservation_count++;
        script->next_addr += bytes;
        script->map_errors += bytes % script->map_granularity != 0;
    }
    pthread_mutex_unlock(&script->mutex);
    return result;
}

static bool is_reserved(const struct scripted_device *script, uint64_t addr, uint64_t end)
{
    for (unsigned i = 0; i < script->reservation_count; i++) {
        uint64_t start = script->reservations[i].addr;
        if (addr >= start && end <= start + script->reservations[i].bytes) {
            return true;
        }
    }
    return false;
}

/* Index of a mapped page that overlaps, or -1. */
static int page_in(const struct scripted_device *script, uint64_t addr, uint64_t end)
{
    for (unsigned i = 0; i < script->page_count; i++) {
        uint64_t start = script->pages[i].addr;
        if (script->pages[i].bytes != 0 && start < end && addr < start + script->pages[i].bytes) {
            return (int)i;
        }
    }
    return -1;
}

static struct cca_status address_free(void *self, uint64_t addr, size_t bytes)
{
    struct scripted_device *script = self;
    pthread_mutex_lock(&script->mutex);
    bool found = false;
    for (unsigned i = 0; i < script->reservation_count; i++) {
        if (script->reservations[i].addr == addr && script->reservations[i].bytes == bytes) {
            found = bytes != 0 && page_in(script, addr, addr + bytes) < 0;
            script->reservations[i].bytes = 0;
        }
    }
    script->map_errors += !found;
    pthread_mutex_unlock(&script->mutex);
    return status(CCA_OK);
}

static struct cca_status map(void *self, uint64_t addr, size_t page_bytes, size_t pages,
                             uint64_t peers)
{
    struct scripted_device *script = self;
    if (script->on_alloc != NULL) {
        script->on_alloc(script->on_alloc_user);
    }
    pthread_mutex_lock(&script->mutex);
    struct cca_status result = status(CCA_OK);
    uint64_t bytes = page_bytes * pages;
    script->map_errors += !is_reserved(script, addr, addr + bytes) || pages == 0 ||
                          page_in(script, addr, addr + bytes) >= 0 ||
                          page_bytes % script->map_granularity != 0;
    if (fails(script, &script->fail_map)) {
        result = status(script->fail_kind);
    } else if (script->live_bytes + bytes > script->memory_bytes ||
               script->page_count + pages > SCRIPTED_PAGES_MAX) {
        script->refused++;
        result = status(CCA_NO_MEMORY);
    } else {
        for (size_t i = 0; i < pages; i++) {
            script->pages[script->page_count].addr = addr + i * page_bytes;
            script->pages[script->page_count].bytes = page_bytes;
            script->pages[script->page_count++].devices = peers;
        }
        script->live_bytes += bytes;
        script->maps_made++;
    }
    pthread_mutex_unlock(&script->mutex);
    return result;
}

static struct cca_status unmap(void *self, uint64_t addr, size_t page_bytes, size_t pages)
{
    struct scripted_device *script = self;
    if (script->on_free != NULL) {
        script->on_free();
    }
    pthread_mutex_lock(&script->mutex);
    struct cca_status result = status(fails(script, &script->fail_unmap) ? CCA_UNSUPPORTED
                                                                         : CCA_OK);
    for (size_t i = 0; i < pages && result.kind == CCA_OK; i++) {
        uint64_t start = addr + i * page_bytes;
        int page = page_in(script, start, start + page_bytes);
        if (page < 0 || script->pages[page].addr != start ||
            script->pages[page].bytes != page_bytes) {
            script->map_errors++;
            continue;
        }
        script->pages[page].bytes = 0;
        script->live_bytes -= page_bytes;
    }
    script->unmaps_made += result.kind == CCA_OK;
    script->unmaps_failed += result.kind != CCA_OK;
    pthread_mutex_unlock(&script->mutex);
    return result;
}

static struct cca_status allow_access(void *self, uint64_t addr, size_t page_bytes, size_t pages,
                                      int accessor)
{
    struct scripted_device *script = self;
    uint64_t bit = 1ull << accessor;
    pthread_mutex_lock(&script->mutex);
    for (size_t i = 0; i < pages; i++) {
        int page = page_in(script, addr + i * page_bytes, addr + (i + 1) * page_bytes);
        if (page >= 0) {
            script->pages[page].devices |= bit;
        }
    }
    pthread_mutex_unlock(&script->mutex);
    return status(CCA_OK);
}

unsigned scripted_reservations(const struct scripted_device *script)
{
    unsigned count = 0;
    for (unsigned i = 0; i < script->reservation_count; i++) {
        count += script->reservations[i].bytes != 0;
    }
    return count;
}

uint64_t scripted_mapped_bytes(const struct scripted_device *script)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < script->page_count; i++) {
        bytes += script->pages[i].bytes;
    }
    return bytes;
}

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
    .capture_info = capture_info,
    .node_dependencies = node_dependencies,
    .address_reserve = address_reserve,
    .address_free = address_free,
    .map = map,
    .unmap = unmap,
    .allow_access = allow_access,
};

void scripted_device_init(struct scripted_device *script, uint64_t memory_bytes)
{
    memset(script, 0, sizeof(*script));
    pthread_mutex_init(&script->mutex, NULL);
    script->memory_bytes = memory_bytes;
    script->next_addr = SCRIPTED_BASE;
    script->fail_kind = CCA_NO_MEMORY;
    script->map_granularity = 2ull << 20;
}

struct cca_device scripted_device(struct scripted_device *script, int ordinal)
{
    return (struct cca_device){
        .ops = &ops,
        .self = script,
        .ordinal = ordinal,
        .has_context_events = true,
        .map_granularity = script->map_granularity,
    };
}

void scripted_submit(struct scripted_device *script)
{
    pthread_mutex_lock(&script->mutex);
    script->submitted++;
    pthread_mutex_unlock(&script->mutex);
}

void scripted_finish(struct scripted_device *script)
{
    pthread_mutex_lock(&script->mutex);
    script->done = script->submitted;
    pthread_mutex_unlock(&script->mutex);
    scripted_advance_all(script);
}

void scripted_advance(struct scripted_device *script, uint64_t stream)
{
    pthread_mutex_lock(&script->mutex);
    unsigned slot = slot_of(script, stream);
    script->streams[slot].done = script->streams[slot].recorded;
    pthread_mutex_unlock(&script->mutex);
}

void scripted_advance_all(struct scripted_device *script)
{
    pthread_mutex_lock(&script->mutex);
    for (unsigned i = 0; i < script->stream_count; i++) {
        script->streams[i].done = script->streams[i].recorded;
    }
    pthread_mutex_unlock(&script->mutex);
}
