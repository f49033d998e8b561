/* SPDX-License-Identifier: MIT */
/* What calls that share memory must know of devices. No CUDA header is needed here. */
#ifndef CCA_PRELOAD_DEVICES_H
#define CCA_PRELOAD_DEVICES_H

#include <stdbool.h>

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

/* What was opened so is hidden from the program, which may enable and disable the same access for
 * itself. These are about the current context and `context`, inside a hook's enter and leave. */

/* The driver says that access is enabled already: whether only we had enabled it. Then from now on
 * the program has, too. */
bool cca_device_show_peer(const void *context);

/* The driver has enabled it for the program: it is not ours any more. */
void cca_device_forget_peer(const void *context);

/* The program disables it: what the program is answered, while the access stays; -1 when it is not
 * ours, and the call is the driver's. */
int cca_device_hide_peer(const void *context);

#endif
