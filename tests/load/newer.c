/* SPDX-License-Identifier: MIT */
/* With DRIVER: stands for a driver of a release to come, whose newest forms of two functions, and
 * one function, are not known yet. Without: a program that asks for them by the resolver and by
 * name. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NEWER = 14000 };

#ifdef DRIVER

int cuMemAlloc_v2(uint64_t *addr, size_t bytes);
int cuMemAlloc_v3(uint64_t *addr, size_t bytes, int more);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCapture_v3(void *stream, int mode, int more);
int cuStreamBeginOtherCapture(void *stream, int mode, int more);
int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status);

int cuStreamBeginOtherCapture(void *stream, int mode, int more)
{
    return stream != NULL ? mode : more;
}

int cuMemAlloc_v2(uint64_t *addr, size_t bytes)
{
    *addr = bytes;
    return 102;
}

int cuMemAlloc_v3(uint64_t *addr, size_t bytes, int more)
{
    *addr = bytes;
    return more;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
    return stream != NULL ? mode : 202;
}

int cuStreamBeginCapture_v3(void *stream, int mode, int more)
{
    return stream != NULL ? mode : more;
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
    int is_newer = version >= NEWER;
    *status = (int)flags;
    *found = NULL;
    if (strcmp(name, "cuMemAlloc") == 0) {
        *found = is_newer ? (void *)cuMemAlloc_v3 : (void *)cuMemAlloc_v2;
    } else if (strcmp(name, "cuStreamBeginCapture") == 0) {
        *found = is_newer ? (void *)cuStreamBeginCapture_v3 : (void *)cuStreamBeginCapture_v2;
    } else if (strcmp(name, "cuStreamBeginOtherCapture") == 0) {
        *found = (void *)cuStreamBeginOtherCapture;
    }
    return 0;
}

#else

int main(int argc, char **argv)
{
    int (*resolver)(const char *, void **, int, uint64_t, int *), (*call)(void *, uintptr_t, int);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;
    uint64_t addr = 0;
    int status = 0;
    const char *name = argc > 1 ? argv[1] : "cuMemAlloc";
    if (driver == NULL || (found = dlsym(driver, "cuGetProcAddress_v2")) == NULL) {
        return 1;
    }
    memcpy(&resolver, &found, sizeof(resolver));
    printf("known %d\n", resolver(name, &found, 13000, 0, &status));
    for (int i = 0; i < 3; i++) {
        printf("newer %d", resolver(name, &found, NEWER, 0, &status));
        memcpy(&call, &found, sizeof(call));
        printf(" %d\n", call(&addr, 0, 77));
    }
    found = dlsym(driver, "cuMemAlloc_v3");
    memcpy(&call, &found, sizeof(call));
    printf("by name %d\n", call(&addr, 0, 78));
    return 0;
}

#endif
