/* SPDX-License-Identifier: MIT */
/* Threads that keep the CUDA runtime busy while the program forks: each child loads a library,
 * allocates on the heap and ends. Arguments: the library, children, and "release" when each child
 * is to release the primary context of the parent, too. */
#include <cuda.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>

#include "program.h"
#include "watchdog.h"

static void *keep_busy(void *allocates)
{
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (;;) {
        MUST(cudaStreamSynchronize(stream));
        if (allocates != NULL) {
            void *p = NULL;
            MUST(cudaMalloc(&p, 4096));
            MUST(cudaFree(p));
        }
    }
    return NULL;
}

static void be_child(const char *library, int releases, int runs_exit_handlers)
{
    if (releases) {
        (void)cuDevicePrimaryCtxRelease(0);
    }
    void *handle = dlopen(library, RTLD_NOW);
    int status = handle != NULL ? 0 : 1;
    free(malloc(100000));
    if (runs_exit_handlers) {
        exit(status);
    }
    _exit(status);
}

/* The status of the child; -1 when it had to be ended after five seconds. */
static int wait_for(pid_t child)
{
    int status = 0;
    double end = seconds() + 5;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (seconds() > end) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return -1;
        }
        usleep(200);
    }
    return status;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    const char *library = argc > 1 ? argv[1] : "";
    int children = argc > 2 ? atoi(argv[2]) : 100, ended = 0, hung = 0;
    int releases = argc > 3 && strcmp(argv[3], "release") == 0;
    void *p = NULL;
    MUST(cudaMalloc(&p, 4096));
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, keep_busy, i == 0 ? NULL : threads);
    }
    for (int i = 0; i < children && !hung; i++) {
        pid_t child = fork();
        if (child == 0) {
            be_child(library, releases, i % 2);
        }
        int status = wait_for(child);
        hung = status == -1;
        ended += status == 0;
    }
    printf("%d children ended well%s\n", ended, hung ? ", one HANGS" : "");
    fflush(stdout);
    _exit(0);
}
