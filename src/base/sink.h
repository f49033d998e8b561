/* SPDX-License-Identifier: MIT */
/* Buffered output to a file descriptor or a callback. The first error sticks: later writes do
 * nothing and cca_sink_finish reports it. Short writes and EINTR are retried. No malloc. Not
 * thread-safe. */
#ifndef CCA_BASE_SINK_H
#define CCA_BASE_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Takes all `len` bytes and returns 0, or a negative errno. */
typedef int (*cca_sink_fn)(void *user, const void *data, size_t len);

struct cca_sink {
    cca_sink_fn write;
    void *user;
    int fd;
    int error;              /* 0 or the first negative errno */
    uint64_t written_bytes; /* passed on so far, without what waits in buf */
    size_t len;
    unsigned char buf[16384];
};

void cca_sink_init_fd(struct cca_sink *sink, int fd);
void cca_sink_init_fn(struct cca_sink *sink, cca_sink_fn write, void *user);
void cca_sink_bytes(struct cca_sink *sink, const void *data, size_t len);
void cca_sink_byte(struct cca_sink *sink, unsigned char byte);
void cca_sink_str(struct cca_sink *sink, const char *str);
void cca_sink_u64(struct cca_sink *sink, uint64_t value);
void cca_sink_i64(struct cca_sink *sink, int64_t value);

/* Flushes; returns 0 or the first error. */
CCA_MUST_CHECK int cca_sink_finish(struct cca_sink *sink);

#endif
