/* SPDX-License-Identifier: MIT */
#include "alloc/capture.h"

#include "alloc/allocator_internal.h"
#include "alloc/device_call.h"
#include "alloc/private_pool.h"
#include "alloc/stream_use.h"
#include "base/clock.h"
#include "base/idset.h"

enum { DEPENDENCIES_MAX = 256, LEARNED_MAX = 8 };

/* What lies behind a stream's terminals: they and every node they depend on. */
struct cca_capture_view {
    struct cca_list link; /* in heap->capture_views */
    uint64_t capture;
    cca_key stream;
    struct cca_idset nodes;       /* in the order in which they were met */
    struct cca_capture_info last; /* the terminals that `nodes` was made from */
    bool is_walking;              /* by a thread that has dropped the lock */
    bool is_over;                 /* its capture has ended meanwhile */
};

void cca_captures_init(struct cca_heap *heap)
{
    cca_list_init(&heap->capture_views);
    cca_pool_init(&heap->capture_view_records, sizeof(struct cca_capture_view));
    cca_pool_init(&heap->marker_records, sizeof(struct cca_free_markers));
}

static void drop_view(struct cca_heap *heap, struct cca_capture_view *view)
{
    cca_list_remove(&view->link);
    cca_idset_fini(&view->nodes);
    cca_pool_give(&heap->capture_view_records, view);
}

void cca_captures_fini(struct cca_heap *heap)
{
    CCA_LIST_EACH (link, &heap->capture_views) {
        drop_view(heap, CCA_LIST_ENTRY(link, struct cca_capture_view, link));
    }
    cca_pool_fini(&heap->capture_view_records);
    cca_pool_fini(&heap->marker_records);
}

void cca_capture_ends(struct cca_heap *heap, uint64_t capture)
{
    CCA_LIST_EACH (link, &heap->capture_views) {
        struct cca_capture_view *view = CCA_LIST_ENTRY(link, struct cca_capture_view, link);
        if (view->capture != capture && heap->captures > 0) {
            continue;
        }
        if (view->is_walking) {
            view->is_over = true; /* the thread that walks it drops it */
        } else {
            drop_view(heap, view);
        }
    }
}

/* What the device says of a stream; no lock held. */
static bool ask(struct cca_heap *heap, cca_key stream, struct cca_capture_info *info_out)
{
    struct cca_status status = {CCA_UNSUPPORTED, 0};
    if (stream != CCA_KEY_READY && cca_device_call_begin(heap)) {
        status = heap->device.ops->capture_info(heap->device.self, stream, info_out);
        cca_device_call_end(heap);
    }
    return status.kind == CCA_OK;
}

static bool can_ask(const struct cca_heap *heap)
{
    return heap->device.ops->capture_info != NULL;
}

/* Adds what the nodes from position `next` on depend on, until nothing is new. `met` gets a bit for
 * each of the old terminals that turns up. No lock held. */
static bool walk(struct cca_heap *heap, struct cca_capture_view *view, size_t next, unsigned *met)
{
    uint64_t found[DEPENDENCIES_MAX];
    const struct cca_device *device = &heap->device;
    for (; next < view->nodes.count; next++) {
        size_t count = 0;
        uint64_t node = view->nodes.items[next];
        struct cca_status status = device->ops->node_dependencies(device->self, node, found,
                                                                  DEPENDENCIES_MAX, &count);
        if (status.kind != CCA_OK || count > DEPENDENCIES_MAX) {
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            for (size_t t = 0; t < view->last.terminal_count; t++) {
                *met |= found[i] == view->last.terminals[t] ? 1u << t : 0;
            }
            if (cca_idset_add(&view->nodes, found[i]) < 0) {
                return false;
            }
        }
    }
    return true;
}

/* Adds everything behind these terminals. What was there stays right only if the new terminals come
 * after all of the old ones, which a program that sets dependencies itself can make untrue: then
 * the set is made anew. */
