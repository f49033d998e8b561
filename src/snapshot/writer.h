/* SPDX-License-Identifier: MIT */
/* The operations that every structured format implements; cca_walk_model calls them in document
 * order. Errors stick in the format's sink. A writer is used by one thread. */
#ifndef CCA_SNAPSHOT_WRITER_H
#define CCA_SNAPSHOT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cca_writer;

struct cca_writer_ops {
    void (*dict_begin)(struct cca_writer *writer);
    void (*dict_end)(struct cca_writer *writer);
    void (*list_begin)(struct cca_writer *writer);
    void (*list_end)(struct cca_writer *writer);
    void (*tuple_begin)(struct cca_writer *writer, size_t count);
    void (*tuple_end)(struct cca_writer *writer);

    /* A key, before its value. `is_stable`: as for string. */
    void (*key)(struct cca_writer *writer, const char *key, bool is_stable);
    void (*put_int)(struct cca_writer *writer, int64_t value);
    void (*put_uint)(struct cca_writer *writer, uint64_t value);
    /* `is_stable`: these bytes stay at this address until the document ends, so that a format may
     * write them once and refer to them afterwards. Need not be UTF-8. */
    void (*string)(struct cca_writer *writer, const char *str, bool is_stable);
    void (*put_double)(struct cca_writer *writer, double value);
    void (*put_bool)(struct cca_writer *writer, bool value);
    void (*none)(struct cca_writer *writer);

    /* A value that occurs several times, numbered densely from 0. False: a reference to the first
     * one was written and the caller is done; true: the caller writes the value, then shared_end.
     */
    bool (*shared_begin)(struct cca_writer *writer, size_t id);
    void (*shared_end)(struct cca_writer *writer, size_t id);
};

/* First member of each format's own struct. */
struct cca_writer {
    const struct cca_writer_ops *ops;
};

static inline void cca_writer_dict_begin(struct cca_writer *writer)
{
    writer->ops->dict_begin(writer);
}

static inline void cca_writer_dict_end(struct cca_writer *writer)
{
    writer->ops->dict_end(writer);
}

static inline void cca_writer_list_begin(struct cca_writer *writer)
{
    writer->ops->list_begin(writer);
}

static inline void cca_writer_list_end(struct cca_writer *writer)
{
    writer->ops->list_end(writer);
}

/* The key must be a literal or live in the model. */
static inline void cca_writer_key(struct cca_writer *writer, const char *key)
{
    writer->ops->key(writer, key, true);
}

static inline void cca_writer_int(struct cca_writer *writer, const char *key, int64_t value)
{
    cca_writer_key(writer, key);
    writer->ops->put_int(writer, value);
}

static inline void cca_writer_uint(struct cca_writer *writer, const char *key, uint64_t value)
{
    cca_writer_key(writer, key);
    writer->ops->put_uint(writer, value);
}

/* A stable text, NULL as an empty one. */
static inline void cca_writer_string(struct cca_writer *writer, const char *key, const char *str)
{
    cca_writer_key(writer, key);
    writer->ops->string(writer, str != NULL ? str : "", true);
}

static inline void cca_writer_double(struct cca_writer *writer, const char *key, double value)
{
    cca_writer_key(writer, key);
    writer->ops->put_double(writer, value);
}

static inline void cca_writer_bool(struct cca_writer *writer, const char *key, bool value)
{
    cca_writer_key(writer, key);
    writer->ops->put_bool(writer, value);
}

#endif
