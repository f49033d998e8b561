/* SPDX-License-Identifier: MIT */
/* Corners of the memory API that programs have met, one after the other; every line shows what a
 * call returned and the runtime's last error. */
#include <cuda.h>

#include "program.h"
#include "support/sim_kernels.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static void zero_and_null(void)
{
    void *p = (void *)(uintptr_t)0xdead;
    SHOW(cudaMalloc(&p, 0));
    printf("pointer is %s\n", p == NULL ? "null" : "not null");
    SHOW(cudaFree(p));
    SHOW(cudaFree(NULL));
    SHOW(cudaMalloc(NULL, 16));
}

/* The same beside one right allocation, so that there are accounts. */
static void accounts(void)
{
    void *p = NULL;
    MUST(cudaMalloc(&p, MIB));
    zero_and_null();
}

/* What an allocation node of a graph gave, which the program frees. */
static void *node_memory(void)
{
    struct cudaMemAllocNodeParams params = {0};
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = MIB;
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, NULL));
    MUST(cudaDeviceSynchronize());
    return params.dptr;
}

static void wrong_frees(void)
{
    void *a = NULL, *b = NULL, *c = NULL, *managed = NULL, *pitched = NULL;
    size_t pitch = 0;
    MUST(cudaMalloc(&a, MIB));
    SHOW(cudaFree(a));
    SHOW(cudaFree(a));
    MUST(cudaMalloc(&b, MIB));
    MUST(cudaMalloc(&c, MIB));
    SHOW(cudaFree((char *)b + 256));
    printf("two blocks are %s\n", b != c ? "two" : "ONE");
    MUST(cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal));
    MUST(cudaMallocPitch(&pitched, &pitch, 100, 100));
    SHOW(cudaFree(managed));
    SHOW(cudaFree(managed));
    SHOW(cudaFree(pitched));
    void *node = node_memory();
    SHOW(cudaFree(node));
    SHOW(cudaFree(node));
    MUST(cudaMallocAsync(&a, MIB, NULL));
    SHOW(cudaFree(a));
    CUdeviceptr of_driver = 0;
    MUST((cudaError_t)cuMemAlloc(&of_driver, MIB));
    SHOW(cudaFree((void *)of_driver));
    SHOW(cudaFree((void *)of_driver));
    SHOW(cudaFree(b));
    SHOW(cudaFree(c));
}

/* Sizes near the top of size_t, and products that pass it. */
static void large(void)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 510, SIZE_MAX - 511, SIZE_MAX - 2097151,
                                   (size_t)1 << 63};
    void *p = NULL, *q = NULL;
    size_t pitch = 0;
    struct cudaPitchedPtr volume = {0};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        SHOW(cudaMalloc(&p, sizes[i]));
    }
    SHOW(cudaMallocPitch(&p, &pitch, (size_t)1 << 33, (size_t)1 << 33));
    SHOW(cudaMallocPitch(&p, &pitch, SIZE_MAX - 100, 2));
    SHOW(cudaMalloc3D(&volume, (struct cudaExtent){(size_t)1 << 30, (size_t)1 << 30, 1 << 10}));
    MUST(cudaMalloc(&p, 512));
    MUST(cudaMalloc(&q, 512));
    printf("two blocks are %s\n", p != q ? "two" : "ONE");
    MUST(cudaFree(p));
    MUST(cudaFree(q));
}

/* A retry inside must leave no trace: 10 of 16 GiB idle in pieces, then 12 in one. */
static void clean_error(void)
{
    void *blocks[10], *p = NULL;
    for (int i = 0; i < 10; i++) {
        MUST(cudaMalloc(&blocks[i], GIB));
    }
    for (int i = 0; i < 10; i++) {
        MUST(cudaFree(blocks[i]));
    }
    SHOW(cudaMalloc(&p, 12 * GIB));
    SHOW(cudaFree(p));
    (void)cudaSetDevice(77);
    printf("an error of the program's own: %d\n", (int)cudaPeekAtLastError());
    printf("malloc %d\n", (int)cudaMalloc(&p, 9 * GIB));
    printf("it is still there: %d\n", (int)cudaGetLastError());
    MUST(cudaFree(p));
}

/* The second allocation of the driver is to fail once; an error of the program's own outlives all.
 */
