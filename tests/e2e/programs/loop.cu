// SPDX-License-Identifier: MIT
// A loop of allocate, launch, free, as many programs have it; now and then it reads a result back.
// Arguments: rounds, floats.
#include <cstdio>
#include <cstdlib>

__global__ void scale(float *data, int n, float factor)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        data[i] *= factor;
    }
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            printf("%s: %s\n", #call, cudaGetErrorName(error));                                    \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static void one_step(int n, bool reads_back)
{
    float first = 0, *data = nullptr, *scratch = nullptr;
    MUST(cudaMalloc(&data, n * sizeof(float)));
    MUST(cudaMalloc(&scratch, n * sizeof(float) / 2));
    scale<<<(n + 255) / 256, 256>>>(data, n, 2.0f);
    scale<<<(n / 2 + 255) / 256, 256>>>(scratch, n / 2, 0.5f);
    MUST(cudaGetLastError());
    if (reads_back) {
        MUST(cudaMemcpy(&first, data, sizeof(first), cudaMemcpyDeviceToHost));
    }
    MUST(cudaFree(scratch));
    MUST(cudaFree(data));
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    int n = argc > 2 ? atoi(argv[2]) : 1 << 18;
    for (int i = 0; i < rounds; i++) {
        one_step(n + i % 7 * 1000, i % 16 == 15);
    }
    MUST(cudaDeviceSynchronize());
    printf("%d rounds of allocate, launch, free\n", rounds);
    return 0;
}
