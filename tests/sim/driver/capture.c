/* SPDX-License-Identifier: MIT */
#include "capture.h"

#include "call.h"
#include "defect.h"
#include "graph.h"
#include "module.h"
#include "sim_api.h"

#include <stdlib.h>
#include <string.h>

static struct sim_capture *captures;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static CUresult invalidate(struct sim_capture *capture)
{
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* A thread in relaxed mode may do anything. In thread-local mode its own captures forbid, unless
 * they are relaxed; in global mode the global captures of other threads do too. */
CUresult sim_capture_refuse_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;

    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || SIM_DEFECT(captures_allow_frees)) {
        return CUDA_SUCCESS;
    }
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        bool is_own = pthread_equal(capture->thread, pthread_self()) != 0;
        if ((is_own && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
            (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
             capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
             !SIM_DEFECT(other_threads_never_break))) {
            result = invalidate(capture);
        }
    }
    return result;
}

CUresult sim_capture_refuse_context(struct CUctx_st *context)
{
    CUresult result = CUDA_SUCCESS;

    for (struct sim_queue *queue = context->queues; queue != NULL; queue = queue->next) {
        if (queue->capture != NULL) {
            result = invalidate(queue->capture);
        }
    }
    return result != CUDA_SUCCESS ? result : sim_capture_refuse_unsafe();
}

