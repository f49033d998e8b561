/* SPDX-License-Identifier: MIT */
#include "device/cuda_device.h"

#include <errno.h>
#include <stdatomic.h>

#include "device/cuda_error.h"

/* What a call must put back. */
struct scope {
    const struct cca_cuda_table *table;
    CUstreamCaptureMode mode; /* the thread's own, when `is_relaxed` */
    bool is_relaxed;
    bool is_pushed;
};

/* How much of a context a driver function needs. */
enum need {
    NEED_THIS, /* acts on the current context, so it must be ours */
    NEED_ANY   /* names its object, but refuses a thread without any context */
};

enum capture_mode { MODE_RELAXED, MODE_OF_CALLER };

static CUresult push_where_needed(struct scope *scope, CUcontext ctx, enum need need)
{
    CUcontext current = NULL;
    CUresult result = scope->table->ctx_get_current(&current);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (current == ctx || (need == NEED_ANY && current != NULL)) {
        return CUDA_SUCCESS;
    }
    result = scope->table->ctx_push(ctx);
    scope->is_pushed = result == CUDA_SUCCESS;
    return result;
}

static void leave(struct scope *scope)
{
    if (scope->is_relaxed) {
        (void)scope->table->exchange_capture_mode(&scope->mode);
    }
    if (scope->is_pushed) {
        CUcontext popped = NULL;
        (void)scope->table->ctx_pop(&popped);
    }
}

/* On failure nothing is left changed and leave must not be called. */
static CUresult enter(struct scope *scope, const struct cca_cuda_table *table, CUcontext ctx,
                      enum need need, enum capture_mode mode)
{
    *scope = (struct scope){.table = table, .mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    CUresult result = push_where_needed(scope, ctx, need);
    if (result == CUDA_SUCCESS && mode == MODE_RELAXED) {
        result = table->exchange_capture_mode(&scope->mode);
        scope->is_relaxed = result == CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS) {
        leave(scope);
    }
    return result;
}

static CUresult enter_context(struct scope *scope, const struct cca_cuda_context *self,
                              enum need need, enum capture_mode mode)
{
    return enter(scope, self->table, self->ctx, need, mode);
}

static struct cca_status grow(const struct cca_cuda_context *self, enum capture_mode mode,
                              size_t bytes, uint64_t *addr_out)
{
    struct scope scope;
    CUresult result = enter_context(&scope, self, NEED_THIS, mode);
    if (result == CUDA_SUCCESS) {
        CUdeviceptr addr = 0;
        result = self->table->mem_alloc(&addr, bytes);
        if (result == CUDA_SUCCESS) {
            *addr_out = addr;
        }
        leave(&scope);
    }
    return cca_cuda_status((int)result);
}

static struct cca_status mem_alloc(void *self, size_t bytes, uint64_t *addr_out)
{
    return grow(self, MODE_OF_CALLER, bytes, addr_out);
}

static struct cca_status mem_alloc_relaxed(void *self, size_t bytes, uint64_t *addr_out)
{
    return grow(self, MODE_RELAXED, bytes, addr_out);
}

static struct cca_status mem_free(void *self_, uint64_t addr)
{
    const struct cca_cuda_context *self = self_;
    struct scope scope;
    CUresult result = enter_context(&scope, self, NEED_THIS, MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = self->table->mem_free(addr);
        leave(&scope);
    }
    return cca_cuda_status((int)result);
}

static struct cca_status mem_info(void *self_, size_t *free_bytes_out, size_t *total_bytes_out)
{
    const struct cca_cuda_context *self = self_;
    struct scope scope;
    CUresult result = enter_context(&scope, self, NEED_THIS, MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        size_t free_bytes = 0, total_bytes = 0;
        result = self->table->mem_get_info(&free_bytes, &total_bytes);
        if (result == CUDA_SUCCESS) {
            *free_bytes_out = free_bytes;
            *total_bytes_out = total_bytes;
        }
        leave(&scope);
    }
    return cca_cuda_status((int)result);
}

static struct cca_status event_create(void *self_, cca_device_event *event_out)
{
    const struct cca_cuda_context *self = self_;
    struct scope scope;
    CUresult result = enter_context(&scope, self, NEED_THIS, MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        CUevent event = NULL;
        result = self->table->event_create(&event, CU_EVENT_DISABLE_TIMING);
        if (result == CUDA_SUCCESS) {
            *event_out = (cca_device_event)(uintptr_t)event;
        }
        leave(&scope);
    }
    return cca_cuda_status((int)result);
}

static void event_destroy(void *self_, cca_device_event event)
{
    const struct cca_cuda_context *self = self_;
    struct scope scope;
    if (enter_context(&scope, self, NEED_ANY, MODE_RELAXED) == CUDA_SUCCESS) {
        (void)self->table->event_destroy((CUevent)(uintptr_t)event);
        leave(&scope);
    }
}

static struct cca_status event_record(void *self_, cca_device_event event)
{
    const struct cca_cuda_context *self = self_;
    struct scope scope;
    if (!cca_cuda_table_has_context_events(self->table)) {
        return (struct cca_status){CCA_UNSUPPORTED, CUDA_SUCCESS};
    }
    CUresult result = enter_context(&scope, self, NEED_ANY, MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = self->table->ctx_record_event(self->ctx, (CUevent)(uintptr_t)event);
        leave(&scope);
    }
    return cca_cuda_status((int)result);
}

static struct cca_status event_query(void *self_, cca_device_event event)
{
    const struct cca_cuda_context *self = self_;
    struct scope scope;
    CUresult result = enter_context(&scope, self, NEED_ANY, MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = self->table->event_query((CUevent)(uintptr_t)event);
        leave(&scope);
    }
    return cca_cuda_status((int)result);
}

static struct cca_status event_wait(void *self_, cca_device_event event)
{
    const struct cca_cuda_context *self = self_;
    struct scope scope;
    CUresult result = enter_context(&scope, self, NEED_ANY, MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = self->table->event_synchronize((CUevent)(uintptr_t)event);
        leave(&scope);
    }
    return cca_cuda_status((int)result);
}

static struct cca_status synchronize(void *self_)
{
    const struct cca_cuda_context *self = self_;
    struct scope scope;
    CUresult result = enter_context(&scope, self, NEED_THIS, MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = self->table->ctx_synchronize();
        leave(&scope);
    }
    return cca_cuda_status((int)result);
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
    .event_query = event_query,
    .event_wait = event_wait,
    .synchronize = synchronize,
    .stream_ends = stream_ends,
    .capture_info = capture_info,
    .node_dependencies = node_dependencies,
};

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
    if (count >= CCA_CUDA_CONTEXTS_MAX) {
        return NULL;
    }
    int mine = atomic_fetch_add(&contexts->claimed, 1);
    if (mine >= CCA_CUDA_CONTEXTS_MAX) {
        return NULL;
    }
    struct cca_cuda_context *item = &contexts->items[mine];
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
    struct scope scope;
    CUresult result = enter(&scope, table, ctx, NEED_THIS, MODE_RELAXED);
    if (result == CUDA_SUCCESS) {
        result = ask_for_primary(table, ctx, identity_out);
        leave(&scope);
    }
    return cca_cuda_status((int)result);
}

bool cca_cuda_is_integrated(const struct cca_cuda_table *table, int ordinal)
{
    int value = 0;
    return table->device_get_attribute != NULL &&
           table->device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_INTEGRATED, ordinal) ==
               CUDA_SUCCESS &&
           value != 0;
}
