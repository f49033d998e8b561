/* SPDX-License-Identifier: MIT */
#include "preload/devices.h"

#include <stddef.h>

#include "preload/context.h"
#include "preload/original.h"

#include "device/cuda_table.h"

int cca_device_of_context(void *context)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUdevice device = -1;
    CUcontext unused;
    if (table == NULL || table->ctx_push(context) != CUDA_SUCCESS) {
        return -1;
    }
    if (table->ctx_get_device(&device) != CUDA_SUCCESS) {
        device = -1;
    }
    (void)table->ctx_pop(&unused);
    return device;
}

int cca_device_of_default_pool(void *pool)
{
    const struct cca_cuda_table *table = cca_original_table();
    if (table == NULL || table->device_get_default_pool == NULL || pool == NULL) {
        return -1;
    }
    for (int device = 0; device < CCA_DEVICES_MAX; device++) {
        CUmemoryPool found = NULL;
        if (table->device_get_default_pool(&found, device) != CUDA_SUCCESS) {
            break;
        }
        if (found == pool) {
            return device;
        }
    }
    return -1;
}

struct cca_heap *cca_device_heap(int device)
{
    const void *context = device >= 0 ? cca_context_primary(device) : NULL;
    return context != NULL ? cca_context_known_heap(context) : NULL;
}

/* The references stay: the context must live as long as the memory that was opened to it. */
void cca_device_open_peer(int device, int owner)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUcontext from = NULL, to = NULL, unused;
    if (table == NULL || table->ctx_enable_peer_access == NULL ||
        table->primary_retain(&from, device) != CUDA_SUCCESS ||
        table->primary_retain(&to, owner) != CUDA_SUCCESS) {
        return;
    }
    if (table->ctx_push(from) == CUDA_SUCCESS) {
        (void)table->ctx_enable_peer_access(to, 0);
        (void)table->ctx_pop(&unused);
    }
}
