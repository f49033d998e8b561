/* SPDX-License-Identifier: MIT */
/* Real time: delays, and the threads behind them. The rules of streams are in ../conformance. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void delays_pass_in_the_background(void)
{
    cudaStream_t stream;
    char *p;
    double start;

    OK(cudaStreamCreate(&stream));
    OK(cudaMalloc((void **)&p, 100));
    start = now_ms();
    OK(sim_fill_slow(p, 100, 1, 300000, stream));
    CHECK(now_ms() - start < 300);
    CHECK_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    CHECK_EQ(cudaGetLastError(), cudaErrorNotReady);
    OK(cudaStreamSynchronize(stream));
    CHECK(now_ms() - start >= 300);
    OK(cudaStreamQuery(stream));
}

static int thread_count(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    int count = 0;

    while (fgets(line, sizeof(line), status) != NULL) {
        if (sscanf(line, "Threads: %d", &count) == 1) {
            break;
        }
    }
    fclose(status);
    return count;
}

static void there_is_no_thread_without_delays(void)
{
    char *p;
    int before = thread_count();

    OK(cudaMalloc((void **)&p, 100));
    OK(sim_fill(p, 100, 1, NULL));
    OK(cudaFree(p));
    CHECK_EQ(thread_count(), before);
    OK(sim_spin(1000, NULL));
    CHECK(thread_count() > before);
}

/* The thread sanitizer keeps signals back while a thread is in a system call that it does not know,
 * so there the handler would come too late. */
#if defined(__SANITIZE_THREAD__)
#define HAS_PROMPT_SIGNALS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_PROMPT_SIGNALS 0
#endif
#endif
#ifndef HAS_PROMPT_SIGNALS
#define HAS_PROMPT_SIGNALS 1
#endif

#if HAS_PROMPT_SIGNALS
static void work_after_exit(void)
{
    cudaStream_t stream;

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 5; i++) {
        OK(sim_spin(2000, stream));
        OK(cudaStreamSynchronize(stream));
    }
    _exit(42);
}

static void leave(int signal_number)
{
    (void)signal_number;
    exit(0);
}

static void *interrupt(void *thread)
{
    usleep(50000);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

/* The thread waits inside the driver, and a handler calls exit there: what the program's exit
 * handlers do with the driver must still come to its end. */
static void a_wait_may_end_in_exit(void)
{
    pthread_t self = pthread_self();
    pthread_t thread;

    alarm(30);
    OK(cudaFree(NULL));
    signal(SIGUSR1, leave);
    atexit(work_after_exit);
    OK(sim_spin(60000000, NULL));
    pthread_create(&thread, NULL, interrupt, &self);
    OK(cudaStreamSynchronize(NULL));
}
#endif

static const struct check_case cases[] = {
    {"delays_pass_in_the_background", delays_pass_in_the_background, NULL, 0},
    {"there_is_no_thread_without_delays", there_is_no_thread_without_delays, NULL, 0},
#if HAS_PROMPT_SIGNALS
    {"a_wait_may_end_in_exit", a_wait_may_end_in_exit, NULL, 42},
#endif
};

CHECK_MAIN(cases)