CUresult sim_capture_refuse_implicit(struct sim_queue *queue)
{
    if (!queue->is_legacy) {
        return CUDA_SUCCESS;
    }
    for (struct sim_queue *other = queue->context->queues; other != NULL; other = other->next) {
        if (other->capture != NULL && (!other->is_nonblocking || SIM_DEFECT(legacy_breaks_all))) {
            invalidate(other->capture);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_capture_refuse_queue(struct sim_queue *queue)
{
    if (queue->capture != NULL) {
        return invalidate(queue->capture);
    }
    CUresult result = sim_capture_refuse_implicit(queue);
    return result != CUDA_SUCCESS ? result : sim_capture_refuse_unsafe();
}

static void set_nodes(struct sim_queue *queue, CUgraphNode const *nodes, size_t count)
{
    queue->capture_nodes = realloc(queue->capture_nodes, (count + 1) * sizeof(CUgraphNode));
    queue->capture_node_count = count;
    if (count != 0) {
        memcpy(queue->capture_nodes, nodes, count * sizeof(CUgraphNode));
    }
}

static void add_nodes(struct sim_queue *queue, CUgraphNode const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < queue->capture_node_count && queue->capture_nodes[at] != nodes[i]) {
            at++;
        }
        if (at == queue->capture_node_count) {
            queue->capture_nodes = realloc(queue->capture_nodes, (at + 1) * sizeof(CUgraphNode));
            queue->capture_nodes[queue->capture_node_count++] = nodes[i];
        }
    }
}

/* The name of what a node does, for reports. */
static const char *name_of(const struct sim_work *work)
{
    return work->type == CU_GRAPH_NODE_TYPE_KERNEL ? work->kernel.kernel->name : sim_call_name();
}

static void note_uses(struct sim_capture *capture, struct sim_queue *queue,
                      const struct sim_work *work)
{
    struct sim_op *op = sim_op_create(queue, name_of(work));

    op->is_silent = true;
    sim_work_reach(work, op);
    for (unsigned i = 0; i < op->range_count; i++) {
        const struct sim_range *range = &op->ranges[i];
        if (range->block == NULL || !sim_block_is_on_device(range->block)) {
            continue;
        }
        struct sim_captured_use *use = calloc(1, sizeof(*use));
        sim_block_hold(range->block);
        range->block->captured_uses++;
        use->block = range->block;
        use->party = (struct sim_party){.name = op->name,
                                        .site = op->site,
                                        .stream_id = queue->id,
                                        .start = range->address,
                                        .end = range->address + range->size_bytes,
                                        .is_write = range->is_write};
        use->next = capture->uses;
        capture->uses = use;
    }
    sim_op_drop(op);
}

static void forget_uses(struct sim_capture *capture)
{
    while (capture->uses != NULL) {
        struct sim_captured_use *use = capture->uses;
        capture->uses = use->next;
        use->block->captured_uses--;
        sim_block_drop(use->block);
        free(use);
    }
}

void sim_capture_refuse_end(struct sim_block *block)
{
    if (block->captured_uses == 0 || SIM_DEFECT(captured_memory_is_freed)) {
        return;
    }
    for (struct sim_capture *capture = captures; capture != NULL; capture = capture->next) {
        const struct sim_captured_use *use = capture->uses;
        while (use != NULL && use->block != block) {
            use = use->next;
        }
        if (use != NULL && capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
            struct sim_party party = sim_party_of_call(block->node.key, block->node.end);
            sim_violation(block->context, "freed while a capture that goes on uses it", &party,
                          &use->party);
            return;
        }
    }
}

CUresult sim_capture_work(struct sim_queue *queue, const struct sim_work *work)
{
    struct sim_capture *capture = queue->capture;

    if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (SIM_DEFECT(captured_work_runs)) {
        queue->capture = NULL;
        sim_work_run(work, queue);
        queue->capture = capture;
    }
    struct CUgraphNode_st *node = sim_graph_add(capture->graph, queue->capture_nodes,
                                                queue->capture_node_count, work);
    set_nodes(queue, &node, 1);
    note_uses(capture, queue, work);
    return CUDA_SUCCESS;
}

CUresult sim_capture_join(struct sim_queue *queue, struct sim_capture *capture,
                          CUgraphNode const *nodes, size_t count)
{
    if (queue->capture == NULL) {
        queue->capture = capture;
        queue->capture_node_count = 0;
    }
    if (queue->capture != capture) {
        invalidate(queue->capture);
        invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    add_nodes(queue, nodes, count);
    return CUDA_SUCCESS;
}

struct sim_capture *sim_capture_of_id(unsigned long long id)
{
    struct sim_capture *capture = captures;

    while (capture != NULL && capture->id != id) {
        capture = capture->next;
    }
    return capture;
}

static CUresult begin(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                      CUgraphNode const *nodes, size_t count)
{
    static unsigned long long next_id = 1;
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(stream, &queue);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (queue->is_legacy) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (queue->capture != NULL || (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return queue->capture != NULL ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE;
    }
    struct sim_capture *capture = calloc(1, sizeof(*capture));
    capture->graph = graph != NULL ? graph : sim_graph_create();
    capture->is_graph_given = graph != NULL;
    capture->origin = queue;
    capture->mode = mode;
    capture->status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    capture->thread = pthread_self();
    capture->id = next_id++;
    capture->next = captures;
    captures = capture;
    queue->capture = capture;
    set_nodes(queue, nodes, count);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin(hStream, mode, NULL, NULL, 0);
}

static bool are_nodes_of(CUgraph graph, CUgraphNode const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (sim_node_of(nodes[i]) == NULL || nodes[i]->graph != graph) {
            return false;
        }
    }
    return true;
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                         const CUgraphNode *dependencies,
                                         const CUgraphEdgeData *dependencyData,
                                         size_t numDependencies, CUstreamCaptureMode mode)
{
    (void)dependencyData;
    if (sim_graph_of(hGraph) == NULL || !are_nodes_of(hGraph, dependencies, numDependencies)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return begin(hStream, mode, hGraph, dependencies, numDependencies);
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies,
                                               size_t numDependencies, unsigned int flags)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result != CUDA_SUCCESS || queue->capture == NULL) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_ILLEGAL_STATE;
    }
    if (!are_nodes_of(queue->capture->graph, dependencies, numDependencies) ||
        flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        set_nodes(queue, dependencies, numDependencies);
    } else {
        add_nodes(queue, dependencies, numDependencies);
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                                  const CUgraphEdgeData *dependencyData,
                                                  size_t numDependencies, unsigned int flags)
{
    (void)dependencyData;
    return sim_cuStreamUpdateCaptureDependencies(hStream, dependencies, numDependencies, flags);
}

/* The form of 10.0 has no mode and means global. */
CUresult sim_cuStreamBeginCapture(CUstream hStream)
{
    return sim_cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void end(struct sim_capture *capture, struct CUctx_st *context)
{
    struct sim_capture **link = &captures;

    for (struct sim_queue *queue = context->queues; queue != NULL; queue = queue->next) {
        if (queue->capture == capture) {
            queue->capture = NULL;
            queue->capture_node_count = 0;
        }
    }
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    forget_uses(capture);
    free(capture);
}

void sim_capture_drop(struct sim_queue *queue)
{
    struct sim_capture *capture = queue->capture;

    if (capture == NULL) {
        return;
    }
    capture->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    if (capture->origin == queue) {
        CUgraph graph = capture->is_graph_given ? NULL : capture->graph;
        end(capture, queue->context);
        if (graph != NULL) {
            sim_graph_destroy(graph);
        }
    }
}

/* Marks what comes before the nodes, themselves included, with no recursion: graphs may be deep. A
 * node is put on the stack once, when it is marked. */
static void mark_behind(const struct CUgraph_st *graph, CUgraphNode const *nodes, size_t count)
{
    struct CUgraphNode_st **stack = calloc(graph->node_count + 1, sizeof(CUgraphNode));
    size_t height = 0;

    for (size_t i = 0; i < count; i++) {
        if (nodes[i]->mark == 0) {
            nodes[i]->mark = 1;
            stack[height++] = nodes[i];
        }
    }
    while (height > 0) {
        const struct CUgraphNode_st *node = stack[--height];
        for (size_t i = 0; i < node->before_count; i++) {
            if (node->before[i]->mark == 0) {
                node->before[i]->mark = 1;
                stack[height++] = node->before[i];
            }
        }
    }
    free(stack);
}

/* Does the origin come after all that other queues have recorded? */
static bool is_joined(const struct sim_capture *capture)
{
    const struct sim_queue *origin = capture->origin;

    for (struct CUgraphNode_st *node = capture->graph->first; node != NULL; node = node->next) {
        node->mark = 0;
    }
    mark_behind(capture->graph, origin->capture_nodes, origin->capture_node_count);
    for (struct sim_queue *queue = origin->context->queues; queue != NULL; queue = queue->next) {
        for (size_t i = 0; queue->capture == capture && i < queue->capture_node_count; i++) {
            if (queue->capture_nodes[i]->mark == 0) {
                return SIM_DEFECT(captures_end_unjoined);
            }
        }
    }
    return true;
}

CUresult sim_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct sim_queue *queue;
    CUresult result = sim_enter_stream(hStream, &queue);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    struct sim_capture *capture = queue->capture;
    if (capture == NULL || phGraph == NULL) {
        return capture == NULL ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE;
    }
    if (capture->origin != queue) {
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !SIM_DEFECT(any_thread_ends_captures) &&
        !pthread_equal(capture->thread, pthread_self())) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (capture->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (!is_joined(capture)) {
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    *phGraph = result == CUDA_SUCCESS ? capture->graph : NULL;
    if (result != CUDA_SUCCESS && !capture->is_graph_given) {
        sim_graph_destroy(capture->graph);
    }
    end(capture, queue->context);
    return result;
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUstreamCaptureMode before = thread_mode;
    thread_mode = SIM_DEFECT(thread_modes_are_not_set) ? before : *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
