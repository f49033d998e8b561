/* SPDX-License-Identifier: MIT */
/* libraries cublas|nccl: does a little work with a library, and prints the result. Exit status 77:
 * the library is not there. The few functions are found by name, so that no headers are needed. */
#include "probe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_THERE = 77, N = 256 };

static void *open_any(const char *const *names)
{
    void *library = NULL;

    for (; *names != NULL && library == NULL; names++) {
        library = dlopen(*names, RTLD_NOW);
    }
    if (library == NULL) {
        exit(NOT_THERE);
    }
    return library;
}

static void *find(void *library, const char *name)
{
    void *function = dlsym(library, name);

    if (function == NULL) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return function;
}

static float *ramp(size_t count)
{
    static float host[N * N];
    float *p;

    for (size_t i = 0; i < count; i++) {
        host[i] = (float)(i % 7);
    }
    MUST(cudaMalloc((void **)&p, count * sizeof(float)));
    MUST(cudaMemcpy(p, host, count * sizeof(float), cudaMemcpyHostToDevice));
    return p;
}

static void print_sum(const float *p, size_t count)
{
    static float host[N * N];
    double sum = 0;

    MUST(cudaMemcpy(host, p, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        sum += host[i];
    }
    printf("sum %.1f\n", sum);
}

static void multiply(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so", NULL};
    void *library = open_any(names);
    int (*create)(void **) = (int (*)(void **))find(library, "cublasCreate_v2");
    int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, const float *,
                 int, const float *, float *, int) =
        (int (*)(void *, int, int, int, int, int, const float *, const float *, int, const float *,
                 int, const float *, float *, int))find(library, "cublasSgemm_v2");
    int (*destroy)(void *) = (int (*)(void *))find(library, "cublasDestroy_v2");
    const float one = 1;
    const float zero = 0;
    void *handle;
    float *a = ramp(N * N);
    float *b = ramp(N * N);
    float *c = ramp(N * N);

    for (int round = 0; round < 10; round++) {
        MUST(create(&handle));
        MUST(sgemm(handle, 0, 0, N, N, N, &one, a, N, b, N, &zero, c, N));
        MUST(destroy(handle));
    }
    print_sum(c, N * N);
    MUST(cudaFree(a));
    MUST(cudaFree(b));
    MUST(cudaFree(c));
}

static void reduce(void)
{
    static const char *const names[] = {"libnccl.so.2", "libnccl.so", NULL};
    enum { FLOAT32 = 7, SUM = 0 };
    void *library = open_any(names);
    int (*init)(void **, int,
                const int *) = (int (*)(void **, int, const int *))find(library, "ncclCommInitAll");
    int (*all_reduce)(const void *, void *, size_t, int, int, void *,
                      cudaStream_t) = (int (*)(const void *, void *, size_t, int, int, void *,
                                               cudaStream_t))find(library, "ncclAllReduce");
    int (*destroy)(void *) = (int (*)(void *))find(library, "ncclCommDestroy");
    const int device = 0;
    cudaStream_t stream;
    void *communicator;
    float *from = ramp(N);
    float *to = ramp(N);

    MUST(cudaStreamCreate(&stream));
    MUST(init(&communicator, 1, &device));
    MUST(all_reduce(from, to, N, FLOAT32, SUM, communicator, stream));
    MUST(cudaStreamSynchronize(stream));
    print_sum(to, N);
    MUST(destroy(communicator));
    MUST(cudaFree(from));
    MUST(cudaFree(to));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "cublas") == 0) {
        multiply();
    } else if (argc == 2 && strcmp(argv[1], "nccl") == 0) {
        reduce();
    } else {
        fprintf(stderr, "libraries cublas|nccl\n");
        return 2;
    }
    return 0;
}
