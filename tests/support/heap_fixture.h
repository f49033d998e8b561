/* SPDX-License-Identifier: MIT */
/* A ready allocator over scripted devices, and the few calls tests make on it. */
#ifndef CCA_TEST_HEAP_FIXTURE_H
#define CCA_TEST_HEAP_FIXTURE_H

#include "alloc/allocator_internal.h"
#include "support/scripted_device.h"
#include "support/test.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)
#define GIB(n) ((size_t)(n) << 30)

enum { FIXTURE_DEVICES_MAX = 8 };

struct fixture {
    struct cca_config config;
    struct cca_allocator *allocator;
    struct scripted_device *scripts[FIXTURE_DEVICES_MAX];
    struct cca_heap *heaps[FIXTURE_DEVICES_MAX];
};

/* Starts from the defaults with `verify` on; `devices` is 1 to 8. */
void fixture_open(struct fixture *fix, int devices);
/* The same, after `set` has changed the settings. */
void fixture_open_with(struct fixture *fix, int devices, void (*set)(struct cca_config *config));
void fixture_close(struct fixture *fix);

/* As cudaMalloc and cudaFree on device 0; 0 when out of memory. */
uint64_t fix_malloc(struct fixture *fix, size_t bytes);
void fix_free(struct fixture *fix, uint64_t addr);
/* As the asynchronous pair. */
uint64_t fix_malloc_async(struct fixture *fix, size_t bytes, cca_key stream);
void fix_free_async(struct fixture *fix, uint64_t addr, cca_key stream);
enum cca_free_result fix_try_free(struct fixture *fix, uint64_t addr);

/* One statistic of device 0 by its flat key; fails the test when there is none of that name. */
int64_t fix_stat(struct fixture *fix, const char *key);
void fix_verify(struct fixture *fix);

#endif
