/* SPDX-License-Identifier: MIT */
#include "base/write.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static int write_all(int fd, const unsigned char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EIO;
        }
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

static int signal_of(int error)
{
    return error == -EPIPE ? SIGPIPE : error == -EFBIG ? SIGXFSZ : 0;
}

/* The kernel sends both to the thread that writes: one that this write raised waits there, blocked,
 * and is taken back. */
static void take_back(int signal)
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, signal);
    while (sigtimedwait(&one, NULL, &(struct timespec){0}) < 0 && errno == EINTR) {
    }
}

int cca_write_fully(int fd, const void *data, size_t len)
{
    int saved_errno = errno;
    sigset_t ours, before, pending;
    int error, raised;

    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigemptyset(&pending);
    sigpending(&pending);
    error = pthread_sigmask(SIG_BLOCK, &ours, &before);
    if (error != 0) {
        return -error;
    }
    error = write_all(fd, data, len);
    raised = signal_of(error);
    if (raised != 0 && sigismember(&pending, raised) != 1) {
        take_back(raised);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved_errno;
    return error;
}
