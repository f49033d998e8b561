/* SPDX-License-Identifier: MIT */
/* Another library with names of the driver, for programs that link those: calls go on to the next
 * definition, which a driver that came with dlopen is not. A runtime, which finds the driver's
 * functions by its handle, never meets it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

int cuMemAlloc_v2(uint64_t *addr, size_t bytes);
int cuMemAllocAsync(uint64_t *addr, size_t bytes, void *stream);

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    return found != NULL ? found : (abort(), NULL);
}

__attribute__((visibility("default"))) int cuMemAlloc_v2(uint64_t *addr, size_t bytes)
{
    return ((int (*)(uint64_t *, size_t))next("cuMemAlloc_v2"))(addr, bytes);
}

__attribute__((visibility("default"))) int cuMemAllocAsync(uint64_t *addr, size_t bytes,
                                                           void *stream)
{
    return ((int (*)(uint64_t *, size_t, void *))next("cuMemAllocAsync"))(addr, bytes, stream);
}
