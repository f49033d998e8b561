/* SPDX-License-Identifier: MIT */
/* A plug-in with CUDA of its own. */
#include "program.h"

__attribute__((visibility("default"))) int work(int rounds);

int work(int rounds)
{
    int result = 0;
    for (int i = 0; i < rounds && result == 0; i++) {
        void *p = NULL;
        result = (int)cudaMalloc(&p, 1 << 20);
        result = result != 0 ? result : (int)cudaMemset(p, i, 1 << 20);
        if (result == 0 && !all_bytes_are(p, 1 << 20, i & 0xff)) {
            result = 1000;
        }
        result = result != 0 ? result : (int)cudaFree(p);
    }
    return result;
}
