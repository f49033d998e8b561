/* SPDX-License-Identifier: MIT */
/* The last reference of a primary context is released, and before the call returns another thread
 * has brought the context up again. It allocates then (with an argument: at once, while the call
 * has not returned yet). */
#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>

#include "program.h"

#define CHECK(call)                                           \
    do {                                                      \
        int result = (int)(call);                             \
        if (result != 0) {                                    \
            printf("WRONG: " #call " returned %d\n", result); \
            exit(1);                                          \
        }                                                     \
    } while (0)

extern void (*cca_test_done)(void);

static sem_t released, retained, returned;
static int is_at_once;

static void let_other_retain(void)
{
    cca_test_done = NULL;
    sem_post(&released);
    sem_wait(&retained);
    usleep(is_at_once ? 200000 : 0);
}

static void *succeed(void *unused)
{
    CUcontext context;
    CUdeviceptr p;
    sem_wait(&released);
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    sem_post(&retained);
    if (!is_at_once) {
        sem_wait(&returned);
    }
    CHECK(cuMemAlloc(&p, 4096));
    CHECK(cuMemsetD8(p, 1, 4096));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFree(p));
    CHECK(cuCtxSetCurrent(NULL));
    CHECK(cuDevicePrimaryCtxRelease(0));
    return unused;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUdeviceptr p;
    pthread_t thread;
    (void)argv;
    is_at_once = argc > 1;
    sem_init(&released, 0, 0);
    sem_init(&retained, 0, 0);
    sem_init(&returned, 0, 0);
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc(&p, 4096));
    CHECK(cuMemFree(p));
    pthread_create(&thread, NULL, succeed, NULL);
    CHECK(cuCtxSetCurrent(NULL));
    cca_test_done = let_other_retain;
    CHECK(cuDevicePrimaryCtxRelease(0));
    sem_post(&returned);
    pthread_join(thread, NULL);
    puts("fine");
    return 0;
}
