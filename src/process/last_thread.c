/* SPDX-License-Identifier: MIT */
#include "process/last_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/format.h"

enum { LIST_BYTES = 2048, STAT_BYTES = 128 };

/* struct linux_dirent64, which the C library does not show. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

static atomic_bool main_has_ended;

/* The destructor of a thread's own value: exit does not run it, pthread_exit does. */
static void note_main(void *wake)
{
    atomic_store(&main_has_ended, true);
    sem_post(wake);
}

void cca_last_thread_watch(sem_t *wake)
{
    pthread_key_t key;

    if (getpid() == gettid() && pthread_key_create(&key, note_main) == 0) {
        (void)pthread_setspecific(key, wake);
    }
}

bool cca_last_thread_main_has_ended(void)
{
    return atomic_load(&main_has_ended);
}

/* Its state is the letter behind the name in parentheses; one that is gone counts as dead. */
static bool is_alive(const char *thread)
{
    char path[64], stat[STAT_BYTES];
    ssize_t len = 0;
    int fd;

    cca_format(path, sizeof(path), "/proc/self/task/%s/stat", thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, stat, sizeof(stat) - 1);
        close(fd);
    }
    stat[len > 0 ? len : 0] = '\0';
    const char *end = strrchr(stat, ')');
    return end != NULL && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

/* In doubt it is not alone. */
bool cca_last_thread_is_alone(void)
{
    _Alignas(struct entry) char list[LIST_BYTES];
    char own[24];
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_alone = fd >= 0;
    long len;

    cca_format(own, sizeof(own), "%d", (int)gettid());
    while (is_alone && (len = syscall(SYS_getdents64, fd, list, sizeof(list))) != 0) {
        is_alone = len > 0;
        for (long at = 0; is_alone && at < len;) {
            const struct entry *entry = (const void *)&list[at];

            is_alone = entry->name[0] == '.' || strcmp(entry->name, own) == 0 ||
                       !is_alive(entry->name);
            at += entry->bytes;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return is_alone;
}
