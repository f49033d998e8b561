/* SPDX-License-Identifier: MIT */
/* Memory that other processes can map. The system names a piece by the process that made it and a
 * file descriptor there, so nothing is left behind when that one ends. */
#ifndef SIM_SHARE_H
#define SIM_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A piece for others to open: offset bytes into the file lies what was asked for. */
struct sim_share {
    pid_t process;
    int fd;
    uint64_t offset;
    uint64_t file_bytes;
};

/* Memory in a file of its own; NULL when the system refuses. */
void *sim_share_create(size_t size_bytes, int *fd_out);
/* Puts payload of a device's space into a file, whole chunks at a time, where it is not yet. */
bool sim_share_payload(char *payload, size_t size_bytes, struct sim_share *share_out);
/* Maps a whole file; a descriptor of this process, or one of another (share). */
void *sim_share_map(int fd, size_t size_bytes);
/* NULL: there is no such process or piece any more. The descriptor is closed again. */
void *sim_share_open(const struct sim_share *share);

#endif
