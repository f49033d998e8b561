/* SPDX-License-Identifier: MIT */
/* A device reset in mid-life: memory is gone, new memory works, old pointers are refused. */
#include "program.h"

int main(void)
{
    void *old = NULL, *fresh = NULL;
    for (int round = 0; round < 5; round++) {
        MUST(cudaMalloc(&old, 3 << 20));
        MUST(cudaMemset(old, 1, 3 << 20));
        MUST(cudaMalloc(&fresh, 1000));
        MUST(cudaFree(fresh));
        MUST(cudaDeviceReset());
        SHOW(cudaFree(old));
        MUST(cudaMalloc(&fresh, 3 << 20));
        MUST(cudaMemset(fresh, round, 3 << 20));
        printf("after reset %d: %s\n", round,
               all_bytes_are(fresh, 3 << 20, round) ? "right" : "WRONG");
        MUST(cudaFree(fresh));
    }
    return 0;
}
