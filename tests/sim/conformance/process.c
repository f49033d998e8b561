/* SPDX-License-Identifier: MIT */
#include "process.h"

#include "rule.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int link_ends[2];

void process_tell(const void *message, size_t bytes)
{
    CHECK_EQ(write(link_ends[1], message, bytes), bytes);
}

void process_hear(void *message, size_t bytes)
{
    CHECK_EQ(read(link_ends[0], message, bytes), bytes);
}

pid_t process_split(void (*child_part)(void))
{
    int ends[2];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork();
    link_ends[0] = link_ends[1] = ends[child == 0];
    close(ends[child != 0]);
    if (child == 0) {
        child_part();
        exit(0);
    }
    return child;
}

void process_end(pid_t child)
{
    int status;

    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void process_tell_fd(int fd)
{
    char byte = 0;
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    CHECK_EQ(sendmsg(link_ends[1], &message, 0), 1);
}

int process_hear_fd(void)
{
    char byte;
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    int fd = -1;

    CHECK_EQ(recvmsg(link_ends[0], &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}
