/* SPDX-License-Identifier: MIT */
/* A program of the driver alone that makes its contexts itself: several on one device, current here
 * and there, destroyed while others work. Prints what its calls return and whether data are right;
 * the argument chooses the scene. */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOW(call) printf("%s -> %d\n", #call, (int)(call))
#define MUST(call)                                   \
    do {                                             \
        CUresult result_ = (call);                   \
        if (result_ != CUDA_SUCCESS) {               \
            printf("%s: %d\n", #call, (int)result_); \
            exit(3);                                 \
        }                                            \
    } while (0)

enum {
    ROUNDS = 100,
    BYTES = 300000,
    GENERATIONS = 8,
    LIVE = 20,
    HOARD = 40,
    MORE = 8,
    CONTEXTS = 300
};
#define MIB ((size_t)1 << 20)

/* The form that every driver has. */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);

static CUcontext make_context(void)
{
    CUcontext context = NULL;
    MUST(cuCtxCreate_v2(&context, 0, 0));
    return context;
}

static CUstream make_stream(void)
{
    CUstream stream = NULL;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* Waits for the current context. */
static void check(CUdeviceptr addr, unsigned char value)
{
    static unsigned char host[BYTES];
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(host, addr, BYTES));
    for (int i = 0; i < BYTES; i++) {
        if (host[i] != value) {
            printf("WRONG: %d instead of %d\n", host[i], value);
            exit(1);
        }
    }
}

/* Allocates, writes, reads and frees in the current context. */
static void use(CUstream stream, int rounds)
{
    CUdeviceptr addr = 0, async = 0;
    for (int i = 0; i < rounds; i++) {
        MUST(cuMemAlloc(&addr, BYTES));
        MUST(cuMemsetD8Async(addr, (unsigned char)i, BYTES, stream));
        MUST(cuMemAllocAsync(&async, BYTES, stream));
        MUST(cuMemcpyDtoDAsync(async, addr, BYTES, stream));
        MUST(cuMemFreeAsync(async, stream));
        MUST(cuStreamSynchronize(stream));
        if (i % 10 == 0) {
            unsigned char host = 0;
            MUST(cuMemcpyDtoH(&host, addr + BYTES - 1, 1));
            if (host != (unsigned char)i) {
                printf("WRONG: %d instead of %d\n", host, i);
                exit(1);
            }
        }
        MUST(cuMemFree(addr));
    }
}

/* The usual program: one context from start to end. */
static void one(void)
{
    CUcontext context = make_context();
    CUstream stream = make_stream();
    use(stream, ROUNDS);
    use(NULL, ROUNDS);
    use(CU_STREAM_PER_THREAD, ROUNDS);
    SHOW(cuStreamDestroy(stream));
    SHOW(cuCtxDestroy(context));
}

static void *work(void *context)
{
    MUST(cuCtxPushCurrent(context));
    CUstream stream = make_stream();
    use(stream, 4 * ROUNDS);
    MUST(cuStreamDestroy(stream));
    MUST(cuCtxPopCurrent(NULL));
    return NULL;
}

/* One context works while others come, leave memory behind, and go. */
static void generations(void)
{
    pthread_t thread;
    CUcontext worker = make_context();
    CUdeviceptr live[LIVE];
    MUST(cuCtxPopCurrent(NULL));
    pthread_create(&thread, NULL, work, worker);
    for (int g = 0; g < GENERATIONS; g++) {
        CUcontext context = make_context();
        CUstream stream = make_stream();
        use(stream, ROUNDS / 10);
        for (int i = 0; i < LIVE; i++) {
            MUST(cuMemAlloc(&live[i], BYTES));
            MUST(cuMemsetD8Async(live[i], (unsigned char)i, BYTES, stream));
        }
        for (int i = 0; i < LIVE; i += 2) {
            MUST(cuMemFree(live[i]));
        }
        for (int i = 1; i < LIVE; i += 2) {
            check(live[i], (unsigned char)i);
        }
        MUST(cuCtxDestroy(context));
    }
    pthread_join(thread, NULL);
    MUST(cuCtxPushCurrent(worker));
    SHOW(cuMemFree(live[1]));
    use(NULL, ROUNDS / 10);
    SHOW(cuCtxDestroy(worker));
    SHOW(cuMemFree(live[1]));
    SHOW(cuCtxDestroy(worker));
}

static void *borrow(void *context)
{
    SHOW(cuCtxPushCurrent(context));
    use(CU_STREAM_PER_THREAD, ROUNDS / 10);
    CUdeviceptr *addr = malloc(sizeof(*addr));
    MUST(cuMemAlloc(addr, BYTES));
    MUST(cuMemsetD8Async(*addr, 7, BYTES, CU_STREAM_PER_THREAD));
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    SHOW(cuCtxPopCurrent(NULL));
    return addr;
}

/* A context moves from thread to thread; memory made on one is freed on another, with another
 * context current. */
static void migrate(void)
{
    CUcontext first = make_context(), second = make_context(), popped = NULL;
    pthread_t thread;
    void *result = NULL;
    for (int i = 0; i < 5; i++) {
        MUST(cuCtxSetCurrent(i % 2 == 0 ? first : second));
        MUST(cuCtxPopCurrent(&popped));
        pthread_create(&thread, NULL, borrow, popped);
        pthread_join(thread, &result);
        MUST(cuCtxPushCurrent(popped));
        check(*(CUdeviceptr *)result, 7);
        MUST(cuCtxSetCurrent(i % 2 == 0 ? second : first));
        SHOW(cuMemFree(*(CUdeviceptr *)result));
        SHOW(cuMemFree(*(CUdeviceptr *)result));
        free(result);
    }
    SHOW(cuCtxDestroy(first));
    SHOW(cuCtxDestroy(second));
}

/* Memory of one context is read by another one's stream while it is freed; what comes next in the
 * first must not be its memory before that is over. */
static void cross(void)
{
    CUcontext first = make_context();
    CUstream writer = make_stream();
    CUcontext second = make_context();
    CUstream reader = make_stream();
    CUdeviceptr kept = 0, addr = 0, next = 0;
    MUST(cuMemAlloc(&kept, BYTES));
    for (int i = 0; i < ROUNDS; i++) {
        unsigned char value = (unsigned char)(1 + i % 100);
        MUST(cuCtxSetCurrent(first));
        MUST(cuMemAlloc(&addr, BYTES));
        MUST(cuMemsetD8Async(addr, value, BYTES, writer));
        MUST(cuStreamSynchronize(writer));
        MUST(cuCtxSetCurrent(second));
        MUST(cuMemcpyDtoDAsync(kept, addr, BYTES, reader));
        MUST(cuMemFree(addr));
        MUST(cuCtxSetCurrent(first));
        MUST(cuMemAlloc(&next, BYTES));
        MUST(cuMemsetD8Async(next, 200, BYTES, writer));
        check(next, 200);
        MUST(cuMemFree(next));
        MUST(cuCtxSetCurrent(second));
        check(kept, value);
    }
    MUST(cuMemFree(kept));
    MUST(cuCtxDestroy(second));
    MUST(cuCtxSetCurrent(first));
    MUST(cuCtxDestroy(first));
}

/* The default streams of two contexts are two streams, and a wait for one context is none for the
 * other. */
static void defaults(void)
{
    CUcontext first = NULL, second = make_context();
    MUST(cuDevicePrimaryCtxRetain(&first, 0));
    MUST(cuCtxSetCurrent(first));
    CUstream stream = make_stream();
    CUdeviceptr addr = 0, next = 0, more[MORE];
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuCtxSetCurrent(first));
        MUST(cuMemAllocAsync(&addr, BYTES, stream));
        MUST(cuStreamSynchronize(stream));
        MUST(cuCtxSetCurrent(second));
        MUST(cuMemsetD8Async(addr, 1, BYTES, NULL));
        MUST(cuMemFreeAsync(addr, NULL));
        MUST(cuCtxSetCurrent(first));
        MUST(cuMemAllocAsync(&next, BYTES, NULL));
        MUST(cuMemsetD8Async(next, 2, BYTES, NULL));
        check(next, 2);
        for (int j = 0; j < MORE; j++) {
            MUST(cuMemAllocAsync(&more[j], BYTES, NULL));
            MUST(cuMemsetD8Async(more[j], 3, BYTES, NULL));
        }
        for (int j = 0; j < MORE; j++) {
            MUST(cuMemFreeAsync(more[j], NULL));
        }
        MUST(cuMemFreeAsync(next, NULL));
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(second));
        MUST(cuCtxSynchronize());
    }
    MUST(cuCtxDestroy(second));
    SHOW(cuDevicePrimaryCtxRelease(0));
}

