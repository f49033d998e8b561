/* SPDX-License-Identifier: MIT */
/* Virtual memory management: addresses of our own with device memory behind them page by page. The
 * mapping operations of struct cca_device_ops for a context; `self` is a struct cca_cuda_context.
 */
#ifndef CCA_DEVICE_CUDA_MAPPING_H
#define CCA_DEVICE_CUDA_MAPPING_H

#include "device/cuda_device.h"

/* What pages must be multiples of; 0 where the driver or the device cannot map memory. */
size_t cca_cuda_map_granularity(const struct cca_cuda_context *context);

struct cca_status cca_cuda_address_reserve(void *self, size_t bytes, uint64_t *addr_out);
struct cca_status cca_cuda_address_free(void *self, uint64_t addr, size_t bytes);
struct cca_status cca_cuda_map(void *self, uint64_t addr, size_t page_bytes, size_t pages,
                               uint64_t peers);
struct cca_status cca_cuda_unmap(void *self, uint64_t addr, size_t page_bytes, size_t pages);
struct cca_status cca_cuda_allow_access(void *self, uint64_t addr, size_t page_bytes, size_t pages,
                                        int accessor);

#endif
