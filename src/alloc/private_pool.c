/* SPDX-License-Identifier: MIT */
#include "alloc/private_pool.h"

#include <errno.h>

#include "alloc/allocator_internal.h"
#include "alloc/capture.h"
#include "alloc/release.h"
#include "alloc/stream_use.h"
#include "alloc/verify.h"
#include "base/check.h"

void cca_private_pools_init(struct cca_heap *heap)
{
    cca_list_init(&heap->private_pools);
    cca_list_init(&heap->routes);
    cca_pool_init(&heap->private_pool_records, sizeof(struct cca_private_pool));
    cca_pool_init(&heap->route_records, sizeof(struct cca_route));
}

static bool is_same(struct cca_pool_id a, struct cca_pool_id b)
{
    return a.capture == b.capture && a.handle == b.handle;
}

struct cca_private_pool *cca_private_pool_find(struct cca_heap *heap, struct cca_pool_id id)
{
    CCA_LIST_EACH (link, &heap->private_pools) {
        struct cca_private_pool *pool = CCA_LIST_ENTRY(link, struct cca_private_pool, link);
        if (is_same(pool->id, id)) {
            return pool;
        }
    }
    return NULL;
}

static struct cca_route *find_route(struct cca_heap *heap, struct cca_pool_id id)
{
    CCA_LIST_EACH (link, &heap->routes) {
        struct cca_route *route = CCA_LIST_ENTRY(link, struct cca_route, link);
        if (is_same(route->pool->id, id)) {
            return route;
        }
    }
    return NULL;
}

static bool takes(const struct cca_route *route, const struct cca_request *request)
{
    switch (route->scope.kind) {
    case CCA_SCOPE_THREAD: return request->thread == route->scope.thread;
    case CCA_SCOPE_CAPTURE:
        if (request->capture != 0 && request->capture == route->capture) {
            return true;
        }
        break;
    case CCA_SCOPE_STREAM: break;
    }
    return request->key == route->scope.stream;
}

struct cca_private_pool *cca_private_pool_route(struct cca_heap *heap,
                                                const struct cca_request *request)
{
    for (struct cca_list *link = heap->routes.prev; link != &heap->routes; link = link->prev) {
        struct cca_route *route = CCA_LIST_ENTRY(link, struct cca_route, link);
        if (takes(route, request)) {
            return route->pool;
        }
    }
    return NULL;
}

/* No user's. */
#define DEDICATED_HANDLE UINT64_MAX

/* Made when there is none of that id; NULL when memory is refused. */
static struct cca_private_pool *find_or_make(struct cca_heap *heap, struct cca_pool_id id)
{
    struct cca_private_pool *pool = cca_private_pool_find(heap, id);
    if (pool == NULL) {
        pool = cca_pool_take(&heap->private_pool_records);
        const uint64_t parts[2] = {id.capture, id.handle};
        uint16_t number = 0;
        if (pool != NULL) {
            number = cca_pool_table_add(&cca_heap_open_accounts(heap)->pools, parts);
            cca_heap_close_accounts(heap);
        }
        if (number == 0) {
            cca_pool_give(&heap->private_pool_records, pool);
            return NULL;
        }
        pool->id = id;
        pool->number = number;
        cca_block_pool_init(&pool->pools[0]);
        cca_block_pool_init(&pool->pools[1]);
        cca_list_push_back(&heap->private_pools, &pool->link);
    }
    return pool;
}

/* The pool with one use more. */
static struct cca_private_pool *retain(struct cca_heap *heap, struct cca_pool_id id)
{
    struct cca_private_pool *pool = find_or_make(heap, id);
    if (pool != NULL) {
        pool->uses++;
    }
    return pool;
}

struct cca_private_pool *cca_private_pool_dedicated(struct cca_heap *heap)
{
    struct cca_private_pool *pool = find_or_make(heap,
                                                 (struct cca_pool_id){.handle = DEDICATED_HANDLE});
    if (pool != NULL) {
        pool->no_split = pool->is_dedicated = true;
    }
    return pool;
}

void cca_private_pool_sweep(struct cca_heap *heap)
{
    CCA_LIST_EACH (link, &heap->private_pools) {
        struct cca_private_pool *pool = CCA_LIST_ENTRY(link, struct cca_private_pool, link);
        if (pool->uses == 0 && pool->segments == 0 && pool->holders == 0) {
            cca_list_remove(link);
            cca_pool_table_drop(&cca_heap_open_accounts(heap)->pools, pool->number);
            cca_heap_close_accounts(heap);
            cca_pool_give(&heap->private_pool_records, pool);
        }
    }
}