/* Memory in stream order is the device's and outlives the context of the stream; other memory is
 * gone. */
static void outlive(void)
{
    CUcontext first = make_context(), second = make_context();
    CUdeviceptr kept = 0, lost = 0;
    for (int i = 0; i < ROUNDS / 10; i++) {
        MUST(cuCtxSetCurrent(first));
        CUstream stream = make_stream();
        MUST(cuMemAllocAsync(&kept, BYTES, stream));
        MUST(cuMemsetD8Async(kept, 9, BYTES, stream));
        MUST(cuMemAlloc(&lost, BYTES));
        MUST(cuStreamSynchronize(stream));
        MUST(cuCtxDestroy(first));
        MUST(cuCtxSetCurrent(second));
        SHOW(cuMemFree(lost));
        use(NULL, ROUNDS / 10);
        check(kept, 9);
        SHOW(cuMemFreeAsync(kept, NULL));
        SHOW(cuCtxSynchronize());
        first = make_context();
    }
    MUST(cuCtxDestroy(first));
    MUST(cuCtxSetCurrent(second));
    MUST(cuCtxDestroy(second));
}

/* Beside the primary context, which a library may use. */
static void primary(void)
{
    CUcontext own = make_context(), shared = NULL;
    use(NULL, ROUNDS);
    MUST(cuDevicePrimaryCtxRetain(&shared, 0));
    MUST(cuCtxSetCurrent(shared));
    use(NULL, ROUNDS);
    MUST(cuCtxSetCurrent(own));
    use(NULL, ROUNDS);
    SHOW(cuDevicePrimaryCtxRelease(0));
    use(NULL, ROUNDS);
    SHOW(cuCtxDestroy(own));
}

