/* SPDX-License-Identifier: MIT */
/* libcudart.so.12 by its names and shapes of that release, through hand-made registration records.
 * Compilers of that release launch through cudaLaunchKernel. */
#include "check.h"
#include "release.h"

#include <string.h>

static int count_bytes(const unsigned char *bytes, size_t size, unsigned char value)
{
    int count = 0;

    for (size_t i = 0; i < size; i++) {
        count += bytes[i] == value;
    }
    return count;
}

static void it_names_its_release(void)
{
    int version = 0;

    OK(F("cudaRuntimeGetVersion", int *)(&version));
    CHECK_EQ(version, 12080);
    CHECK(!release_has("__cudaLaunchKernel"));
    CHECK(!release_has("cudaGetDeviceProperties"));
}

static void properties_have_their_old_shape(void)
{
    unsigned char room[2048];
    int value;

    memset(room, 0xee, sizeof(room));
    OK(F("cudaGetDeviceProperties_v2", void *, int)(room, 0));
    CHECK(strcmp((char *)room, "Simulated GPU 0") == 0);
    /* 1032 bytes in 12.x; warpSize lies at 308 and major at 360. */
    CHECK_EQ(count_bytes(room + 1032, sizeof(room) - 1032, 0xee), sizeof(room) - 1032);
    memcpy(&value, room + 308, sizeof(value));
    CHECK_EQ(value, 32);
    memcpy(&value, room + 360, sizeof(value));
    CHECK_EQ(value, 8);
}

static void older_shapes_work(void)
{
    void *stream = NULL;
    void *p = NULL;
    void *graph = NULL;
    int status = 7;
    unsigned long long id = 0;
    size_t count = 7;

    OK(F("cudaMallocManaged", void **, size_t, unsigned)(&p, 4096, 1));
    OK(F("cudaMemAdvise", void *, size_t, int, int)(p, 4096, 1, 0));
    OK(F("cudaMemPrefetchAsync", void *, size_t, int, void *)(p, 4096, 0, NULL));
    OK(F("cudaStreamCreate", void **)(&stream));
    OK(F("cudaStreamBeginCapture", void *, int)(stream, 2));
    OK(F("cudaStreamGetCaptureInfo", void *, int *, unsigned long long *)(stream, &status, &id));
    CHECK_EQ(status, 1);
    CHECK(id != 0);
    OK(F("cudaStreamGetCaptureInfo_v2", void *, int *, unsigned long long *, void **, void *,
         size_t *)(stream, &status, &id, &graph, NULL, &count));
    CHECK_EQ(count, 0);
    OK(F("cudaStreamEndCapture", void *, void **)(stream, &graph));
    OK(F("cudaGraphGetEdges", void *, void *, void *, size_t *)(graph, NULL, NULL, &count));
    CHECK_EQ(count, 0);
    void *nodes[2] = {NULL, NULL};
    OK(F("cudaGraphAddEmptyNode", void **, void *, void *, size_t)(&nodes[0], graph, NULL, 0));
    OK(F("cudaGraphAddEmptyNode", void **, void *, void *, size_t)(&nodes[1], graph, NULL, 0));
    OK(F("cudaGraphAddDependencies", void *, void **, void **, size_t)(graph, &nodes[0], &nodes[1],
                                                                       1));
    OK(F("cudaGraphGetEdges_v2", void *, void *, void *, void *, size_t *)(graph, NULL, NULL, NULL,
                                                                           &count));
    CHECK_EQ(count, 1);
    OK(F("cudaGraphNodeGetDependentNodes", void *, void *, size_t *)(nodes[0], NULL, &count));
    CHECK_EQ(count, 1);
    OK(F("cudaGraphRemoveDependencies", void *, void **, void **, size_t)(graph, &nodes[0],
                                                                          &nodes[1], 1));
    OK(F("cudaGraphNodeGetDependentNodes_v2", void *, void *, void *, size_t *)(nodes[0], NULL,
                                                                                NULL, &count));
    CHECK_EQ(count, 0);
}

static void an_older_driver_is_refused(void)
{
    int count = 5;

    CHECK_EQ(F("cudaGetDeviceCount", int *)(&count), 35);
}

const char *const release_soname = "libcudart.so.12";

static const struct check_case cases[] = {
    {"it_names_its_release", it_names_its_release, NULL, 0},
    {"properties_have_their_old_shape", properties_have_their_old_shape, NULL, 0},
    {"kernels_launch", release_launch, NULL, 0},
    {"older_shapes_work", older_shapes_work, NULL, 0},
    {"it_runs_over_an_older_driver", older_shapes_work, "SIMCUDA_DRIVER=12.4", 0},
    {"an_older_driver_is_refused", an_older_driver_is_refused, "SIMCUDA_DRIVER=11.8", 0},
};

CHECK_MAIN(cases)
