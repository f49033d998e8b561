/* SPDX-License-Identifier: MIT */
#include "device/cuda_streams.h"

#include "base/clock.h"
#include "device/cuda_error.h"

/* A key lies within this many slots of its place. */
enum { PROBES = 8 };

static size_t slot_of(cca_stream_id id, size_t probe)
{
    size_t place = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
    return (place + probe) % CCA_CUDA_STREAMS_MAX;
}

/* Its slot, or CCA_CUDA_STREAMS_MAX. Lock held. */
static size_t find(const struct cca_cuda_streams *streams, cca_stream_id id)
{
    for (size_t probe = 0; probe < PROBES; probe++) {
        if (streams->slots[slot_of(id, probe)].id == id) {
            return slot_of(id, probe);
        }
    }
    return CCA_CUDA_STREAMS_MAX;
}

/* Where a new one goes: an empty slot, else one that nobody holds, else CCA_CUDA_STREAMS_MAX. */
static size_t choose(const struct cca_cuda_streams *streams, cca_stream_id id)
{
    size_t chosen = CCA_CUDA_STREAMS_MAX;
    for (size_t probe = PROBES; probe-- > 0;) {
        size_t slot = slot_of(id, probe);
        bool is_idle = streams->slots[slot].users == 0 && !streams->slots[slot].is_ending;
        if (streams->slots[slot].id == 0) {
            return slot;
        }
        chosen = is_idle ? slot : chosen;
    }
    return chosen;
}

void cca_cuda_streams_note(struct cca_cuda_streams *streams, cca_stream_id id, CUstream stream)
{
    pthread_mutex_lock(&streams->lock);
    size_t slot = find(streams, id);
    if (slot == CCA_CUDA_STREAMS_MAX) {
        slot = choose(streams, id);
    }
    if (slot != CCA_CUDA_STREAMS_MAX) {
        streams->slots[slot].id = id;
        streams->slots[slot].stream = stream;
    }
    pthread_mutex_unlock(&streams->lock);
}

void cca_cuda_streams_forget(struct cca_cuda_streams *streams, cca_stream_id id)
{
    enum { PAUSE_US = 20 };
    pthread_mutex_lock(&streams->lock);
    size_t slot = find(streams, id);
    if (slot != CCA_CUDA_STREAMS_MAX) {
        streams->slots[slot].is_ending = true;
        while (streams->slots[slot].users != 0) {
            pthread_mutex_unlock(&streams->lock);
            cca_clock_sleep_us(PAUSE_US);
            pthread_mutex_lock(&streams->lock);
        }
        streams->slots[slot].id = 0;
        streams->slots[slot].is_ending = false;
    }
    pthread_mutex_unlock(&streams->lock);
}

CUstream cca_cuda_streams_hold(struct cca_cuda_streams *streams, cca_stream_id id)
{
    CUstream found = NULL;
    pthread_mutex_lock(&streams->lock);
    size_t slot = find(streams, id);
    if (slot != CCA_CUDA_STREAMS_MAX && !streams->slots[slot].is_ending) {
        found = streams->slots[slot].stream;
        streams->slots[slot].users++;
    }
    pthread_mutex_unlock(&streams->lock);
    return found;
}

void cca_cuda_streams_release(struct cca_cuda_streams *streams, cca_stream_id id)
{
    pthread_mutex_lock(&streams->lock);
    streams->slots[find(streams, id)].users--;
    pthread_mutex_unlock(&streams->lock);
}

static struct cca_status unsupported(CUresult result)
{
    return (struct cca_status){CCA_UNSUPPORTED, (int)result};
}

struct cca_status cca_cuda_record_on_stream(struct cca_cuda_streams *streams,
                                            const struct cca_cuda_table *table,
                                            cca_device_event event, cca_stream_id id)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (table->event_record == NULL || table->stream_is_capturing == NULL) {
        return unsupported(CUDA_SUCCESS);
    }
    CUstream stream = cca_cuda_streams_hold(streams, id);
    if (stream == NULL) {
        return unsupported(CUDA_SUCCESS);
    }
    /* A capture that nobody told of would take the event into its graph. */
    CUresult result = table->stream_is_capturing(stream, &status);
    if (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) {
        cca_cuda_streams_release(streams, id);
        return unsupported(CUDA_SUCCESS);
    }
    if (result == CUDA_SUCCESS) {
        result = table->event_record((CUevent)(uintptr_t)event, stream);
    }
    cca_cuda_streams_release(streams, id);
    return cca_cuda_status((int)result);
}

struct cca_status cca_cuda_capture_info(struct cca_cuda_streams *streams,
                                        const struct cca_cuda_table *table, cca_stream_id id,
                                        struct cca_capture_info *info_out)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    struct cca_capture_info info = {0};
    const CUgraphNode *nodes = NULL;
    CUgraph graph = NULL;
    cuuint64_t capture = 0;
    CUstream stream = table->stream_get_capture_info == NULL ? NULL
                                                             : cca_cuda_streams_hold(streams, id);
    if (stream == NULL) {
        return unsupported(CUDA_SUCCESS);
    }
    CUresult result = table->stream_get_capture_info(stream, &status, &capture, &graph, &nodes,
                                                     &info.terminal_count);
    if (result != CUDA_SUCCESS) {
        cca_cuda_streams_release(streams, id);
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
    cca_cuda_streams_release(streams, id); /* the nodes are the stream's */
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
