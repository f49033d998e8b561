/* SPDX-License-Identifier: MIT */
#include "device/cuda_device.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "base/defect.h"
#include "device/cuda_error.h"
#include "device/cuda_mapping.h"
#include "device/cuda_scope.h"

static struct cca_status grow(const struct cca_cuda_context *self, enum cca_cuda_capture_mode mode,
                              size_t bytes, uint64_t *addr_out)
{
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, mode);
    if (result == CUDA_SUCCESS) {
        CUdeviceptr addr = 0;
        result = self->table->mem_alloc(&addr, bytes);
        if (result == CUDA_SUCCESS) {
            *addr_out = addr;
        }
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

static struct cca_status mem_alloc(void *self, size_t bytes, uint64_t *addr_out)
{
    return grow(self, CCA_MODE_OF_CALLER, bytes, addr_out);
}

static struct cca_status mem_alloc_relaxed(void *self, size_t bytes, uint64_t *addr_out)
{
    return grow(self, CCA_MODE_RELAXED, bytes, addr_out);
}

static struct cca_status mem_free(void *self_, uint64_t addr)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = self->table->mem_free(addr);
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

static struct cca_status mem_info(void *self_, size_t *free_bytes_out, size_t *total_bytes_out)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        size_t free_bytes = 0, total_bytes = 0;
        result = self->table->mem_get_info(&free_bytes, &total_bytes);
        if (result == CUDA_SUCCESS) {
            *free_bytes_out = free_bytes;
            *total_bytes_out = total_bytes;
        }
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

static struct cca_status event_create(void *self_, cca_device_event *event_out)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        CUevent event = NULL;
        result = self->table->event_create(&event, CU_EVENT_DISABLE_TIMING);
        if (result == CUDA_SUCCESS) {
            *event_out = (cca_device_event)(uintptr_t)event;
        }
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

static void event_destroy(void *self_, cca_device_event event)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    if (cca_cuda_scope_enter_context(&scope, self, CCA_NEED_ANY, CCA_MODE_RELAXED) ==
        CUDA_SUCCESS) {
        (void)self->table->event_destroy((CUevent)(uintptr_t)event);
        cca_cuda_scope_leave(&scope);
    }
}

typedef CUresult (*event_call)(const struct cca_cuda_context *self, CUevent event);

static CUresult call_on_event(const struct cca_cuda_context *self, event_call call, CUevent event,
                              enum cca_cuda_need need)
{
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, need, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = call(self, event);
        cca_cuda_scope_leave(&scope);
    }
    return result;
}

/* Under any context that is current; one that is lost answers with its own error, whatever was
 * asked, so then the event's own context is asked. */
static struct cca_status ask_event(const struct cca_cuda_context *self, event_call call,
                                   cca_device_event event)
{
    CUevent handle = (CUevent)(uintptr_t)event;
    CUresult result = call_on_event(self, call, handle, CCA_NEED_ANY);
    if (CCA_UNLIKELY(cca_cuda_status((int)result).kind == CCA_FATAL)) {
        result = call_on_event(self, call, handle, CCA_NEED_THIS);
    }
    return cca_cuda_status_in(self, result);
}

static CUresult record(const struct cca_cuda_context *self, CUevent event)
{
    return CCA_DEFECT(events_cover_the_legacy_stream_alone)
               ? self->table->event_record(event, CU_STREAM_LEGACY)
               : self->table->ctx_record_event(self->ctx, event);
}

static CUresult query(const struct cca_cuda_context *self, CUevent event)
{
    return self->table->event_query(event);
}

static CUresult wait(const struct cca_cuda_context *self, CUevent event)
{
    return self->table->event_synchronize(event);
}

static struct cca_status event_record(void *self_, cca_device_event event)
{
    const struct cca_cuda_context *self = self_;
    return cca_cuda_table_has_context_events(self->table)
               ? ask_event(self, record, event)
               : (struct cca_status){CCA_UNSUPPORTED, CUDA_SUCCESS};
}

static struct cca_status event_query(void *self, cca_device_event event)
{
    return ask_event(self, query, event);
}

static struct cca_status event_wait(void *self, cca_device_event event)
{
    return ask_event(self, wait, event);
}

static struct cca_status event_record_stream(void *self_, cca_device_event event,
                                             cca_stream_id stream)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    struct cca_status status = {CCA_UNSUPPORTED, CUDA_SUCCESS};
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        status = cca_cuda_record_on_stream(self->streams, self->table, event, stream);
        result = status.kind == CCA_FATAL ? (CUresult)status.raw : CUDA_SUCCESS;
        cca_cuda_scope_leave(&scope);
    }
    return result == CUDA_SUCCESS ? status : cca_cuda_status_in(self, result);
}

