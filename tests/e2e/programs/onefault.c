/* SPDX-License-Identifier: MIT */
/* once: an allocation fails with an error that looks fatal, and is not. other: device 1's context
 * is lost and current while memory of device 0 is freed. In both, device 0's memory stays good. */
#include "program.h"

enum { BYTES = 4 << 20, MORE = 64 << 20 };

static void fail_once(void)
{
    void *p = NULL;

    (void)cudaMalloc(&p, MORE);
    (void)cudaGetLastError();
}

static void lose_device_1(void)
{
    void *p;

    MUST(cudaSetDevice(1));
    MUST(cudaMalloc(&p, BYTES));
    SHOW(cudaMemset(p, 1, BYTES));
    SHOW(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
    int is_once = argc > 1 && strcmp(argv[1], "once") == 0;
    void *a, *kept, *next;

    MUST(cudaMalloc(&a, BYTES));
    MUST(cudaMalloc(&kept, BYTES));
    MUST(cudaMemset(kept, 7, BYTES));
    MUST(cudaDeviceSynchronize());
    if (is_once) {
        fail_once();
    } else {
        lose_device_1();
    }
    (void)cudaFree(a);
    (void)cudaGetLastError();
    MUST(cudaSetDevice(0));
    SHOW(cudaMalloc(&next, BYTES));
    SHOW(cudaMemset(next, 9, BYTES));
    printf("what was kept is %s\n", all_bytes_are(kept, BYTES, 7) ? "right" : "WRONG");
    SHOW(cudaFree(next));
    SHOW(cudaFree(kept));
    return 0;
}
