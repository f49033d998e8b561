/* SPDX-License-Identifier: MIT */
/* Threads of the library's own. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "process/state.h"

/* Symbol look-up and writers need little; the rest is room for the thread-local storage of the
 * program's libraries, which the C library takes from the stack. */
enum { STACK_BYTES = 1 << 20 };

static int create(void *(*body)(void *), void *user, size_t stack_bytes)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc = pthread_attr_init(&attr);

    if (rc != 0) {
        return -rc;
    }
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack_bytes != 0) {
        pthread_attr_setstacksize(&attr, stack_bytes);
    }
    rc = pthread_create(&thread, &attr, body, user);
    pthread_attr_destroy(&attr);
    return -rc;
}

int cca_helper_thread_start(void *(*body)(void *), void *user)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = create(body, user, STACK_BYTES);
    if (rc == -EINVAL) {
        rc = create(body, user, 0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
