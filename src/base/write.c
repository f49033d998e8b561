/* SPDX-License-Identifier: MIT */
#include "base/write.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"

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
    int cancel = cca_cancel_hold();
    int error, raised;

    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigemptyset(&pending);
    sigpending(&pending);
    error = pthread_sigmask(SIG_BLOCK, &ours, &before);
    if (error != 0) {
        cca_cancel_restore(cancel);
        return -error;
    }
    error = write_all(fd, data, len);
    raised = signal_of(error);
    if (raised != 0 && sigismember(&pending, raised) != 1) {
        take_back(raised);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    cca_cancel_restore(cancel);
    errno = saved_errno;
    return error;
}

bool cca_write_has_room(int fd, int wait_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    int saved_errno = errno;
    int cancel = cca_cancel_hold();
    /* Interrupted: as if the time were over, so that signals cannot hold the caller here. */
    bool has_room = poll(&poll_fd, 1, wait_ms) == 1;

    cca_cancel_restore(cancel);
    errno = saved_errno;
    return has_room;
}
