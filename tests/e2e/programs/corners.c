/* SPDX-License-Identifier: MIT */
/* Corners of the memory API that programs have met, one after the other; every line shows what a
 * call returned and the runtime's last error. */
#include "program.h"

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
    MUST(cudaMallocAsync(&a, MIB, NULL));
    SHOW(cudaFree(a));
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
    } corners[] = {
        {"zero", zero_and_null}, {"frees", wrong_frees},       {"large", large},
        {"error", clean_error},  {"information", information}, {"ordered", stream_ordered}};
    for (size_t i = 0; i < sizeof(corners) / sizeof(corners[0]); i++) {
        if (argc > 1 && strcmp(argv[1], corners[i].name) == 0) {
            corners[i].run();
        }
    }
    return 0;
}
