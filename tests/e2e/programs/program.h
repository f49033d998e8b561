/* SPDX-License-Identifier: MIT */
/* For the small CUDA programs of the end-to-end tests. They are ordinary programs: they print what
 * they saw to stdout and exit 0, and know nothing of the library they may run under. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the program with a line when a call that must succeed fails. */
#define MUST(call)                                               \
    do {                                                         \
        cudaError_t error_ = (call);                             \
        if (error_ != cudaSuccess) {                             \
            printf("%s: %s\n", #call, cudaGetErrorName(error_)); \
            exit(3);                                             \
        }                                                        \
    } while (0)

/* Prints the code a call returns, and the runtime's last error after it, which it clears. */
#define SHOW(call)                                                                          \
    do {                                                                                    \
        cudaError_t error_ = (call);                                                        \
        cudaError_t peek_ = cudaPeekAtLastError();                                          \
        cudaError_t last_ = cudaGetLastError();                                             \
        printf("%s -> %d, last error %d %d\n", #call, (int)error_, (int)peek_, (int)last_); \
    } while (0)

/* Work on the device that takes a while: many passes over a buffer of the program's own. */
static inline void busy(void *buffer, size_t bytes, int passes, cudaStream_t stream)
{
    for (int i = 0; i < passes; i++) {
        MUST(cudaMemsetAsync(buffer, i, bytes, stream));
    }
}

/* Whether every byte of a device buffer has this value. */
static inline int all_bytes_are(const void *device, size_t bytes, int value)
{
    unsigned char *host = malloc(bytes);
    MUST(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    size_t i = 0;
    while (i < bytes && host[i] == (unsigned char)value) {
        i++;
    }
    free(host);
    return i == bytes;
}

#endif