static void retry(void)
{
    const dim3 none = {0, 0, 0}, one = {1, 1, 1};
    void *p = NULL, *arguments[] = {&p};
    MUST(cudaMalloc(&p, 100 * MIB));
    MUST(cudaFree(p));
    SHOW(cudaMalloc(&p, 300 * MIB));
    printf("a bad launch: %d\n",
           (int)cudaLaunchKernel(sim_kernel_fill, none, one, arguments, 0, NULL));
    printf("malloc %d\n", (int)cudaMalloc(&p, 40 * MIB));
    int peeked = (int)cudaPeekAtLastError();
    printf("still there: %d %d\n", peeked, (int)cudaGetLastError());
}

/* The figure for free memory after 1 GiB came and went, within a segment; and what it promises. */
static void information(void)
{
    size_t before = 0, after = 0, total = 0;
    void *p = NULL;
    MUST(cudaFree(NULL));
    MUST(cudaMemGetInfo(&before, &total));
    MUST(cudaMalloc(&p, GIB));
    MUST(cudaFree(p));
    MUST(cudaMemGetInfo(&after, &total));
    size_t apart = before > after ? before - after : after - before;
    printf("free memory is %s\n", apart <= 22 * MIB ? "back" : "NOT back");
    printf("never more than there is: %s\n", after <= total ? "yes" : "NO");
    SHOW(cudaMalloc(&p, after / 10 * 9));
    SHOW(cudaFree(p));
    SHOW(cudaMemGetInfo(NULL, &total));
    SHOW(cudaMemGetInfo(&after, NULL));
    SHOW(cudaMemGetInfo(NULL, NULL));
}

static void is_within(const char *when, size_t held, size_t limit)
{
    size_t free_bytes = 0, total = 0;
    MUST(cudaMemGetInfo(&free_bytes, &total));
    printf("%s: %s the limit\n", when, free_bytes <= limit - held ? "within" : "BEYOND");
}

/* Under a limit of 4 GiB. */
static void limited(void)
{
    size_t free_bytes = 0, total = 0;
    void *p = NULL;
    MUST(cudaMalloc(&p, MIB));
    is_within("first", MIB, 4 * GIB);
    MUST(cudaFree(p));
    MUST(cudaMalloc(&p, GIB));
    is_within("held", GIB, 4 * GIB);
    MUST(cudaFree(p));
    is_within("freed", 0, 4 * GIB);
    MUST(cudaMemGetInfo(&free_bytes, &total));
    printf("90 %% of it -> %d\n", (int)cudaMalloc(&p, free_bytes / 10 * 9));
}

/* Only cached memory is left, which whole segments are. Stays until it is ended. */
static void cached(void)
{
    size_t free_bytes = 0, total = 0;
    void *p = NULL;
    MUST(cudaMalloc(&p, GIB));
    MUST(cudaFree(p));
    MUST(cudaMemGetInfo(&free_bytes, &total));
    printf("free %zu\n", free_bytes);
    fflush(stdout);
    pause();
    for (;;) {
        sleep(60);
    }
}

/* Stream-ordered memory, also where the device has no pools. */
static void stream_ordered(void)
{
    cudaStream_t stream;
    void *p = NULL;
    MUST(cudaMalloc(&p, MIB));
    MUST(cudaFree(p));
    MUST(cudaStreamCreate(&stream));
    for (int i = 0; i < 20; i++) {
        cudaError_t error = cudaMallocAsync(&p, MIB, stream);
        if (error != cudaSuccess) {
            printf("no pools: %d\n", (int)error);
            return;
        }
        MUST(cudaMemsetAsync(p, i, MIB, stream));
        MUST(cudaFreeAsync(p, stream));
    }
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamDestroy(stream));
    printf("twenty blocks\n");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } corners[] = {{"zero", zero_and_null},
                   {"frees", wrong_frees},
                   {"large", large},
                   {"error", clean_error},
                   {"information", information},
                   {"ordered", stream_ordered},
                   {"accounts", accounts},
                   {"retry", retry},
                   {"limited", limited},
                   {"cached", cached}};
    for (size_t i = 0; i < sizeof(corners) / sizeof(corners[0]); i++) {
        if (argc > 1 && strcmp(argv[1], corners[i].name) == 0) {
            corners[i].run();
        }
    }
    return 0;
}