static bool add_behind(struct cca_heap *heap, struct cca_capture_view *view,
                       const struct cca_capture_info *info)
{
    unsigned met = 0, all = (1u << view->last.terminal_count) - 1;
    size_t start = view->nodes.count;
    for (size_t i = 0; i < info->terminal_count; i++) {
        for (size_t t = 0; t < view->last.terminal_count; t++) {
            met |= info->terminals[i] == view->last.terminals[t] ? 1u << t : 0;
        }
        if (cca_idset_add(&view->nodes, info->terminals[i]) < 0) {
            return false;
        }
    }
    return walk(heap, view, start, &met) && (met & all) == all;
}

/* Brings the view up to date; no lock held. */
static bool update(struct cca_heap *heap, struct cca_capture_view *view,
                   const struct cca_capture_info *info)
{
    bool is_done = info->terminal_count <= CCA_TERMINALS_MAX && cca_device_call_begin(heap);
    if (is_done) {
        if (!add_behind(heap, view, info)) {
            cca_idset_clear(&view->nodes);
            view->last.terminal_count = 0;
            is_done = add_behind(heap, view, info);
        }
        cca_device_call_end(heap);
    }
    if (is_done) {
        view->last = *info;
    } else {
        cca_idset_clear(&view->nodes);
        view->last.terminal_count = 0;
    }
    return is_done;
}

/* The stream's view of its capture, a new one where it has none; NULL when memory is refused. */
static struct cca_capture_view *view_of(struct cca_heap *heap, cca_key stream, uint64_t capture)
{
    CCA_LIST_EACH (link, &heap->capture_views) {
        struct cca_capture_view *view = CCA_LIST_ENTRY(link, struct cca_capture_view, link);
        if (view->stream == stream && view->capture == capture) {
            return view;
        }
    }
    struct cca_capture_view *view = cca_pool_take(&heap->capture_view_records);
    if (view != NULL) {
        view->stream = stream;
        view->capture = capture;
        cca_list_push_back(&heap->capture_views, &view->link);
    }
    return view;
}

static bool are_behind(const struct cca_free_markers *markers, const struct cca_capture_view *view)
{
    for (size_t i = 0; i < markers->count; i++) {
        if (!cca_idset_has(&view->nodes, markers->nodes[i])) {
            return false;
        }
    }
    return true;
}

/* Completes the frees of the stream's own blocks whose markers all lie in the view. */
static void complete_safe(struct cca_heap *heap, const struct cca_capture_view *view)
{
    CCA_LIST_EACH (link, &heap->deferred) {
        struct cca_block *block = CCA_LIST_ENTRY(link, struct cca_block, wait);
        struct cca_stream_use *uses = block->uses;
        if (uses->markers != NULL && uses->markers->capture == view->capture &&
            block->key == view->stream && uses->freed_on == view->stream &&
            are_behind(uses->markers, view)) {
            cca_stream_use_take_back(heap, block);
            cca_heap_complete_free(heap, block, view->stream, cca_clock_ns());
        }
    }
}

static bool wants_reuse(const struct cca_heap *heap)
{
    return heap->allocator->settings.graph_capture_reuse &&
           heap->device.ops->node_dependencies != NULL;
}

/* Walks with the lock dropped, then frees what may be freed. */
static void reuse(struct cca_heap *heap, cca_key stream, const struct cca_capture_info *info)
{
    struct cca_capture_view *view = view_of(heap, stream, info->id);
    if (view == NULL || view->is_walking) {
        return;
    }
    uint64_t generation = heap->generation;
    view->is_walking = true;
    cca_lock_drop(&heap->lock);
    bool is_done = update(heap, view, info);
    cca_lock_take(&heap->lock);
    view->is_walking = false;
    if (view->is_over) {
        drop_view(heap, view);
    } else if (is_done && heap->generation == generation) {
        complete_safe(heap, view);
    }
}

/* Streams of open scopes whose captures are not known yet. */
static size_t unknown_streams(const struct cca_heap *heap, cca_key streams[LEARNED_MAX])
{
    size_t count = 0;
    CCA_LIST_EACH (link, &heap->routes) {
        const struct cca_route *route = CCA_LIST_ENTRY(link, struct cca_route, link);
        if (route->scope.kind == CCA_SCOPE_CAPTURE && route->capture == 0 && count < LEARNED_MAX) {
            streams[count++] = route->scope.stream;
        }
    }
    return count;
}

