/* SPDX-License-Identifier: MIT */
/* Calls that fail, or do nothing: what each returns and leaves as the last error. */
#include "program.h"

int main(void)
{
    void *a = NULL, *b = NULL, *c = NULL, *managed = NULL, *pitched = NULL;
    size_t pitch = 0, free_bytes = 0, total_bytes = 0;
    void *p = (void *)0xdead;

    SHOW(cudaFree(NULL));
    SHOW(cudaMalloc(&p, 0));
    printf("size 0 gives %s\n", p == NULL ? "NULL" : "something");
    SHOW(cudaFree(p));
    SHOW(cudaMalloc(NULL, 16));
    p = (void *)0xdead;
    SHOW(cudaMalloc(&p, (size_t)1 << 50));
    printf("a failed call leaves the pointer %s\n", p == (void *)0xdead ? "alone" : "changed");
    SHOW(cudaMalloc(&p, SIZE_MAX));
    SHOW(cudaMalloc(&p, SIZE_MAX - 510));
    SHOW(cudaMalloc(&p, (size_t)1 << 63));

    SHOW(cudaMalloc(&a, 1 << 20));
    SHOW(cudaFree(a));
    SHOW(cudaFree(a));
    SHOW(cudaMalloc(&b, 1 << 20));
    SHOW(cudaMalloc(&c, 1 << 20));
    printf("two live blocks are %s\n", b == c ? "THE SAME" : "different");
    SHOW(cudaFree((char *)b + 256));
    SHOW(cudaFree((void *)0x1000));
    SHOW(cudaMallocManaged(&managed, 4096, cudaMemAttachGlobal));
    SHOW(cudaFree(managed));
    SHOW(cudaMallocPitch(&pitched, &pitch, 100, 100));
    SHOW(cudaFree(pitched));

    /* An error of the program's own survives our successes. */
    (void)cudaSetDevice(77);
    printf("after a bad cudaSetDevice: %d\n", (int)cudaPeekAtLastError());
    (void)cudaMalloc(&a, 4096);
    (void)cudaFree(a);
    printf("after a good pair: %d\n", (int)cudaPeekAtLastError());
    (void)cudaGetLastError();

    SHOW(cudaMemGetInfo(&free_bytes, &total_bytes));
    printf("free is %s\n", free_bytes <= total_bytes && free_bytes > 0 ? "plausible" : "WRONG");
    SHOW(cudaMallocAsync(&a, 0, 0));
    SHOW(cudaMallocAsync(NULL, 16, 0));
    SHOW(cudaMallocAsync(&a, (size_t)1 << 50, 0));
    SHOW(cudaMallocAsync(&a, 4096, 0));
    SHOW(cudaFreeAsync(a, 0));
    SHOW(cudaFreeAsync((void *)0x1000, 0));
    SHOW(cudaFreeAsync(NULL, 0));
    SHOW(cudaFree(b));
    SHOW(cudaFree(c));
    SHOW(cudaDeviceSynchronize());
    return 0;
}
