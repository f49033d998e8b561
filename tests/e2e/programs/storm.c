/* SPDX-License-Identifier: MIT */
/* Everything at once, for so many milliseconds (argument): six threads allocate and free on two
 * paths of calls, a library (second argument) is loaded, allocates in its constructor and is
 * unloaded again and again, exceptions fly through another (third argument, where there is one),
 * children are forked, and a signal comes every 20 ms. Prints what must be true at the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include "program.h"

enum { THREADS = 6 };

static atomic_bool is_over;
static atomic_int wrong;
static int milliseconds;

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((noinline)) static void *even_path(size_t bytes)
{
    void *p = NULL;
    if (cudaMalloc(&p, bytes) != cudaSuccess) {
        atomic_fetch_add(&wrong, 1);
    }
    return p;
}

__attribute__((noinline)) static void *odd_path(size_t bytes)
{
    return even_path(bytes + 1);
}

static void *allocate(void *seed)
{
    unsigned state = (unsigned)(size_t)seed;

    while (!atomic_load(&is_over)) {
        void *blocks[8];
        for (int i = 0; i < 8; i++) {
            state = state * 1664525 + 1013904223;
            size_t bytes = 1 + (state >> 12) % (1 << 20);
            blocks[i] = (state >> 8) % 2 == 0 ? even_path(bytes) : odd_path(bytes);
        }
        for (int i = 0; i < 8; i++) {
            if (cudaFree(blocks[i]) != cudaSuccess) {
                atomic_fetch_add(&wrong, 1);
            }
        }
    }
    return NULL;
}

static void *load_and_unload(void *path)
{
    while (!atomic_load(&is_over)) {
        void *library = dlopen(path, RTLD_NOW);
        if (library == NULL || dlclose(library) != 0) {
            atomic_fetch_add(&wrong, 1);
            break;
        }
    }
    return NULL;
}

static void *throw_exceptions(void *path)
{
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    int (*throw_often)(int) = NULL;

    if (library == NULL) {
        atomic_fetch_add(&wrong, path != NULL);
        return NULL;
    }
    *(void **)&throw_often = dlsym(library, "throw_often");
    while (!atomic_load(&is_over)) {
        atomic_fetch_add(&wrong, throw_often(10));
    }
    return NULL;
}

static void *fork_children(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_over)) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            _exit(42);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 42) {
            atomic_fetch_add(&wrong, 1);
        }
        usleep(5000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS + 3];
    void *first = NULL;

    milliseconds = argc > 1 ? atoi(argv[1]) : 1000;
    MUST(cudaMalloc(&first, 4096));
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, allocate, (void *)(i + 1));
    }
    pthread_create(&threads[THREADS], NULL, load_and_unload, argv[2]);
    pthread_create(&threads[THREADS + 1], NULL, fork_children, NULL);
    pthread_create(&threads[THREADS + 2], NULL, throw_exceptions, argc > 3 ? argv[3] : NULL);
    for (long end = now_ms() + milliseconds; now_ms() < end;) {
        usleep(20000);
        kill(getpid(), SIGUSR1);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS + 3; i++) {
        pthread_join(threads[i], NULL);
    }
    MUST(cudaFree(first));
    printf("wrong %d\n", atomic_load(&wrong));
    return 9;
}
