/* SPDX-License-Identifier: MIT */
/* A thread that comes to a halt in the middle of an allocation, under the lock of device 0's heap,
 * and says so; it goes on when a line comes on stdin. Device 1, where there is one, has memory,
 * too.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "cca/cca.h"
#include "program.h"

static atomic_bool is_stopping, may_go;

/* Called under the lock. */
static void stop_there(void *user, const struct cca_trace_notice *notice)
{
    (void)user;
    if (!atomic_load(&is_stopping) || notice->device != 0 || notice->size != 4242 ||
        strcmp(notice->action, "alloc") != 0) {
        return;
    }
    printf("%ld\n", (long)syscall(SYS_gettid));
    fflush(stdout);
    while (!atomic_load(&may_go)) {
        usleep(1000);
    }
}

static void *allocate(void *unused)
{
    void *p = NULL;

    (void)unused;
    atomic_store(&is_stopping, true);
    MUST(cudaSetDevice(0));
    MUST(cudaMalloc(&p, 4242));
    MUST(cudaFree(p));
    return NULL;
}

int main(void)
{
    void *p = NULL;
    pthread_t thread;
    int devices = 1;
    char line[16];

    (void)cca_attach_trace_tracker(stop_there, NULL);
    MUST(cudaMalloc(&p, 1000));
    MUST(cudaGetDeviceCount(&devices));
    if (devices > 1) {
        MUST(cudaSetDevice(1));
        MUST(cudaMalloc(&p, 2000));
    }
    pthread_create(&thread, NULL, allocate, NULL);
    (void)!fgets(line, sizeof(line), stdin);
    atomic_store(&may_go, true);
    pthread_join(thread, NULL);
    printf("went on\n");
    return 5;
}
