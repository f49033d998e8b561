/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/last_thread.h"

static sem_t wake, go_on;

static void *wait_here(void *unused)
{
    while (sem_wait(&go_on) != 0) {
    }
    return unused;
}

static void other_threads_are_seen(void **state)
{
    pthread_t threads[3];

    (void)state;
    sem_init(&go_on, 0, 0);
    assert_true(cca_last_thread_is_alone());
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_here, NULL), 0);
    }
    assert_false(cca_last_thread_is_alone());
    for (int i = 0; i < 3; i++) {
        sem_post(&go_on);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(cca_last_thread_is_alone());
}

/* The child ends in the middle of a test, with what the frame of the tests holds. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* What our own thread does: it is woken by the end of main, and leaves once it is alone. */
static void *be_last(void *unused)
{
    while (!cca_last_thread_main_has_ended()) {
        sem_wait(&wake);
    }
    while (!cca_last_thread_is_alone()) {
        usleep(1000);
    }
    return unused;
}

static void main_ends_and_the_process_ends_with_its_last_thread(void **state)
{
    int status = -1;
    pid_t child;

    (void)state;
    fflush(stdout);
    child = fork();
    if (child == 0) {
        pthread_t thread;

        alarm(30);
        sem_init(&wake, 0, 0);
        cca_last_thread_watch(&wake);
        if (cca_last_thread_main_has_ended() || pthread_create(&thread, NULL, be_last, NULL) != 0) {
            _exit(1);
        }
        pthread_exit(NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_threads_are_seen),
        cmocka_unit_test(main_ends_and_the_process_ends_with_its_last_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
