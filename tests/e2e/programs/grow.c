/* SPDX-License-Identifier: MIT */
/* Blocks that grow from step to step, as of a program whose input gets longer: each is filled,
 * copied into a larger one, checked and freed. Two small ones are kept. With the argument "ipc" it
 * asks for a handle of one of them, by a function that it looks up: a program that is seen to
 * import it gets blocks with segments of their own. */
#include <dlfcn.h>

#include "program.h"

typedef cudaError_t (*ipc_get_mem_handle)(cudaIpcMemHandle_t *, void *);

enum { STEPS = 8, FIRST = 4 << 20, STEP = (12 << 20) + 512 };

static char *grown(char *old, size_t old_bytes, size_t bytes, int value)
{
    char *p;
    MUST(cudaMalloc((void **)&p, bytes));
    MUST(cudaMemset(p, value, bytes));
    MUST(cudaMemcpy(p, old, old_bytes, cudaMemcpyDeviceToDevice));
    MUST(cudaFree(old));
    return p;
}

int main(int argc, char **argv)
{
    char *p, *kept[2];
    size_t bytes = FIRST;
    MUST(cudaMalloc((void **)&p, bytes));
    MUST(cudaMemset(p, 1, bytes));
    MUST(cudaMalloc((void **)&kept[0], 1000));
    for (int i = 0; i < STEPS; i++) {
        p = grown(p, bytes, bytes + STEP, 2);
        bytes += STEP;
        if (!all_bytes_are(p, FIRST, 1) || !all_bytes_are(p + bytes - STEP, STEP, 2)) {
            printf("WRONG bytes at step %d\n", i);
        }
    }
    MUST(cudaFree(p));
    MUST(cudaMalloc((void **)&kept[1], 3 << 20));
    if (argc > 1 && strcmp(argv[1], "ipc") == 0) {
        cudaIpcMemHandle_t handle;
        ipc_get_mem_handle get = (ipc_get_mem_handle)dlsym(RTLD_DEFAULT, "cudaIpcGetMemHandle");
        SHOW(get(&handle, kept[1]));
    }
    printf("grown to %zu bytes\n", bytes);
    return 0;
}
