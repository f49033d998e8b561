/* SPDX-License-Identifier: MIT */
/* libcudart.so.11.0, in the two ways in which the releases that had this name find the driver. */
#include "check.h"
#include "release.h"
#include "sim.h"

#include <dlfcn.h>
#include <string.h>

const char *const release_soname = "libcudart.so.11.0";

/* A sanitizer starts through dlsym itself, before anything of ours may run. */
#ifndef SANITIZED
static unsigned driver_names;
static unsigned resolver_names;

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name);

/* Found before the C library's by all objects of the process. */
void *dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);

    if (real == NULL) {
        static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
        for (unsigned i = 0; i < 3 && real == NULL; i++) {
            *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        }
    }
    driver_names += strncmp(name, "cu", 2) == 0;
    resolver_names += strncmp(name, "cuGetProcAddress", 16) == 0;
    return real(handle, name);
}
#endif

static void check_names(unsigned least, unsigned most, unsigned resolvers)
{
#ifdef SANITIZED
    (void)least;
    (void)most;
    (void)resolvers;
#else
    CHECK(driver_names >= least && driver_names <= most);
    CHECK_EQ(resolver_names, resolvers);
#endif
}

static void use(void)
{
    char here[64];
    void *p = NULL;
    void *stream = NULL;

    OK(F("cudaMalloc", void **, size_t)(&p, sizeof(here)));
    OK(F("cudaMemset", void *, int, size_t)(p, 3, sizeof(here)));
    OK(F("cudaMemcpy", void *, const void *, size_t, int)(here, p, sizeof(here), 2));
    CHECK_EQ(here[63], 3);
    OK(F("cudaFree", void *)(p));
    OK(F("cudaStreamCreate", void **)(&stream));
    OK(F("cudaMallocAsync", void **, size_t, void *)(&p, 4096, stream));
    OK(F("cudaFreeAsync", void *, void *)(p, stream));
    OK(F("cudaStreamSynchronize", void *)(stream));
    OK(F("cudaDeviceSynchronize", void)());
    CHECK_EQ(F("cudaGetLastError", void)(), 0);
    CHECK_EQ(simcuda_live_blocks(0), 0);
}

static uint64_t look_ups(void)
{
    return simcuda_call_count("cuGetProcAddress");
}

static void one_by_one(void)
{
    int version = 0;

    use();
    OK(F("cudaRuntimeGetVersion", int *)(&version));
    CHECK_EQ(version, 11020);
    check_names(250, 500, 0);
    CHECK_EQ(look_ups() + simcuda_call_count("cuGetProcAddress_v2"), 0);
}

static void through_the_first_resolver(void)
{
    int version = 0;

    use();
    OK(F("cudaRuntimeGetVersion", int *)(&version));
    CHECK_EQ(version, 11080);
    check_names(1, 1, 1);
    CHECK(look_ups() > 300);
    CHECK_EQ(simcuda_call_count("cuGetProcAddress_v2"), 0);
}

static void a_driver_before_the_release_is_refused(void)
{
    int count = 5;

    CHECK_EQ(F("cudaGetDeviceCount", int *)(&count), 35);
}

static void names_of_later_releases_are_not_there(void)
{
    CHECK(!release_has("__cudaLaunchKernel"));
    CHECK(!release_has("cudaGetDeviceProperties_v2"));
    CHECK(!release_has("cudaStreamGetId"));
    CHECK(release_has("__cudaRegisterFunction"));
}

/* As an update of 11 is allowed to. */
static void an_early_driver_of_11_lacks_pools(void)
{
    void *p = NULL;

    OK(F("cudaMalloc", void **, size_t)(&p, 64));
    CHECK_EQ(F("cudaMallocAsync", void **, size_t, void *)(&p, 4096, NULL), 801);
}

static const struct check_case cases[] = {
    {"one_by_one", one_by_one, "SIMCUDART_RELEASE=11.2", 0},
    {"one_by_one_over_a_driver_of_its_time", one_by_one,
     "SIMCUDART_RELEASE=11.2 SIMCUDA_DRIVER=11.2", 0},
    {"through_the_first_resolver", through_the_first_resolver, NULL, 0},
    {"through_the_first_resolver_of_its_time", through_the_first_resolver, "SIMCUDA_DRIVER=11.8",
     0},
    {"kernels_launch", release_launch, NULL, 0},
    {"kernels_launch_one_by_one", release_launch, "SIMCUDART_RELEASE=11.2 SIMCUDA_DRIVER=11.2", 0},
    {"a_driver_before_the_release_is_refused", a_driver_before_the_release_is_refused,
     "SIMCUDA_DRIVER=10.2", 0},
    {"names_of_later_releases_are_not_there", names_of_later_releases_are_not_there, NULL, 0},
    {"an_early_driver_of_11_lacks_pools", an_early_driver_of_11_lacks_pools,
     "SIMCUDART_RELEASE=11.2 SIMCUDA_DRIVER=11.1", 0},
};

CHECK_MAIN(cases)
