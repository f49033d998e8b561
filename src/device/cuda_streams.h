/* SPDX-License-Identifier: MIT */
/* Created streams by the key that the allocator knows them by, and what can be asked of one while
 * it is captured. A stream that is not noted, or no longer, is simply not reached. Thread-safe; one
 * lock, held for moments and over no call. */
#ifndef CCA_DEVICE_CUDA_STREAMS_H
#define CCA_DEVICE_CUDA_STREAMS_H

#include <pthread.h>

#include "device/cuda_table.h"
#include "device/device.h"

enum { CCA_CUDA_STREAMS_MAX = 1024 };

/* Zero-initialised. */
struct cca_cuda_streams {
    pthread_mutex_t lock;
    struct {
        cca_stream_id id; /* 0 = empty */
        CUstream stream;
        unsigned users; /* calls under way that name it */
        bool is_ending;
    } slots[CCA_CUDA_STREAMS_MAX];
};

/* The stream has this key, which is not 0, until it is forgotten. Where the table is full around
 * its place another stream, which nobody holds, is forgotten for it. */
void cca_cuda_streams_note(struct cca_cuda_streams *streams, cca_stream_id id, CUstream stream);

/* The stream is about to be destroyed: from now on nobody can hold it, and nobody does on return.
 */
void cca_cuda_streams_forget(struct cca_cuda_streams *streams, cca_stream_id id);

/* The stream, which is not destroyed before release; NULL: not known. For the length of one call
 * that does not wait. */
CUstream cca_cuda_streams_hold(struct cca_cuda_streams *streams, cca_stream_id id);
void cca_cuda_streams_release(struct cca_cuda_streams *streams, cca_stream_id id);

/* As struct cca_device_ops says: only on a stream that is known and not being captured. */
struct cca_status cca_cuda_record_on_stream(struct cca_cuda_streams *streams,
                                            const struct cca_cuda_table *table,
                                            cca_device_event event, cca_stream_id id);

/* As struct cca_device_ops says; any trouble is CCA_UNSUPPORTED, nothing depends on the answer but
 * how early memory is used again. */
struct cca_status cca_cuda_capture_info(struct cca_cuda_streams *streams,
                                        const struct cca_cuda_table *table, cca_stream_id id,
                                        struct cca_capture_info *info_out);
struct cca_status cca_cuda_node_dependencies(const struct cca_cuda_table *table, uint64_t node,
                                             uint64_t *nodes_out, size_t max, size_t *count_out);

#endif