/* What one context holds idle is there for the other: together more than the device has. */
static void hoard(void)
{
    CUcontext first = make_context(), second = make_context();
    static CUdeviceptr all[HOARD];
    for (int i = 0; i < 4; i++) {
        size_t free_bytes = 0, total_bytes = 0;
        MUST(cuCtxSetCurrent(i % 2 == 0 ? first : second));
        for (int j = 0; j < HOARD; j++) {
            MUST(cuMemAlloc(&all[j], 32 * MIB));
        }
        for (int j = 0; j < HOARD; j++) {
            MUST(cuMemFree(all[j]));
        }
        MUST(cuMemGetInfo(&free_bytes, &total_bytes));
        printf("most of it is free: %d\n", free_bytes >= HOARD * 32 * MIB);
    }
    SHOW(cuCtxDestroy(first));
    SHOW(cuCtxDestroy(second));
}

/* Two blocks in a context that refuses to end: freeing one leaves the other what it was. */
static void keep_neighbour(int (*end)(void), const char *name)
{
    CUdeviceptr first = 0, second = 0;
    MUST(cuMemAlloc(&first, BYTES));
    MUST(cuMemAlloc(&second, BYTES));
    MUST(cuMemsetD8(second, 7, BYTES));
    printf("%s -> %d\n", name, end());
    MUST(cuMemFree(first));
    check(second, 7);
    use(NULL, ROUNDS / 10);
    check(second, 7);
    MUST(cuMemFree(second));
    printf("%s -> %d\n", name, end());
}

static CUcontext refusing;

static int destroy_refusing(void)
{
    return (int)cuCtxDestroy(refusing);
}

static int reset_primary(void)
{
    return (int)cuDevicePrimaryCtxReset(0);
}

/* For SIMCUDA_FAIL: the first call of either fails. */
static void refused(void)
{
    refusing = make_context();
    keep_neighbour(destroy_refusing, "cuCtxDestroy");
    MUST(cuDevicePrimaryCtxRetain(&refusing, 0));
    MUST(cuCtxSetCurrent(refusing));
    keep_neighbour(reset_primary, "cuDevicePrimaryCtxReset");
}

static void many(void)
{
    for (int i = 0; i < CONTEXTS; i++) {
        CUcontext context = make_context();
        use(NULL, 2);
        MUST(cuCtxDestroy(context));
    }
}

/* Does not mind errors: its context is reset under it. */
static void *allocate_on(void *context)
{
    CUdeviceptr addr = 0;
    (void)cuCtxSetCurrent(context);
    for (int i = 0; i < ROUNDS; i++) {
        if (cuMemAlloc(&addr, BYTES) == CUDA_SUCCESS) {
            (void)cuMemFree(addr);
        }
        usleep(1000);
    }
    return NULL;
}

/* A reset that takes its time (SIMCUDA_SLOW), while another thread allocates; then all starts over.
 */
static void reset(void)
{
    CUcontext context = NULL;
    CUdeviceptr addr = 0;
    pthread_t thread;
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&addr, BYTES));
    pthread_create(&thread, NULL, allocate_on, context);
    usleep(20000);
    SHOW(cuDevicePrimaryCtxReset(0));
    pthread_join(thread, NULL);
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    use(NULL, ROUNDS / 10);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"one", one},           {"generations", generations},
                  {"migrate", migrate},   {"cross", cross},
                  {"defaults", defaults}, {"primary", primary},
                  {"hoard", hoard},       {"outlive", outlive},
                  {"refused", refused},   {"many", many},
                  {"reset", reset}};
    MUST(cuInit(0));
    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
        if (argc > 1 && strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].play();
            printf("%s: played\n", argv[1]);
            return 0;
        }
    }
    return 2;
}
