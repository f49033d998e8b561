/* SPDX-License-Identifier: MIT */
/* The kernels that the simulated driver knows by name, for C programs that nvcc does not build:
 * they are registered before main as nvcc's code would do it, with a fat binary that holds nothing.
 *
 * Include this in one source of a program that links a CUDA runtime; then call the wrappers. */
#ifndef CCA_SIM_KERNELS_H
#define CCA_SIM_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **fatCubinHandle);
void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                            const char *deviceName, int thread_limit, void *tid, void *bid,
                            void *bDim, void *gDim, int *wSize);

static const struct {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t size_bytes;
} sim_kernels_fatbin = {0xba55ed50u, 1, 16, 0};

static struct {
    int magic;
    int version;
    const void *data;
    void *more;
} sim_kernels_wrapper = {0x466243b1, 1, &sim_kernels_fatbin, NULL};

/* The address of each name stands for its kernel. */
static const char sim_kernel_fill[] = "sim_fill";
static const char sim_kernel_fill_slow[] = "sim_fill_slow";
static const char sim_kernel_copy[] = "sim_copy";
static const char sim_kernel_add[] = "sim_add";
static const char sim_kernel_spin[] = "sim_spin";
static const char sim_kernel_set_condition[] = "sim_set_condition";
static const char sim_kernel_loop[] = "sim_loop";
/* Not known to the simulator: it touches nobody knows what. */
static const char sim_kernel_unknown[] = "unknown_kernel";

__attribute__((constructor)) static void sim_kernels_register(void)
{
    static const char *const names[] = {
        sim_kernel_fill, sim_kernel_fill_slow,     sim_kernel_copy, sim_kernel_add,
        sim_kernel_spin, sim_kernel_set_condition, sim_kernel_loop, sim_kernel_unknown};
    void **handle = __cudaRegisterFatBinary(&sim_kernels_wrapper);

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        __cudaRegisterFunction(handle, names[i], (char *)names[i], names[i], -1, NULL, NULL, NULL,
                               NULL, NULL);
    }
    __cudaRegisterFatBinaryEnd(handle);
}

static inline cudaError_t sim_launch(const char *kernel, void **arguments, cudaStream_t stream)
{
    const dim3 one = {1, 1, 1};

    return cudaLaunchKernel(kernel, one, one, arguments, 0, stream);
}

/* Writes bytes bytes at p. */
static inline cudaError_t sim_fill(void *p, size_t bytes, int value, cudaStream_t stream)
{
    void *arguments[] = {&p, &bytes, &value};

    return sim_launch(sim_kernel_fill, arguments, stream);
}

/* The same, and takes us microseconds of simulated time. */
static inline cudaError_t sim_fill_slow(void *p, size_t bytes, int value, unsigned us,
                                        cudaStream_t stream)
{
    void *arguments[] = {&p, &bytes, &value, &us};

    return sim_launch(sim_kernel_fill_slow, arguments, stream);
}

static inline cudaError_t sim_copy(void *dst, const void *src, size_t bytes, cudaStream_t stream)
{
    void *arguments[] = {&dst, &src, &bytes};

    return sim_launch(sim_kernel_copy, arguments, stream);
}

/* Adds v to each of n numbers. */
static inline cudaError_t sim_add(int *p, size_t n, int v, cudaStream_t stream)
{
    void *arguments[] = {&p, &n, &v};

    return sim_launch(sim_kernel_add, arguments, stream);
}

static inline cudaError_t sim_spin(unsigned us, cudaStream_t stream)
{
    void *arguments[] = {&us};

    return sim_launch(sim_kernel_spin, arguments, stream);
}

#endif
