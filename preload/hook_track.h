/* SPDX-License-Identifier: MIT */
/* The structures that rows of hooks.def name, as far as they are read. No CUDA header is needed
 * here. */
#ifndef CCA_PRELOAD_HOOK_TRACK_H
#define CCA_PRELOAD_HOOK_TRACK_H

#include <stddef.h>

/* CUDA_ARRAY_DESCRIPTOR_v2 */
struct cca_array_shape {
    size_t width, height;
    int format;
    unsigned channels;
};

/* CUDA_ARRAY3D_DESCRIPTOR_v2 */
struct cca_array3d_shape {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

/* The beginning of CUmemAllocationProp_v1, and of CUmemPoolProps_v1. */
struct cca_physical_shape {
    int type, handle_types;
    int location_type, location; /* 1: a device's ordinal */
};

#endif
