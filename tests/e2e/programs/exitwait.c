/* SPDX-License-Identifier: MIT */
/* exit() from a signal handler that interrupts a wait of the main thread in cudaFree; a handler of
 * the exit frees more. */
#include <pthread.h>
#include <signal.h>

#include "program.h"
#include "watchdog.h"

static pthread_t main_thread;
static void *first, *second;

static void at_exit(void)
{
    int codes[2];
    codes[0] = (int)cudaFree(first);
    codes[1] = (int)cudaFree(second);
    printf("freed at exit: %d %d\n", codes[0], codes[1]);
    fflush(stdout);
}

static void end_the_program(int number)
{
    (void)number;
    exit(5);
}

static void *interrupt_main(void *unused)
{
    usleep(200000);
    pthread_kill(main_thread, SIGALRM);
    return unused;
}

int main(void)
{
    pthread_t thread;
    cudaStream_t stream;
    void *p = NULL;
    struct sigaction action = {.sa_handler = end_the_program};
    main_thread = pthread_self();
    sigaction(SIGALRM, &action, NULL);
    watchdog(10);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&p, 1 << 20));
    MUST(cudaMalloc(&first, 1 << 20));
    MUST(cudaMalloc(&second, 1 << 20));
    atexit(at_exit);
    MUST(cudaMemsetAsync(p, 1, 1 << 20, stream));
    pthread_create(&thread, NULL, interrupt_main, NULL);
    MUST(cudaFree(p));
    MUST(cudaStreamSynchronize(stream)); /* here where the free does not wait */
    for (;;) {
        pause();
    }
}
