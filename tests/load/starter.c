/* SPDX-License-Identifier: MIT */
/* A library whose constructor waits for a thread that calls the runtime, as the pools of some
 * libraries do. */
#include <pthread.h>
#include <stddef.h>

int cudaFree(void *ptr);
int cudaSetDevice(int device);
int plugin_answers(void);

static int answer;

int plugin_answers(void)
{
    return answer;
}

static void *call(void *unused)
{
    answer = cudaFree(NULL) * 1000 + cudaSetDevice(0);
    return unused;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, call, NULL) == 0) {
        (void)pthread_join(thread, NULL);
    }
}
