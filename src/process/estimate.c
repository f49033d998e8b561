/* SPDX-License-Identifier: MIT */
#include "process/estimate.h"

#include <errno.h>
#include <stdatomic.h>

#include "alloc/heap.h"
#include "base/lock.h"
#include "base/ptrmap.h"
#include "base/sysmem.h"
#include "observe/observer.h"

/* Addresses of paper tell their device, and are never used twice. */
enum { PAPER_SHIFT = 48, PAPER_START = 1 << 21 };

struct paper {
    _Atomic size_t total_bytes, used_bytes;
    _Atomic uint64_t next;
    int ordinal;
    struct cca_ptrmap *sizes;
};

struct cca_estimate {
    struct cca_config config;
    struct cca_allocator *allocator; /* the one that would have served */
    struct cca_ptrmap addresses;     /* the program's address -> the one on paper */
    struct cca_ptrmap sizes;         /* of allocations on paper */
    struct cca_lock lock;            /* the counters below */
    struct cca_counters real[CCA_DEVICES_MAX];
    struct paper papers[CCA_DEVICES_MAX];
};

static struct cca_status paper_alloc(void *self, size_t bytes, uint64_t *addr_out)
{
    struct paper *paper = self;
    size_t used = atomic_fetch_add(&paper->used_bytes, bytes);

    if (bytes > atomic_load(&paper->total_bytes) ||
        used > atomic_load(&paper->total_bytes) - bytes) {
        atomic_fetch_sub(&paper->used_bytes, bytes);
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    *addr_out = ((uint64_t)paper->ordinal << PAPER_SHIFT) +
                atomic_fetch_add(&paper->next,
                                 (bytes + PAPER_START - 1) & ~(uint64_t)(PAPER_START - 1));
    if (cca_ptrmap_insert(paper->sizes, *addr_out, (void *)(uintptr_t)bytes) != 0) {
        atomic_fetch_sub(&paper->used_bytes, bytes);
        return (struct cca_status){CCA_NO_MEMORY, 0};
    }
    return cca_status_ok();
}

static struct cca_status paper_free(void *self, uint64_t addr)
{
    struct paper *paper = self;

    atomic_fetch_sub(&paper->used_bytes, (size_t)(uintptr_t)cca_ptrmap_remove(paper->sizes, addr));
    return cca_status_ok();
}

static struct cca_status paper_info(void *self, size_t *free_bytes_out, size_t *total_bytes_out)
{
    struct paper *paper = self;

    *total_bytes_out = atomic_load(&paper->total_bytes);
    *free_bytes_out = *total_bytes_out - atomic_load(&paper->used_bytes);
    return cca_status_ok();
}

static struct cca_status paper_event_create(void *self, cca_device_event *event_out)
{
    (void)self;
    *event_out = 1;
    return cca_status_ok();
}

static void paper_event_destroy(void *self, cca_device_event event)
{
    (void)self, (void)event;
}

static struct cca_status paper_event(void *self, cca_device_event event)
{
    (void)self, (void)event;
    return cca_status_ok();
}

static struct cca_status paper_event_stream(void *self, cca_device_event event,
                                            cca_stream_id stream)
{
    (void)self, (void)event, (void)stream;
    return cca_status_ok();
}

static struct cca_status paper_synchronize(void *self)
{
    (void)self;
    return cca_status_ok();
}

static const struct cca_device_ops paper_ops = {
    .mem_alloc = paper_alloc,
    .mem_free = paper_free,
    .mem_info = paper_info,
    .event_create = paper_event_create,
    .event_destroy = paper_event_destroy,
    .event_record = paper_event,
    .event_record_stream = paper_event_stream,
    .event_query = paper_event,
    .event_wait = paper_event,
    .synchronize = paper_synchronize,
};

int cca_estimate_create(const struct cca_config *config, struct cca_estimate **estimate_out)
{
    struct cca_estimate *estimate = cca_sysmem_map(sizeof(*estimate));

    if (estimate == NULL) {
        return -ENOMEM;
    }
    estimate->config = *config;
    estimate->config.mode = CCA_MODE_CACHE;
    estimate->config.free_sync = CCA_FREE_STRICT;
    estimate->config.history = CCA_HISTORY_OFF;
    estimate->config.context = CCA_CONTEXT_NONE;
    if (cca_allocator_create(&estimate->config, &estimate->allocator) != 0) {
        cca_sysmem_unmap(estimate, sizeof(*estimate));
        return -ENOMEM;
    }
    cca_ptrmap_init(&estimate->addresses);
    cca_ptrmap_init(&estimate->sizes);
    cca_lock_init(&estimate->lock, CCA_RANK_LEAF);
    for (int i = 0; i < CCA_DEVICES_MAX; i++) {
        struct paper *paper = &estimate->papers[i];
        paper->ordinal = i;
        paper->sizes = &estimate->sizes;
        atomic_store(&paper->next, PAPER_START);
    }
    *estimate_out = estimate;
    return 0;
}

/* The twin of a device's heap, for all contexts of the device; a new life of its primary context,
 * after a reset, is a new one here, too. */
static struct cca_heap *twin_of(struct cca_estimate *estimate, const struct cca_heap *of)
{
    const struct cca_heap *heap = of->accounts;
    int ordinal = heap->device.ordinal;
    uint64_t life = atomic_load(&heap->generation) + 1;
    struct cca_heap *twin = cca_allocator_heap(estimate->allocator, life << 8 | (uint64_t)ordinal);
    struct paper *paper = &estimate->papers[ordinal];
    struct cca_device device = {
        .ops = &paper_ops, .self = paper, .ordinal = ordinal, .has_context_events = true};

