/* SPDX-License-Identifier: MIT */
/* Allocate, fill, copy back, free; sizes from one byte to tens of megabytes. */
#include "program.h"

int main(void)
{
    static const size_t sizes[] = {1,       511,           512,      1000,    4096,
                                   1 << 20, (1 << 20) + 1, 12 << 20, 40 << 20};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    void *blocks[COUNT];
    int devices = 0;
    MUST(cudaGetDeviceCount(&devices));
    printf("devices: %d\n", devices);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            MUST(cudaMalloc(&blocks[i], sizes[i]));
            MUST(cudaMemset(blocks[i], round * COUNT + i, sizes[i]));
        }
        for (int i = 0; i < COUNT; i++) {
            printf("round %d, %zu bytes: %s\n", round, sizes[i],
                   all_bytes_are(blocks[i], sizes[i], round * COUNT + i) ? "right" : "WRONG");
            MUST(cudaFree(blocks[i]));
        }
    }
    printf("last error: %d\n", (int)cudaGetLastError());
    return 0;
}
