/* SPDX-License-Identifier: MIT */
/* Look-up routes, error codes, addresses, streams' numbers, and the time of allocations. */
#include "probe.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Do dlsym and the resolver give the same address for one function? */
void probe_lookup(void)
{
    static const struct {
        const char *name;
        const char *form;
        int version;
        cuuint64_t flags;
    } rows[] = {
#define ASK(name, version, flags, form) {#name, #form, version, flags},
#include "asked.def"
#undef ASK
    };
    unsigned equal = 0;
    unsigned differing = 0;
    unsigned missing = 0;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        CUdriverProcAddressQueryResult status;
        void *resolved = NULL;
        void *exported = dlsym(driver, rows[i].form);
        CUresult result = cuGetProcAddress(rows[i].name, &resolved, rows[i].version, rows[i].flags,
                                           &status);
        if (result != CUDA_SUCCESS || resolved == NULL || exported == NULL) {
            missing++;
        } else if (resolved == exported) {
            equal++;
        } else {
            differing++;
            printf("differs.%s_%d_%d \"%s\"\n", rows[i].name, rows[i].version, (int)rows[i].flags,
                   rows[i].form);
        }
    }
    printf("equal %u\ndiffering %u\nmissing %u\n", equal, differing, missing);
}

static void code(const char *name, int result)
{
    printf("%s %d\n", name, result);
    cudaGetLastError();
}

/* Codes that programs, and calls that are made to fail, meet. */
void probe_errors(void)
{
    cudaStream_t stream;
    char *p;
    void *q;

    MUST(cudaStreamCreate(&stream));
    code("malloc_too_much", cudaMalloc(&q, SIZE_MAX / 2));
    code("malloc_nothing", cudaMalloc(&q, 0));
    code("malloc_nowhere", cudaMalloc(NULL, 1));
    code("free_no_pointer", cudaFree((void *)1));
    MUST(cudaMalloc((void **)&p, 4096));
    code("free_inside", cudaFree(p + 256));
    code("free", cudaFree(p));
    code("free_twice", cudaFree(p));
    MUST(cudaMalloc((void **)&p, 4096));
    code("free_async_of_malloc", cudaFreeAsync(p, stream));
    code("synchronize_after_it", cudaStreamSynchronize(stream));
    MUST(cudaMallocAsync((void **)&p, 4096, stream));
    code("free_of_malloc_async", cudaFree(p));
    MUST(spin(20000, stream));
    code("query_busy", cudaStreamQuery(stream));
    MUST(spin(20000, stream));
    cudaStreamQuery(stream);
    code("last_error_after_query", cudaGetLastError());
    MUST(cudaStreamSynchronize(stream));
    code("last_error_at_the_end", cudaGetLastError());
}

static size_t available(void)
{
    size_t total;
    size_t bytes;

    MUST(cudaMemGetInfo(&bytes, &total));
    return bytes;
}

/* Rounding of free memory, addresses that come again, the default pool's threshold. */
void probe_memory(void)
{
    static const size_t sizes[] = {1, 4096, 1 << 20, (1 << 20) + 1, 2 << 20, (2 << 20) + 1};
    cudaMemPool_t pool;
    cuuint64_t threshold;
    cudaStream_t stream;
    void *p;
    void *q;

    MUST(cudaStreamCreate(&stream));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t before = available();
        MUST(cudaMalloc(&p, sizes[i]));
        printf("taken_for_%zu %lld\n", sizes[i], (long long)before - (long long)available());
    }
    MUST(cudaMalloc(&p, 8 << 20));
    MUST(cudaFree(p));
    MUST(cudaMalloc(&q, 8 << 20));
    printf("address_comes_again %s\n", word(p == q));
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    MUST(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    printf("pool_threshold %llu\n", (unsigned long long)threshold);
    size_t before = available();
    MUST(cudaMallocAsync(&p, 64 << 20, stream));
    MUST(cudaStreamSynchronize(stream));
    printf("pool_takes %lld\n", (long long)before - (long long)available());
    MUST(cudaFreeAsync(p, stream));
    MUST(cudaStreamSynchronize(stream));
    printf("pool_keeps_after_synchronize %lld\n", (long long)before - (long long)available());
}

static void *print_per_thread_id(void *label)
{
    unsigned long long id = 0;

    MUST(cudaSetDevice(0));
    int result = cuStreamGetId(CU_STREAM_PER_THREAD, &id);
    printf("%s %llu\n", (char *)label, result == 0 ? id : 0);
    return NULL;
}

void probe_streams(void)
{
    char here[] = "per_thread_id";
    char there[] = "per_thread_id_of_another";
    unsigned long long ids[2] = {0};
    unsigned long long first = 0;
    unsigned long long second = 0;
    pthread_t thread;
    cudaStream_t stream;
    cudaStream_t again;
    int result = cuStreamGetId(NULL, &ids[0]);

    if (result != 0) {
        printf("error %d\n", result);
        return;
    }
    MUST(cuStreamGetId(CU_STREAM_LEGACY, &ids[1]));
    printf("null_id %llu\nlegacy_id %llu\n", ids[0], ids[1]);
    print_per_thread_id(here);
    MUST(pthread_create(&thread, NULL, print_per_thread_id, there));
    pthread_join(thread, NULL);
    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamGetId(stream, &first));
    MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamCreate(&again));
    MUST(cudaStreamGetId(again, &second));
    printf("handle_comes_again %s\nid_comes_again %s\n", word(stream == again),
           word(first == second));
}

static void pair(int is_async, size_t bytes, cudaStream_t stream)
{
    void *p;

    if (is_async) {
        MUST(cudaMallocAsync(&p, bytes, stream));
        MUST(cudaFreeAsync(p, stream));
    } else {
        MUST(cudaMalloc(&p, bytes));
        MUST(cudaFree(p));
    }
}

void probe_pairs(const char *kind, unsigned count, size_t bytes)
{
    int is_async = strcmp(kind, "async") == 0;
    cudaStream_t stream;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    pair(is_async, bytes, stream);
    long long start = now_ns();
    for (unsigned i = 0; i < count; i++) {
        pair(is_async, bytes, stream);
    }
    printf("ns_per_pair %lld\n", (now_ns() - start) / count);
}