    if (twin != NULL) {
        return twin;
    }
    atomic_store(&paper->total_bytes, heap->device_bytes);
    atomic_store(&paper->used_bytes, 0);
    return cca_allocator_attach(estimate->allocator, &device, life << 8 | (uint64_t)ordinal);
}

static void count(struct cca_estimate *estimate, int ordinal, enum cca_event_kind kind,
                  uint64_t took_ns)
{
    struct cca_event event = {.kind = kind, .duration_ns = took_ns};

    cca_lock_take(&estimate->lock);
    cca_counters_apply(&estimate->real[ordinal], &event);
    cca_lock_drop(&estimate->lock);
}

static void forget(struct cca_estimate *estimate, uint64_t paper_addr,
                   const struct cca_request *request)
{
    struct cca_request plain = {.api = request->api, .key = request->key};

    (void)cca_allocator_free(estimate->allocator, paper_addr, &plain);
}

void cca_estimate_alloc(struct cca_estimate *estimate, struct cca_heap *heap,
                        const struct cca_request *request, uint64_t addr, uint64_t took_ns)
{
    struct cca_request plain = {.api = request->api, .bytes = request->bytes, .key = request->key};
    struct cca_heap *twin = twin_of(estimate, heap);
    uint64_t paper_addr;
    void *stale;

    count(estimate, heap->device.ordinal, CCA_EVENT_SEGMENT_ALLOC, took_ns);
    if (twin == NULL ||
        cca_allocator_alloc(estimate->allocator, twin, &plain, &paper_addr).kind != CCA_OK) {
        return;
    }
    /* Of a free that was not seen, or of an earlier life of the context. */
    stale = cca_ptrmap_remove(&estimate->addresses, addr);
    if (stale != NULL) {
        forget(estimate, (uint64_t)(uintptr_t)stale, &plain);
    }
    if (cca_ptrmap_insert(&estimate->addresses, addr, (void *)(uintptr_t)paper_addr) != 0) {
        forget(estimate, paper_addr, &plain);
    }
}

int cca_estimate_free(struct cca_estimate *estimate, uint64_t addr,
                      const struct cca_request *request)
{
    uint64_t paper_addr = (uint64_t)(uintptr_t)cca_ptrmap_remove(&estimate->addresses, addr);

    if (paper_addr == 0) {
        return -1;
    }
    forget(estimate, paper_addr, request);
    return (int)(paper_addr >> PAPER_SHIFT);
}

void cca_estimate_freed(struct cca_estimate *estimate, int ordinal, uint64_t took_ns)
{
    if (ordinal >= 0) {
        count(estimate, ordinal, CCA_EVENT_DRIVER_FREED, took_ns);
    }
}

static void copy_twin(void *user, struct cca_observer *observer)
{
    struct cca_estimate_figures *figures = user;

    figures->hits = observer->counters.hits;
    figures->driver_allocs = observer->counters.driver_allocs;
    figures->driver_frees = observer->counters.driver_frees;
    figures->reserved_peak = observer->stats.reserved_bytes[CCA_STAT_ALL].peak;
}

void cca_estimate_read(struct cca_estimate *estimate, int ordinal,
                       struct cca_estimate_figures *figures_out)
{
    const struct cca_counters *real = &estimate->real[ordinal];
    struct cca_estimate_figures figures = {0};

    (void)cca_allocator_with_observer(estimate->allocator, ordinal, copy_twin, &figures);
    cca_lock_take(&estimate->lock);
    figures.allocs = real->driver_allocs;
    figures.frees = real->driver_frees;
    figures.alloc_ns = real->driver_alloc_ns;
    figures.free_ns = real->driver_free_ns;
    figures.alloc_median_ns = cca_counters_driver_alloc_median_ns(real);
    cca_lock_drop(&estimate->lock);
    *figures_out = figures;
}
