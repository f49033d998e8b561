/* SPDX-License-Identifier: MIT */
#include "snapshot/write_json.h"

#include <string.h>

#include "base/format.h"
#include "snapshot/utf8.h"
#include "snapshot/walk.h"
#include "snapshot/writer.h"

struct json {
    struct cca_writer writer;
    struct cca_sink *sink;
    bool needs_comma; /* before the next item of the innermost container */
};

static struct json *json_of(struct cca_writer *writer)
{
    return (struct json *)writer;
}

static void begin_item(struct json *json)
{
    if (json->needs_comma) {
        cca_sink_byte(json->sink, ',');
    }
    json->needs_comma = true;
}

static void open_container(struct cca_writer *writer, unsigned char bracket)
{
    struct json *json = json_of(writer);

    begin_item(json);
    cca_sink_byte(json->sink, bracket);
    json->needs_comma = false;
}

static void close_container(struct cca_writer *writer, unsigned char bracket)
{
    cca_sink_byte(json_of(writer)->sink, bracket);
    json_of(writer)->needs_comma = true;
}

static void dict_begin(struct cca_writer *writer)
{
    open_container(writer, '{');
}

static void dict_end(struct cca_writer *writer)
{
    close_container(writer, '}');
}

static void list_begin(struct cca_writer *writer)
{
    open_container(writer, '[');
}

static void list_end(struct cca_writer *writer)
{
    close_container(writer, ']');
}

static void tuple_begin(struct cca_writer *writer, size_t count)
{
    (void)count;
    open_container(writer, '[');
}

/* The bytes at `text` as they stand inside quotes; returns how many were used. */
static size_t put_escaped(struct cca_sink *sink, const char *text, size_t left)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char c = (unsigned char)text[0];
    size_t bytes = cca_utf8_sequence(text, left);

    if (bytes == 0) {
        cca_sink_bytes(sink, CCA_UTF8_REPLACEMENT, CCA_UTF8_REPLACEMENT_BYTES);
        return 1;
    }
    if (c == '"' || c == '\\') {
        cca_sink_byte(sink, '\\');
    } else if (c < 0x20 || c == 0x7f) {
        const char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

        cca_sink_bytes(sink, escape, sizeof(escape));
        return 1;
    }
    cca_sink_bytes(sink, text, bytes);
    return bytes;
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_quoted(struct json *json, const char *text)
{
    size_t len = strlen(text);

    cca_sink_byte(json->sink, '"');
    for (size_t at = 0; at < len;) {
        size_t run = 0;

        while (at + run < len && is_plain(text[at + run])) {
            run++;
        }
        cca_sink_bytes(json->sink, text + at, run);
        at += run;
        if (at < len) {
            at += put_escaped(json->sink, text + at, len - at);
        }
    }
    cca_sink_byte(json->sink, '"');
}

static void put_key(struct cca_writer *writer, const char *key, bool is_stable)
{
    struct json *json = json_of(writer);

    (void)is_stable;
    begin_item(json);
    put_quoted(json, key);
    cca_sink_byte(json->sink, ':');
    json->needs_comma = false;
}

static void put_string(struct cca_writer *writer, const char *str, bool is_stable)
{
    (void)is_stable;
    begin_item(json_of(writer));
    put_quoted(json_of(writer), str);
}

static void put_int(struct cca_writer *writer, int64_t value)
{
    begin_item(json_of(writer));
    cca_sink_i64(json_of(writer)->sink, value);
}

static void put_uint(struct cca_writer *writer, uint64_t value)
{
    begin_item(json_of(writer));
    cca_sink_u64(json_of(writer)->sink, value);
}

static void put_double(struct cca_writer *writer, double value)
{
    char buf[352];
    struct cca_text text;

    begin_item(json_of(writer));
    cca_text_init(&text, buf, sizeof(buf));
    if (__builtin_isfinite(value)) {
        cca_text_double(&text, value, 9);
    } else {
        cca_text_str(&text, "null");
    }
    cca_sink_bytes(json_of(writer)->sink, buf, text.len);
}

static void put_bool(struct cca_writer *writer, bool value)
{
    begin_item(json_of(writer));
    cca_sink_str(json_of(writer)->sink, value ? "true" : "false");
}

static void put_none(struct cca_writer *writer)
{
    begin_item(json_of(writer));
    cca_sink_str(json_of(writer)->sink, "null");
}

/* JSON has no references: every occurrence is written. */
static bool shared_begin(struct cca_writer *writer, size_t id)
{
    (void)writer;
    (void)id;
    return true;
}

static void shared_end(struct cca_writer *writer, size_t id)
{
    (void)writer;
    (void)id;
}

static const struct cca_writer_ops json_ops = {
    .dict_begin = dict_begin,
    .dict_end = dict_end,
    .list_begin = list_begin,
    .list_end = list_end,
    .tuple_begin = tuple_begin,
    .tuple_end = list_end,
    .key = put_key,
    .put_int = put_int,
    .put_uint = put_uint,
    .string = put_string,
    .put_double = put_double,
    .put_bool = put_bool,
    .none = put_none,
    .shared_begin = shared_begin,
    .shared_end = shared_end,
};

void cca_write_json(struct cca_model *model, struct cca_sink *sink)
{
    struct json json = {.writer = {&json_ops}, .sink = sink};

    cca_walk_model(model, &json.writer);
    cca_sink_byte(sink, '\n');
}
