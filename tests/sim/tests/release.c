/* SPDX-License-Identifier: MIT */
#include "release.h"

#include "check.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

static void *find(const char *name)
{
    static void *library;

    if (library == NULL) {
        library = dlopen(release_soname, RTLD_NOW);
        CHECK(library != NULL);
    }
    return dlvsym(library, name, release_soname);
}

bool release_has(const char *name)
{
    return find(name) != NULL;
}

release_function release_find(const char *name)
{
    union {
        void *object;
        release_function function;
    } either = {find(name)};

    if (either.object == NULL) {
        fprintf(stderr, "no %s\n", name);
    }
    CHECK(either.object != NULL);
    return either.function;
}

static const struct {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t size_bytes;
} fatbin = {0xba55ed50u, 1, 16, 0};

static struct {
    int magic;
    int version;
    const void *data;
    void *more;
} wrapper = {0x466243b1, 1, &fatbin, NULL};

void release_launch(void)
{
    static const char name[] = "sim_fill";
    void **(*register_code)(void *) = (void **(*)(void *))release_find("__cudaRegisterFatBinary");
    void (*launchable)(void **, const char *, char *, const char *, int, void *, void *, void *,
                       void *, int *) = (void (*)(void **, const char *, char *, const char *, int,
                                                  void *, void *, void *, void *,
                                                  int *))release_find("__cudaRegisterFunction");
    struct {
        unsigned x, y, z;
    } one = {1, 1, 1};
    int (*launch)(const void *, __typeof__(one), __typeof__(one), void **, size_t,
                  void *) = (int (*)(const void *, __typeof__(one), __typeof__(one), void **,
                                     size_t, void *))release_find("cudaLaunchKernel");
    void *p = NULL;
    size_t bytes = 64;
    int value = 5;
    unsigned char host[64] = {0};
    void *arguments[] = {&p, &bytes, &value};

    void **handle = register_code(&wrapper);
    launchable(handle, name, (char *)name, name, -1, NULL, NULL, NULL, NULL, NULL);
    F("__cudaRegisterFatBinaryEnd", void **)(handle);
    OK(F("cudaMalloc", void **, size_t)(&p, bytes));
    OK(launch(name, one, one, arguments, 0, NULL));
    OK(F("cudaMemcpy", void *, const void *, size_t, int)(host, p, bytes, 2));
    CHECK_EQ(host[63], 5);
    OK(F("cudaFree", void *)(p));
}