static struct cca_status synchronize(void *self_)
{
    const struct cca_cuda_context *self = self_;
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter_context(&scope, self, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = self->table->ctx_synchronize();
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status_in(self, result);
}

static void stream_ends(void *self_, cca_stream_id stream)
{
    const struct cca_cuda_context *self = self_;
    cca_cuda_streams_forget(self->streams, stream);
}

static struct cca_status capture_info(void *self_, cca_stream_id stream,
                                      struct cca_capture_info *info_out)
{
    const struct cca_cuda_context *self = self_;
    return cca_cuda_capture_info(self->streams, self->table, stream, info_out);
}

static struct cca_status node_dependencies(void *self_, uint64_t node, uint64_t *nodes_out,
                                           size_t max, size_t *count_out)
{
    const struct cca_cuda_context *self = self_;
    return cca_cuda_node_dependencies(self->table, node, nodes_out, max, count_out);
}

static const struct cca_device_ops ops = {
    .mem_alloc = mem_alloc,
    .mem_alloc_relaxed = mem_alloc_relaxed,
    .mem_free = mem_free,
    .mem_info = mem_info,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_record_stream = event_record_stream,
    .event_query = event_query,
    .event_wait = event_wait,
    .synchronize = synchronize,
    .stream_ends = stream_ends,
    .capture_info = capture_info,
    .node_dependencies = node_dependencies,
    .address_reserve = cca_cuda_address_reserve,
    .address_free = cca_cuda_address_free,
    .map = cca_cuda_map,
    .unmap = cca_cuda_unmap,
    .allow_access = cca_cuda_allow_access,
};

/* An entry that was closed, which is the caller's then; or NULL. */
static struct cca_cuda_context *take_closed(struct cca_cuda_contexts *contexts, int count)
{
    for (int i = 0; i < count && i < CCA_CUDA_CONTEXTS_MAX; i++) {
        bool is_closed = true;
        if (atomic_load(&contexts->items[i].is_closed) &&
            atomic_compare_exchange_strong(&contexts->items[i].is_closed, &is_closed, false)) {
            return &contexts->items[i];
        }
    }
    return NULL;
}

static struct cca_cuda_context *take_new(struct cca_cuda_contexts *contexts, int count)
{
    int mine = count < CCA_CUDA_CONTEXTS_MAX ? atomic_fetch_add(&contexts->claimed, 1)
                                             : CCA_CUDA_CONTEXTS_MAX;
    return mine < CCA_CUDA_CONTEXTS_MAX ? &contexts->items[mine] : NULL;
}

void cca_cuda_device_close(struct cca_cuda_contexts *contexts, CUcontext ctx)
{
    int count = atomic_load(&contexts->claimed);
    for (int i = 0; i < count && i < CCA_CUDA_CONTEXTS_MAX; i++) {
        struct cca_cuda_context *item = &contexts->items[i];
        CUcontext expected = ctx;
        if (atomic_compare_exchange_strong(&item->ctx, &expected, NULL)) {
            atomic_store(&item->is_closed, true);
        }
    }
}

static struct cca_cuda_context *find_or_claim(struct cca_cuda_contexts *contexts,
                                              const struct cca_cuda_table *table, CUcontext ctx,
                                              int ordinal)
{
    int count = atomic_load(&contexts->claimed);
    for (int i = 0; i < count && i < CCA_CUDA_CONTEXTS_MAX; i++) {
        struct cca_cuda_context *item = &contexts->items[i];
        if (atomic_load(&item->ctx) == ctx && item->ordinal == ordinal && item->table == table) {
            return item;
        }
    }
    /* Two threads may both miss and claim an entry for one context: harmless, entries are alike. */
    struct cca_cuda_context *item = take_closed(contexts, count);
    item = item != NULL ? item : take_new(contexts, count);
    if (item == NULL) {
        return NULL;
    }
    item->table = table;
    item->ordinal = ordinal;
    item->streams = &contexts->streams;
    atomic_store(&item->ctx, ctx);
    return item;
}

int cca_cuda_device_open(struct cca_cuda_contexts *contexts, const struct cca_cuda_table *table,
                         CUcontext ctx, int ordinal, struct cca_device *device_out)
{
    struct cca_cuda_context *item = find_or_claim(contexts, table, ctx, ordinal);
    if (item == NULL) {
        return -ENOSPC;
    }
    *device_out = (struct cca_device){
        .ops = &ops,
        .self = item,
        .ordinal = ordinal,
        .has_context_events = cca_cuda_table_has_context_events(table),
        .map_granularity = cca_cuda_map_granularity(item),
    };
    return 0;
}

/* With `ctx` current and the capture mode relaxed. */
static CUresult ask_for_primary(const struct cca_cuda_table *table, CUcontext ctx,
                                struct cca_cuda_identity *identity_out)
{
    CUdevice device = 0;
    unsigned flags = 0;
    int is_active = 0;
    CUresult result = table->ctx_get_device(&device);
    if (result == CUDA_SUCCESS) {
        result = table->primary_get_state(device, &flags, &is_active);
    }
    CUcontext primary = NULL;
    if (result == CUDA_SUCCESS && is_active != 0) {
        result = table->primary_retain(&primary, device);
        if (result == CUDA_SUCCESS) {
            (void)table->primary_release(device);
        }
    }
    if (result == CUDA_SUCCESS) {
        /* A CUdevice is the ordinal: cuDeviceGet hands back the number it was given. */
        *identity_out = (struct cca_cuda_identity){primary == ctx, is_active != 0, device};
    }
    return result;
}

struct cca_status cca_cuda_identify(const struct cca_cuda_table *table, CUcontext ctx,
                                    struct cca_cuda_identity *identity_out)
{
    struct cca_cuda_scope scope;
    CUresult result = cca_cuda_scope_enter(&scope, table, ctx, CCA_NEED_THIS, CCA_MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = ask_for_primary(table, ctx, identity_out);
        cca_cuda_scope_leave(&scope);
    }
    return cca_cuda_status((int)result);
}

/* Whether a device says that it is so, or `unknown`. */
static bool has_attribute(const struct cca_cuda_table *table, CUdevice_attribute attribute,
                          int ordinal, bool unknown)
{
    int value = 0;
    if (table->device_get_attribute == NULL ||
        table->device_get_attribute(&value, attribute, ordinal) != CUDA_SUCCESS) {
        return unknown;
    }
    return value != 0;
}

bool cca_cuda_is_integrated(const struct cca_cuda_table *table, int ordinal)
{
    return has_attribute(table, CU_DEVICE_ATTRIBUTE_INTEGRATED, ordinal, false);
}

bool cca_cuda_has_pools(const struct cca_cuda_table *table, int ordinal)
{
    return has_attribute(table, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, ordinal, true);
}
