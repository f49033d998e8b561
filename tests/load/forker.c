/* SPDX-License-Identifier: MIT */
/* Threads call the runtime all the time while children are forked that load a library, and the
 * loader's list changes in the meantime: forker LIBRARY. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 100, THREADS = 3, CHILD_SECONDS = 10 };

int cudaSetDevice(int device);

static void *call_for_ever(void *unused)
{
    for (;;) {
        (void)cudaSetDevice(0);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 2) {
        return 2;
    }
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread, NULL, call_for_ever, NULL) != 0) {
            return 2;
        }
    }
    for (int i = 0; i < FORKS; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(CHILD_SECONDS);
            _exit(dlopen(argv[1], RTLD_NOW) != NULL && cudaSetDevice(0) != 0 ? 0 : 1);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            printf("fork %d: child's status %#x\n", i, (unsigned)status);
            return 1;
        }
    }
    printf("every child loaded it\n");
    fflush(stdout);
    _exit(0);
}
