/* SPDX-License-Identifier: MIT */
/* A table of fake driver functions: a stack of current contexts, a capture mode, and the n-th call
 * failing on demand. One instance; fake_driver_reset starts over. */
#ifndef CCA_TEST_FAKE_DRIVER_H
#define CCA_TEST_FAKE_DRIVER_H

#include "device/cuda_table.h"

#define FAKE_CTX(n)   ((CUcontext)(uintptr_t)(0x1000 + (n)))
#define FAKE_EVENT(n) ((CUevent)(uintptr_t)(0x2000 + (n)))

enum { FAKE_STACK_MAX = 8, FAKE_NAME_MAX = 64, FAKE_PAGE = 2 << 20 };

enum { FAKE_NODES_MAX = 300 };

struct fake_driver {
    int version;
    CUcontext stack[FAKE_STACK_MAX]; /* current contexts, the last one on top */
    int depth;
    CUstreamCaptureMode mode;
    int calls;      /* of any function */
    int fail_at;    /* the call of this number fails; 0 = none */
    CUcontext lost; /* calls that act under this context fail */
    CUresult error; /* with this */
    int integrated_device;
    const char *lacks;  /* exported name that look-ups do not find */
    const char *denies; /* base name that the resolver does not know */
    uint64_t denies_flags;
    CUcontext primary; /* of device `device` */
    int device, is_active, references;

    /* What the last call of the function under test met. */
    char called[FAKE_NAME_MAX];
    CUcontext current_then, recorded_ctx;
    CUstreamCaptureMode mode_then;
    unsigned event_flags;
    CUresult answer; /* of event_query */
    CUstream recorded_stream;

    /* Of the stream's capture, and what a node depends on. */
    CUstreamCaptureStatus capture_status;
    CUgraphNode nodes[FAKE_NODES_MAX];
    size_t node_count;
    /* Mapped memory. */
    int cannot_map;           /* what the device says of itself */
    int handles, pages;       /* created and not released; mapped and not unmapped */
    uint64_t devices_allowed; /* by the last calls, one bit each */
};

extern struct fake_driver fake;

void fake_driver_reset(void);

/* As cca_cuda_look_up_fn. */
void *fake_driver_look_up(void *user, const char *name);

/* A filled table; fails the test when it cannot be. */
const struct cca_cuda_table *fake_driver_table(void);

#endif
