/* SPDX-License-Identifier: MIT */
/* A snapshot on disk: its name, and that it is there whole or not at all. */
#ifndef CCA_SNAPSHOT_FILE_H
#define CCA_SNAPSHOT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/sink.h"
#include "snapshot/model.h"

/* Writes the whole document; errors stick in the sink. cca_write_pickle and its like. */
typedef void (*cca_dump_write_fn)(struct cca_model *model, struct cca_sink *sink);

struct cca_dump_request {
    /* %h host, %p pid, %r rank ("none" without one), %n sequence, %e program, %t UTC time,
     * %c cause, %% a percent sign; anything else stays as it is. A slash in a value becomes "_". A
     * pattern that ends in a slash is a folder for files of the default name. */
    const char *pattern;
    const char *suffix;        /* ".pickle" */
    const char *directory;     /* absolute: where a relative pattern starts */
    const char *tmp_directory; /* used when the folder is not writable, before /tmp; or NULL */
    uint64_t sequence;
    cca_dump_write_fn write;
    /* NULL: nobody wants to know. Told now and then how many bytes have been written. */
    void (*tell)(void *user, uint64_t written_bytes);
    void *user;
};

struct cca_dump_result {
    char path[PATH_MAX]; /* where the file is; where it should have been on error */
    bool is_elsewhere;   /* in tmp_directory or /tmp, since the folder was not writable */
};

/* Writes to a hidden temporary file in the same folder and renames it when it is complete and
 * closed. Never overwrites: "-1", "-2", ... goes before the suffix. Mode 0600. On error nothing is
 * left, and a negative errno is returned; `result` is valid either way. No malloc; the buffers come
 * from the model's arena. Calls write(), so never under a lock or in a handler. */
int cca_dump_file_write(struct cca_model *model, const struct cca_dump_request *request,
                        struct cca_dump_result *result) CCA_MUST_CHECK;

/* A descriptor that is none of the three standard ones, closed on exec; the given one is closed
 * where it was. Negative errno. */
int cca_dump_file_lift(int fd);

/* The pattern with its values, without the suffix; false when it was cut to fit. */
bool cca_dump_file_expand(const struct cca_model *model, const struct cca_dump_request *request,
                          char *buf, size_t cap);

#endif
