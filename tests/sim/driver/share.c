/* SPDX-License-Identifier: MIT */
#include "share.h"

#include "space.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A piece of a device's payload that lies in a file. */
struct region {
    struct region *next;
    char *start;
    char *end;
    int fd;
};

static struct region *regions;

void *sim_share_map(int fd, size_t size_bytes)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

static int create_file(size_t size_bytes)
{
    int fd = memfd_create("simcuda", MFD_CLOEXEC);

    if (fd >= 0 && ftruncate(fd, (off_t)size_bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void *sim_share_create(size_t size_bytes, int *fd_out)
{
    int fd = create_file(size_bytes);
    void *memory = fd >= 0 ? sim_share_map(fd, size_bytes) : NULL;

    if (memory == NULL && fd >= 0) {
        close(fd);
    }
    *fd_out = fd;
    return memory;
}

/* Pieces that overlap held memory that is free again: a new file takes over what they hold. */
static void forget_overlaps(const char *start, const char *end)
{
    struct region **link = &regions;

    while (*link != NULL) {
        struct region *region = *link;
        if (region->end <= start || end <= region->start) {
            link = &region->next;
            continue;
        }
        *link = region->next;
        close(region->fd);
        free(region);
    }
}

static struct region *move_to_file(char *start, char *end)
{
    size_t size = (size_t)(end - start);
    int fd = create_file(size);
    char *copy = fd >= 0 ? sim_share_map(fd, size) : NULL;

    if (copy == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    memcpy(copy, start, size);
    munmap(copy, size);
    if (mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    forget_overlaps(start, end);
    struct region *region = calloc(1, sizeof(*region));
    *region = (struct region){.next = regions, .start = start, .end = end, .fd = fd};
    regions = region;
    return region;
}

bool sim_share_payload(char *payload, size_t size_bytes, struct sim_share *share_out)
{
    struct region *region = regions;
    char *end = payload + size_bytes;

    while (region != NULL && (payload < region->start || region->end < end)) {
        region = region->next;
    }
    if (region == NULL) {
        size_t chunk = SIM_CHUNK_BYTES;
        region = move_to_file((char *)((uint64_t)payload / chunk * chunk),
                              (char *)(((uint64_t)end + chunk - 1) / chunk * chunk));
    }
    if (region == NULL) {
        return false;
    }
    *share_out = (struct sim_share){.process = getpid(),
                                    .fd = region->fd,
                                    .offset = (uint64_t)(payload - region->start),
                                    .file_bytes = (uint64_t)(region->end - region->start)};
    return true;
}

void *sim_share_open(const struct sim_share *share)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)share->process, share->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    void *memory = sim_share_map(fd, share->file_bytes);
    close(fd);
    return memory;
}
