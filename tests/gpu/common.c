/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include <stdlib.h>
#include <time.h>

void must(int result, const char *text, const char *file, int line)
{
    if (result != 0) {
        fprintf(stderr, "%s:%d: %s: error %d\n", file, line, text, result);
        exit(1);
    }
}

long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

int is_busy(cudaStream_t stream)
{
    cudaError_t result = cudaStreamQuery(stream);

    if (result == cudaErrorNotReady) {
        cudaGetLastError();
        return 1;
    }
    MUST(result);
    return 0;
}

static int compare(const void *a, const void *b)
{
    long long one = *(const long long *)a;
    long long other = *(const long long *)b;

    return (one > other) - (one < other);
}

long long median(long long *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

const char *word(int condition)
{
    return condition ? "true" : "false";
}
