/* SPDX-License-Identifier: MIT */
#include "device/cuda_streams.h"

/* A key lies within this many slots of its place. */
enum { PROBES = 8 };

static size_t slot_of(cca_stream_id id, size_t probe)
{
    size_t place = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
    return (place + probe) % CCA_CUDA_STREAMS_MAX;
}

void cca_cuda_streams_note(struct cca_cuda_streams *streams, cca_stream_id id, CUstream stream)
{
    size_t chosen = slot_of(id, 0);
    pthread_mutex_lock(&streams->lock);
    for (size_t probe = PROBES; probe-- > 0;) {
        size_t slot = slot_of(id, probe);
        if (streams->slots[slot].id == id) {
            chosen = slot;
            break;
        }
        chosen = streams->slots[slot].id == 0 ? slot : chosen;
    }
    streams->slots[chosen].id = id;
    streams->slots[chosen].stream = stream;
    pthread_mutex_unlock(&streams->lock);
}

void cca_cuda_streams_forget(struct cca_cuda_streams *streams, cca_stream_id id)
{
    pthread_mutex_lock(&streams->lock);
    for (size_t probe = 0; probe < PROBES; probe++) {
        size_t slot = slot_of(id, probe);
        if (streams->slots[slot].id == id) {
            streams->slots[slot].id = 0;
        }
    }
    pthread_mutex_unlock(&streams->lock);
}

CUstream cca_cuda_streams_find(struct cca_cuda_streams *streams, cca_stream_id id)
{
    CUstream found = NULL;
    pthread_mutex_lock(&streams->lock);
    for (size_t probe = 0; probe < PROBES && found == NULL; probe++) {
        size_t slot = slot_of(id, probe);
        found = streams->slots[slot].id == id ? streams->slots[slot].stream : NULL;
    }
    pthread_mutex_unlock(&streams->lock);
    return found;
}

static struct cca_status unsupported(CUresult result)
{
    return (struct cca_status){CCA_UNSUPPORTED, (int)result};
}

struct cca_status cca_cuda_capture_info(struct cca_cuda_streams *streams,
                                        const struct cca_cuda_table *table, cca_stream_id id,
                                        struct cca_capture_info *info_out)
{
    CUstream stream = cca_cuda_streams_find(streams, id);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    struct cca_capture_info info = {0};
    const CUgraphNode *nodes = NULL;
    CUgraph graph = NULL;
    cuuint64_t capture = 0;
    if (stream == NULL || table->stream_get_capture_info == NULL) {
        return unsupported(CUDA_SUCCESS);
    }
    CUresult result = table->stream_get_capture_info(stream, &status, &capture, &graph, &nodes,
                                                     &info.terminal_count);
    if (result != CUDA_SUCCESS) {
        return unsupported(result);
    }
    /* A capture that has been invalidated will run nothing, but is not over. */
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) {
        info.id = capture;
    }
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        info.terminal_count = 0;
    }
    for (size_t i = 0; i < info.terminal_count && i < CCA_TERMINALS_MAX; i++) {
        info.terminals[i] = (uint64_t)(uintptr_t)nodes[i];
    }
    *info_out = info;
    return cca_status_ok();
}

struct cca_status cca_cuda_node_dependencies(const struct cca_cuda_table *table, uint64_t node_,
                                             uint64_t *nodes_out, size_t max, size_t *count_out)
{
    enum { NODES_MAX = 256 };
    CUgraphNode node = (CUgraphNode)(uintptr_t)node_, nodes[NODES_MAX];
    size_t count = 0, room;
    if (table->graph_node_get_dependencies == NULL) {
        return unsupported(CUDA_SUCCESS);
    }
    CUresult result = table->graph_node_get_dependencies(node, NULL, &count);
    if (result != CUDA_SUCCESS || count > NODES_MAX) {
        return unsupported(result);
    }
    room = count;
    if (count != 0) {
        result = table->graph_node_get_dependencies(node, nodes, &room);
    }
    if (result != CUDA_SUCCESS || room != count) {
        return unsupported(result);
    }
    for (size_t i = 0; i < count && i < max; i++) {
        nodes_out[i] = (uint64_t)(uintptr_t)nodes[i];
    }
    *count_out = count;
    return cca_status_ok();
}
