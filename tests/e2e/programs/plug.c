/* SPDX-License-Identifier: MIT */
/* The plug-in of plugin.c. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stddef.h>

__attribute__((visibility("default"))) int plug_code = -1;

static void *allocate(void *unused)
{
    void *p = NULL;
    plug_code = (int)cudaMalloc(&p, 4096);
    if (plug_code == 0) {
        plug_code = (int)cudaFree(p);
    }
    return unused;
}

__attribute__((constructor)) static void load(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}
