/* SPDX-License-Identifier: MIT */
/* Frees a block while its own thread is in the middle of a hook: inside DOOR, with libcallback.so
 * behind the library. Prints the result of the free, and what its neighbour is worth. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char *door;
static void *block;
static int result = -1;

static void free_block(void)
{
    if (strcmp(door, "free") == 0) {
        result = cudaFree(block);
    } else if (strcmp(door, "async") == 0) {
        result = cudaFreeAsync(block, NULL);
    } else if (strcmp(door, "driver") == 0) {
        result = cuMemFree((CUdeviceptr)(uintptr_t)block);
    } else if (strcmp(door, "driver_async") == 0) {
        result = cuMemFreeAsync((CUdeviceptr)(uintptr_t)block, NULL);
    }
}

int main(int argc, char **argv)
{
    void (*set)(void (*fn)(void)) = NULL;
    void *neighbour = NULL, *other = NULL;
    *(void **)&set = dlsym(RTLD_DEFAULT, "callback_set");
    if (argc != 2 || set == NULL || cudaMalloc(&block, 1 << 20) != cudaSuccess ||
        cudaMalloc(&neighbour, 1 << 20) != cudaSuccess) {
        return 2;
    }
    door = argv[1];
    set(free_block);
    (void)cudaSetDevice(0);
    (void)cudaMalloc(&other, 4096);
    printf("freed %d, ", result);
    printf("neighbour %d ", cudaMemset(neighbour, 0, 1 << 20));
    printf("%d %d\n", cudaDeviceSynchronize(), cudaFree(neighbour));
    return 0;
}