static void close_route(struct cca_heap *heap, struct cca_route *route)
{
    CCA_ASSERT(route->scope.kind != CCA_SCOPE_CAPTURE || heap->captures > 0);
    heap->captures -= route->scope.kind == CCA_SCOPE_CAPTURE;
    cca_capture_ends(heap, route->capture);
    cca_list_remove(&route->link);
    cca_pool_give(&heap->route_records, route);
}

void cca_private_pool_drop(struct cca_heap *heap)
{
    CCA_LIST_EACH (link, &heap->routes) {
        struct cca_route *route = CCA_LIST_ENTRY(link, struct cca_route, link);
        if (route->scope.kind == CCA_SCOPE_CAPTURE) {
            close_route(heap, route);
        }
    }
    cca_private_pool_sweep(heap);
}

static bool is_id(struct cca_pool_id id)
{
    return (id.capture != 0) != (id.handle != 0);
}

int cca_allocator_pool_retain(struct cca_allocator *allocator, struct cca_heap *heap,
                              struct cca_pool_id id, unsigned flags)
{
    (void)allocator;
    if (!is_id(id)) {
        return -EINVAL;
    }
    cca_lock_take(&heap->lock);
    struct cca_private_pool *pool = retain(heap, id);
    if (pool != NULL) {
        pool->use_on_oom |= (flags & CCA_POOL_USE_ON_OOM) != 0;
        pool->no_split |= (flags & CCA_POOL_NO_SPLIT) != 0;
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
    return pool != NULL ? 0 : -ENOMEM;
}

int cca_allocator_pool_release(struct cca_allocator *allocator, struct cca_heap *heap,
                               struct cca_pool_id id)
{
    (void)allocator;
    int rc = -ENOENT;
    cca_lock_take(&heap->lock);
    struct cca_private_pool *pool = cca_private_pool_find(heap, id);
    struct cca_route *route = find_route(heap, id);
    if (pool != NULL && pool->uses > 0) {
        rc = pool->uses == 1 && route != NULL ? -EBUSY : 0;
    }
    if (rc == 0) {
        pool->uses--;
        cca_private_pool_sweep(heap);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
    return rc;
}

static int open_route(struct cca_heap *heap, struct cca_pool_id id,
                      const struct cca_pool_scope *scope)
{
    if (find_route(heap, id) != NULL) {
        return -EEXIST;
    }
    struct cca_route *route = cca_pool_take(&heap->route_records);
    struct cca_private_pool *pool = route == NULL ? NULL : retain(heap, id);
    if (pool == NULL) {
        cca_pool_give(&heap->route_records, route);
        return -ENOMEM;
    }
    route->pool = pool;
    route->scope = *scope;
    heap->captures += scope->kind == CCA_SCOPE_CAPTURE;
    pool->is_graphs |= scope->kind == CCA_SCOPE_CAPTURE;
    cca_list_push_back(&heap->routes, &route->link);
    return 0;
}

int cca_allocator_pool_begin(struct cca_allocator *allocator, struct cca_heap *heap,
                             struct cca_pool_id id, const struct cca_pool_scope *scope)
{
    (void)allocator;
    if (!is_id(id)) {
        return -EINVAL;
    }
    cca_lock_take(&heap->lock);
    int rc = open_route(heap, id, scope);
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
    return rc;
}

void cca_allocator_pool_empty(struct cca_allocator *allocator, struct cca_heap *heap,
                              struct cca_pool_id id, uint64_t wait_ms)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    struct cca_private_pool *pool = cca_private_pool_find(heap, id);
    if (pool != NULL && heap->state == CCA_HEAP_UP) {
        cca_release_pool(heap, pool, wait_ms);
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
}

int cca_allocator_pool_use(struct cca_allocator *allocator, struct cca_heap *heap,
                           struct cca_pool_id id, const struct cca_pool_scope *scope)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    struct cca_private_pool *pool = cca_private_pool_find(heap, id);
    int rc = pool == NULL || pool->uses == 0 ? -ENOENT : open_route(heap, id, scope);
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
    return rc;
}

int cca_allocator_pool_end(struct cca_allocator *allocator, struct cca_heap *heap,
                           struct cca_pool_id id)
{
    (void)allocator;
    cca_lock_take(&heap->lock);
    struct cca_route *route = find_route(heap, id);
    if (route != NULL) {
        cca_stream_use_capture_ends(heap, route->pool);
        close_route(heap, route);
        if (heap->captures == 0) {
            cca_stream_use_captures_over(heap);
        }
    }
    cca_verify_if_wanted(heap);
    cca_lock_drop(&heap->lock);
    return route != NULL ? 0 : -ENOENT;
}
