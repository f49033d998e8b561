/* SPDX-License-Identifier: MIT */
/* Device 1 writes to memory of device 0 in a kernel: to what was allocated before access was
 * enabled, and to what came after it. */
#include "program.h"
#include "support/sim_kernels.h"

enum { BYTES = 30 << 20, USED = 1 << 20 };

static void use(void *p, int value)
{
    MUST(cudaSetDevice(1));
    printf("fill %d\n", sim_fill(p, USED, value, 0));
    printf("wait %d\n", cudaDeviceSynchronize());
    MUST(cudaSetDevice(0));
    printf("%s\n", all_bytes_are(p, USED, value) ? "right" : "wrong");
}

int main(void)
{
    void *before, *after;

    MUST(cudaMalloc(&before, BYTES));
    MUST(cudaSetDevice(1));
    MUST(cudaDeviceEnablePeerAccess(0, 0));
    use(before, 5);
    MUST(cudaMalloc(&after, BYTES));
    use(after, 7);
    MUST(cudaFree(before));
    MUST(cudaFree(after));
    return 0;
}
