/* SPDX-License-Identifier: MIT */
/* A program over NVIDIA's own runtime: what its first calls return. */
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
    int count = -1;
    void *p = NULL;
    cudaError_t counted = cudaGetDeviceCount(&count);
    cudaError_t allocated = cudaMalloc(&p, 100);
    cudaError_t last = cudaGetLastError();

    printf("%d %d %d\n", (int)counted, (int)allocated, (int)last);
    return 0;
}
