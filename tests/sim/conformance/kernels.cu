/* SPDX-License-Identifier: MIT */
/* The rules' kernels for a device. The simulator knows the first four by name, so a program built
 * with them runs there too:
 *   nvcc -cudart shared -o rules kernels.cu rule.c rules_*.c ../tests/check.c -lcuda */
#include <cuda_runtime_api.h>

__global__ void sim_fill(void *p, size_t bytes, int value)
{
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        ((char *)p)[i] = (char)value;
    }
}

__global__ void sim_copy(void *dst, const void *src, size_t bytes)
{
    for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) {
        ((char *)dst)[i] = ((const char *)src)[i];
    }
}

__global__ void sim_add(int *p, size_t n, int value)
{
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        p[i] += value;
    }
}

__global__ void sim_spin(unsigned us)
{
    (void)us;
}

extern "C" {

cudaError_t launch_fill(void *p, size_t bytes, int value, cudaStream_t stream)
{
    sim_fill<<<1, 64, 0, stream>>>(p, bytes, value);
    return cudaGetLastError();
}

cudaError_t launch_copy(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
    sim_copy<<<1, 64, 0, stream>>>(dst, src, bytes);
    return cudaGetLastError();
}

cudaError_t launch_add(int *p, size_t n, int value, cudaStream_t stream)
{
    sim_add<<<1, 64, 0, stream>>>(p, n, value);
    return cudaGetLastError();
}

cudaError_t launch_shape(dim3 grid, dim3 block, cudaStream_t stream)
{
    sim_spin<<<grid, block, 0, stream>>>(0);
    return cudaGetLastError();
}

/* They need code that is linked for the device once more; not measured there. */
cudaError_t launch_set_condition(unsigned long long handle, unsigned value, cudaStream_t stream)
{
    (void)handle;
    (void)value;
    (void)stream;
    return cudaErrorNotSupported;
}

cudaError_t launch_loop(unsigned long long handle, unsigned *left, cudaStream_t stream)
{
    (void)handle;
    (void)left;
    (void)stream;
    return cudaErrorNotSupported;
}

const void *kernel_fill(void)
{
    return (const void *)sim_fill;
}

const void *kernel_add(void)
{
    return (const void *)sim_add;
}
}
