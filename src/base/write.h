/* SPDX-License-Identifier: MIT */
/* Writing to a descriptor in a process that is not ours. */
#ifndef CCA_BASE_WRITE_H
#define CCA_BASE_WRITE_H

#include <stdbool.h>
#include <stddef.h>

/* All len bytes, by write(2), again where it was interrupted or took a part. 0 or a negative errno:
 * -EPIPE where the reader went away, -EFBIG where the process's limit of a file's size is met; the
 * signals that end a process then (SIGPIPE, SIGXFSZ) do not reach it. Keeps errno; never in a
 * handler of one of these signals. Any thread, no lock. */
int cca_write_fully(int fd, const void *data, size_t len);

/* Whether a write of up to PIPE_BUF bytes would not block; waits up to so many milliseconds for it.
 * Also true where the write would fail at once. */
bool cca_write_has_room(int fd, int wait_ms);

#endif