static void learn(struct cca_heap *heap, cca_key stream, uint64_t capture)
{
    CCA_LIST_EACH (link, &heap->routes) {
        struct cca_route *route = CCA_LIST_ENTRY(link, struct cca_route, link);
        if (route->scope.kind == CCA_SCOPE_CAPTURE && route->scope.stream == stream) {
            route->capture = capture;
        }
    }
}

void cca_capture_look(struct cca_heap *heap, struct cca_request *request)
{
    cca_key streams[LEARNED_MAX];
    struct cca_capture_info info = {0}, infos[LEARNED_MAX] = {{0}};
    bool is_told[LEARNED_MAX];
    if (!can_ask(heap) || request->key == CCA_KEY_READY) {
        return;
    }
    size_t count = unknown_streams(heap, streams);
    cca_lock_drop(&heap->lock);
    bool is_known = ask(heap, request->key, &info) && info.id != 0;
    for (size_t i = 0; i < count; i++) {
        is_told[i] = is_known && ask(heap, streams[i], &infos[i]);
    }
    cca_lock_take(&heap->lock);
    if (!is_known || heap->state != CCA_HEAP_UP) {
        return;
    }
    request->capture = info.id;
    for (size_t i = 0; i < count; i++) {
        if (is_told[i] && infos[i].id != 0) {
            learn(heap, streams[i], infos[i].id);
        }
    }
    if (wants_reuse(heap) && heap->captures > 0 && !cca_list_is_empty(&heap->deferred)) {
        reuse(heap, request->key, &info);
    }
}

bool cca_capture_takes_part(struct cca_heap *heap, cca_key stream)
{
    struct cca_capture_info info = {0};
    if (!can_ask(heap)) {
        return true;
    }
    cca_lock_drop(&heap->lock);
    bool is_told = ask(heap, stream, &info);
    cca_lock_take(&heap->lock);
    return !is_told || info.id != 0;
}

/* Adds the stream's terminals. False: it takes no part in that capture, or they are too many. */
static bool add_terminals(struct cca_heap *heap, cca_key stream, struct cca_free_markers *markers)
{
    struct cca_capture_info info = {0};
    if (!ask(heap, stream, &info) || info.id == 0 || info.terminal_count > CCA_TERMINALS_MAX) {
        return false;
    }
    if (markers->capture != 0 && markers->capture != info.id) {
        return false;
    }
    markers->capture = info.id;
    for (size_t i = 0; i < info.terminal_count; i++) {
        size_t at = 0;
        while (at < markers->count && markers->nodes[at] != info.terminals[i]) {
            at++;
        }
        if (at == CCA_TERMINALS_MAX) {
            return false;
        }
        markers->nodes[at] = info.terminals[i];
        markers->count += at == markers->count;
    }
    return true;
}

/* Only graph memory that was used by nothing but captured work. */
static bool is_captured_only(const struct cca_heap *heap, const struct cca_block *block,
                             const struct cca_stream_use *uses)
{
    if (block->segment->pool == NULL || uses == &heap->used_everywhere) {
        return false;
    }
    for (; uses != NULL; uses = uses->next) {
        if (!uses->in_capture) {
            return false;
        }
    }
    return true;
}

struct cca_free_markers *cca_capture_mark(struct cca_heap *heap, const struct cca_block *block,
                                          const struct cca_stream_use *uses)
{
    struct cca_free_markers *kept, markers = {0};
    if (!can_ask(heap) || !wants_reuse(heap) || !is_captured_only(heap, block, uses)) {
        return NULL;
    }
    cca_key own = block->key;
    uint64_t generation = heap->generation;
    cca_lock_drop(&heap->lock);
    bool is_told = add_terminals(heap, own, &markers);
    for (; is_told && uses != NULL; uses = uses->next) {
        is_told = add_terminals(heap, uses->stream, &markers);
    }
    cca_lock_take(&heap->lock);
    /* Without a node nothing would say when the uses are over. */
    kept = is_told && markers.count != 0 && heap->generation == generation
               ? cca_pool_take(&heap->marker_records)
               : NULL;
    if (kept != NULL) {
        *kept = markers;
    }
    return kept;
}

void cca_capture_unmark(struct cca_heap *heap, struct cca_free_markers *markers)
{
    cca_pool_give(&heap->marker_records, markers);
}
