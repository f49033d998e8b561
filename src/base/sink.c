/* SPDX-License-Identifier: MIT */
#include "base/sink.h"

#include <errno.h>
#include <string.h>

#include "base/format.h"
#include "base/write.h"

static void pass_on(struct cca_sink *sink, const void *data, size_t len)
{
    int saved_errno = errno;
    int rc;

    if (sink->error != 0 || len == 0) {
        return;
    }
    rc = sink->write != NULL ? sink->write(sink->user, data, len)
                             : cca_write_fully(sink->fd, data, len);
    if (rc != 0) {
        sink->error = rc;
    } else {
        sink->written_bytes += len;
    }
    errno = saved_errno;
}

static void flush(struct cca_sink *sink)
{
    pass_on(sink, sink->buf, sink->len);
    sink->len = 0;
}

static void init(struct cca_sink *sink, int fd, cca_sink_fn write, void *user)
{
    sink->write = write;
    sink->user = user;
    sink->fd = fd;
    sink->error = 0;
    sink->written_bytes = 0;
    sink->len = 0;
}

void cca_sink_init_fd(struct cca_sink *sink, int fd)
{
    init(sink, fd, NULL, NULL);
}

void cca_sink_init_fn(struct cca_sink *sink, cca_sink_fn write, void *user)
{
    init(sink, -1, write, user);
}

void cca_sink_bytes(struct cca_sink *sink, const void *data, size_t len)
{
    if (sink->error != 0) {
        return;
    }
    if (len > sizeof(sink->buf) - sink->len) {
        flush(sink);
    }
    if (len >= sizeof(sink->buf)) {
        pass_on(sink, data, len);
        return;
    }
    if (len > 0) {
        memcpy(sink->buf + sink->len, data, len);
        sink->len += len;
    }
}

void cca_sink_byte(struct cca_sink *sink, unsigned char byte)
{
    cca_sink_bytes(sink, &byte, 1);
}

void cca_sink_str(struct cca_sink *sink, const char *str)
{
    cca_sink_bytes(sink, str, strlen(str));
}

void cca_sink_u64(struct cca_sink *sink, uint64_t value)
{
    char digits[24];
    struct cca_text text;

    cca_text_init(&text, digits, sizeof(digits));
    cca_text_u64(&text, value);
    cca_sink_bytes(sink, digits, text.len);
}

void cca_sink_i64(struct cca_sink *sink, int64_t value)
{
    char digits[24];
    struct cca_text text;

    cca_text_init(&text, digits, sizeof(digits));
    cca_text_i64(&text, value);
    cca_sink_bytes(sink, digits, text.len);
}

int cca_sink_finish(struct cca_sink *sink)
{
    flush(sink);
    return sink->error;
}
