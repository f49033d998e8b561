/* SPDX-License-Identifier: MIT */
#include "preload/devices.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/context.h"
#include "preload/original.h"

#include "device/cuda_table.h"

/* [i] the devices that device i reaches by us, while the program has not enabled it itself; and by
 * us at all. */
static _Atomic uint64_t hidden_peers[CCA_DEVICES_MAX], opened_peers[CCA_DEVICES_MAX];

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
    struct cca_allocator *allocator = cca_process_allocator();
    return allocator != NULL ? cca_allocator_some_heap_of_device(allocator, device) : NULL;
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
        if (table->ctx_enable_peer_access(to, 0) == CUDA_SUCCESS) {
            atomic_fetch_or(&opened_peers[device], UINT64_C(1) << owner);
            atomic_fetch_or(&hidden_peers[device], UINT64_C(1) << owner);
        }
        (void)table->ctx_pop(&unused);
    }
}

/* The current device and that of `context`, when both contexts are primary ones. */
static bool has_pair(const void *context, int *device_out, uint64_t *bit_out)
{
    const struct cca_cuda_table *table = cca_original_table();
    CUcontext current = NULL;
    int device = cca_context_driver_device(), other = cca_device_of_context((void *)context);
    if (device < 0 || device >= CCA_DEVICES_MAX || other < 0 || other >= CCA_DEVICES_MAX ||
        table->ctx_get_current(&current) != CUDA_SUCCESS ||
        current != cca_context_primary(device) || context != cca_context_primary(other)) {
        return false;
    }
    *device_out = device;
    *bit_out = UINT64_C(1) << other;
    return true;
}

bool cca_device_show_peer(const void *context)
{
    int device;
    uint64_t bit;
    return has_pair(context, &device, &bit) &&
           (atomic_fetch_and(&hidden_peers[device], ~bit) & bit) != 0;
}

void cca_device_forget_peer(const void *context)
{
    int device;
    uint64_t bit;
    if (has_pair(context, &device, &bit)) {
        atomic_fetch_and(&opened_peers[device], ~bit);
        atomic_fetch_and(&hidden_peers[device], ~bit);
    }
}

int cca_device_hide_peer(const void *context)
{
    const struct cca_cuda_table *table = cca_original_table();
    int device;
    uint64_t bit;
    if (!has_pair(context, &device, &bit) || (atomic_load(&opened_peers[device]) & bit) == 0) {
        return -1;
    }
    /* Success: a reset of the context had closed it, which only the driver knows. */
    CUresult result = table->ctx_enable_peer_access((CUcontext)context, 0);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
        return -1;
    }
    bool was_hidden = (atomic_fetch_or(&hidden_peers[device], bit) & bit) != 0;
    return was_hidden || result == CUDA_SUCCESS ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_SUCCESS;
}
