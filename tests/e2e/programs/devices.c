/* SPDX-License-Identifier: MIT */
/* Every device in turn: allocated on one, freed while another is current and from another thread.
 */
#include <pthread.h>

#include "program.h"

static void *free_it(void *p)
{
    MUST(cudaFree(p));
    return NULL;
}

int main(void)
{
    int count = 0, current = -1;
    MUST(cudaGetDeviceCount(&count));
    for (int round = 0; round < 4; round++) {
        void *blocks[8];
        for (int i = 0; i < count; i++) {
            struct cudaPointerAttributes attributes;
            MUST(cudaSetDevice(i));
            MUST(cudaMalloc(&blocks[i], 1 << 20));
            MUST(cudaMemset(blocks[i], i, 1 << 20));
            MUST(cudaPointerGetAttributes(&attributes, blocks[i]));
            printf("block of device %d lies on device %d: %s\n", i, attributes.device,
                   all_bytes_are(blocks[i], 1 << 20, i) ? "right" : "WRONG");
        }
        MUST(cudaSetDevice(0));
        for (int i = 0; i < count; i++) {
            pthread_t thread;
            if (i % 2 == 0) {
                MUST(cudaFree(blocks[i]));
            } else {
                pthread_create(&thread, NULL, free_it, blocks[i]);
                pthread_join(thread, NULL);
            }
        }
        MUST(cudaGetDevice(&current));
        printf("current device: %d\n", current);
    }
    return 0;
}
