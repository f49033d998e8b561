/* SPDX-License-Identifier: MIT */
/* What calls that share memory must know of devices. No CUDA header is needed here. */
#ifndef CCA_PRELOAD_DEVICES_H
#define CCA_PRELOAD_DEVICES_H

struct cca_heap;

/* The device of a context, or -1. */
int cca_device_of_context(void *context);

/* The device whose default memory pool this is, or -1. */
int cca_device_of_default_pool(void *pool);

/* The heap of a device's primary context, or NULL. */
struct cca_heap *cca_device_heap(int device);

/* Lets the primary context of one device reach the memory of another's; both come up by it. What
 * cannot be done, or is done already, is left. */
void cca_device_open_peer(int device, int owner);

#endif
