/* SPDX-License-Identifier: MIT */
#include "snapshot/write_pickle.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "snapshot/idmap.h"
#include "snapshot/utf8.h"
#include "snapshot/walk.h"
#include "snapshot/writer.h"

enum opcode {
    OP_PROTO = 0x80,
    OP_STOP = '.',
    OP_MARK = '(',
    OP_EMPTY_DICT = '}',
    OP_SETITEMS = 'u',
    OP_EMPTY_LIST = ']',
    OP_APPENDS = 'e',
    OP_TUPLE = 't',
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_EMPTY_TUPLE = ')',
    OP_NONE = 'N',
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_LONG1 = 0x8a,
    OP_BINFLOAT = 'G',
    OP_BINUNICODE = 'X',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j'
};

enum {
    BATCH = 1000, /* the web viewer passes a batch as call arguments, of which there is a limit */
    MAX_DEPTH = 16,
    SHORT_INDICES = 256, /* of the memo: these are referred to in two bytes, the rest in five */
    STAGE_BYTES = 1024,
    OP_BYTES = 9 /* the longest opcode with a number */
};

struct level {
    unsigned char batch_op; /* APPENDS or SETITEMS; TUPLE in a tuple */
    size_t count;           /* items so far; of a tuple: all */
};

struct pickle {
    struct cca_writer writer;
    struct cca_sink *sink;
    struct level levels[MAX_DEPTH];
    unsigned depth;
    /* The next index below and from SHORT_INDICES. Stacks, frames and their texts take long ones,
     * to leave the short ones to what every event repeats. */
    uint32_t next_short, next_long;
    unsigned shared_depth;  /* inside so many shared parts */
    struct cca_idmap texts; /* address of a stable text -> 1 + memo index */
    uint32_t *shared;       /* 1 + memo index, by id; NULL when there was no memory */
    size_t shared_count;
    /* Most opcodes are one or two bytes, a call each would be most of the work. */
    size_t staged;
    unsigned char stage[STAGE_BYTES];
};

static struct pickle *pickle_of(struct cca_writer *writer)
{
    return (struct pickle *)writer;
}

static void flush_stage(struct pickle *pickle)
{
    cca_sink_bytes(pickle->sink, pickle->stage, pickle->staged);
    pickle->staged = 0;
}

/* Where the next `bytes`, few, are to be stored. */
static inline unsigned char *stage_for(struct pickle *pickle, size_t bytes)
{
    if (pickle->staged + bytes > STAGE_BYTES) {
        flush_stage(pickle);
    }
    return pickle->stage + pickle->staged;
}

static void put_op(struct pickle *pickle, enum opcode op)
{
    *stage_for(pickle, 1) = (unsigned char)op;
    pickle->staged++;
}

static void put_op_bytes(struct pickle *pickle, unsigned op, uint64_t value, unsigned bytes)
{
    unsigned char *out = stage_for(pickle, OP_BYTES);
    uint64_t little_endian = htole64(value);

    out[0] = (unsigned char)op;
    memcpy(out + 1, &little_endian, sizeof(little_endian));
    pickle->staged += 1 + bytes;
}

static void put_bytes(struct pickle *pickle, const char *bytes, size_t len)
{
    if (len > STAGE_BYTES / 2) {
        flush_stage(pickle);
        cca_sink_bytes(pickle->sink, bytes, len);
        return;
    }
    memcpy(stage_for(pickle, len), bytes, len);
    pickle->staged += len;
}

static void put_memo_op(struct pickle *pickle, enum opcode short_op, enum opcode long_op,
                        uint32_t index)
{
    bool is_short = index < SHORT_INDICES;

    put_op_bytes(pickle, is_short ? short_op : long_op, index, is_short ? 1 : 4);
}

static void memo_get(struct pickle *pickle, uint32_t index)
{
    put_memo_op(pickle, OP_BINGET, OP_LONG_BINGET, index);
}

/* Remembers the value on top of the stack; returns 1 + its index. */
static uint32_t memo_put(struct pickle *pickle)
{
    bool is_short = pickle->shared_depth == 0 && pickle->next_short < SHORT_INDICES;
    uint32_t index = is_short ? pickle->next_short++ : pickle->next_long++;

    put_memo_op(pickle, OP_BINPUT, OP_LONG_BINPUT, index);
    return index + 1;
}

/* Before a list's item or a dict's key: opens a batch, and closes a full one. */
static void count_item(struct pickle *pickle, struct level *level)
{
    if (level->count % BATCH == 0) {
        if (level->count > 0) {
            put_op(pickle, level->batch_op);
        }
        put_op(pickle, OP_MARK);
    }
    level->count++;
}

/* Before any value. A dict counts its keys instead. */
static void begin_value(struct pickle *pickle)
{
    struct level *level = &pickle->levels[pickle->depth];

    if (level->batch_op == OP_APPENDS) {
        count_item(pickle, level);
    }
}

static void push(struct pickle *pickle, enum opcode batch_op, size_t count)
{
    if (pickle->depth + 1 >= MAX_DEPTH) {
        if (pickle->sink->error == 0) {
            pickle->sink->error = -EOVERFLOW;
        }
        return;
    }
    pickle->levels[++pickle->depth] = (struct level){.batch_op = (unsigned char)batch_op,
                                                     .count = count};
}

static void pop_batched(struct pickle *pickle)
{
    struct level *level = &pickle->levels[pickle->depth];

    if (level->count > 0) {
        put_op(pickle, level->batch_op);
    }
    if (pickle->depth > 0) {
        pickle->depth--;
    }
}

static void dict_begin(struct cca_writer *writer)
{
    struct pickle *pickle = pickle_of(writer);

    begin_value(pickle);
    put_op(pickle, OP_EMPTY_DICT);
    push(pickle, OP_SETITEMS, 0);
}

static void dict_end(struct cca_writer *writer)
{
    pop_batched(pickle_of(writer));
}

static void list_begin(struct cca_writer *writer)
{
    struct pickle *pickle = pickle_of(writer);

    begin_value(pickle);
    put_op(pickle, OP_EMPTY_LIST);
    push(pickle, OP_APPENDS, 0);
}

static void list_end(struct cca_writer *writer)
{
    pop_batched(pickle_of(writer));
}

static void tuple_begin(struct cca_writer *writer, size_t count)
{
    struct pickle *pickle = pickle_of(writer);

    begin_value(pickle);
    if (count > 3) {
        put_op(pickle, OP_MARK);
    }
    push(pickle, OP_TUPLE, count);
}

static void tuple_end(struct cca_writer *writer)
{
    static const unsigned char ops[] = {OP_EMPTY_TUPLE, OP_TUPLE1, OP_TUPLE2, OP_TUPLE3};
    struct pickle *pickle = pickle_of(writer);
    size_t count = pickle->levels[pickle->depth].count;

    put_op(pickle, count <= 3 ? ops[count] : OP_TUPLE);
    if (pickle->depth > 0) {
        pickle->depth--;
    }
}

static void put_clean_text(struct pickle *pickle, const char *text)
{
    size_t len = strlen(text);
    size_t clean_len;

    /* The length field has 32 bits; no name comes near. */
    len = len < INT32_MAX / CCA_UTF8_REPLACEMENT_BYTES ? len : 0;
    clean_len = cca_utf8_clean_bytes(text, len);
    put_op_bytes(pickle, OP_BINUNICODE, clean_len, 4);
    if (clean_len == len) {
        /* A bad byte always makes the text longer. */
        put_bytes(pickle, text, len);
        return;
    }
    for (size_t at = 0; at < len;) {
        size_t bytes = cca_utf8_sequence(text + at, len - at);

        if (bytes > 0) {
            put_bytes(pickle, text + at, bytes);
            at += bytes;
        } else {
            put_bytes(pickle, CCA_UTF8_REPLACEMENT, CCA_UTF8_REPLACEMENT_BYTES);
            at++;
        }
    }
}

static void put_text(struct pickle *pickle, const char *text, bool is_stable)
{
    uint32_t *memo = is_stable ? cca_idmap_at(&pickle->texts, (uintptr_t)text) : NULL;

    if (memo != NULL && *memo != 0) {
        memo_get(pickle, *memo - 1);
        return;
    }
    put_clean_text(pickle, text);
    if (memo != NULL) {
        *memo = memo_put(pickle);
    }
}

static void put_key(struct cca_writer *writer, const char *key, bool is_stable)
{
    struct pickle *pickle = pickle_of(writer);

    count_item(pickle, &pickle->levels[pickle->depth]);
    put_text(pickle, key, is_stable);
}

static void put_string(struct cca_writer *writer, const char *str, bool is_stable)
{
    begin_value(pickle_of(writer));
    put_text(pickle_of(writer), str, is_stable);
}

static void put_int(struct cca_writer *writer, int64_t value)
{
    struct pickle *pickle = pickle_of(writer);

    begin_value(pickle);
    if (value >= 0 && value <= UINT8_MAX) {
        put_op_bytes(pickle, OP_BININT1, (uint64_t)value, 1);
    } else if (value >= 0 && value <= UINT16_MAX) {
        put_op_bytes(pickle, OP_BININT2, (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put_op_bytes(pickle, OP_BININT, (uint64_t)value, 4);
    } else {
        /* Always 8 bytes: a shorter one is negative when its top bit is set, and the viewer turns
         * longer ones into big integers that it cannot mix with numbers. */
        put_op(pickle, OP_LONG1);
        put_op_bytes(pickle, 8, (uint64_t)value, 8);
    }
}

static void put_uint(struct cca_writer *writer, uint64_t value)
{
    put_int(writer, value <= INT64_MAX ? (int64_t)value : INT64_MAX);
}

static void put_double(struct cca_writer *writer, double value)
{
    uint64_t bits;

    begin_value(pickle_of(writer));
    memcpy(&bits, &value, sizeof(bits));
    /* The one number that is stored big end first. */
    put_op_bytes(pickle_of(writer), OP_BINFLOAT, le64toh(htobe64(bits)), 8);
}

static void put_bool(struct cca_writer *writer, bool value)
{
    begin_value(pickle_of(writer));
    put_op(pickle_of(writer), value ? OP_NEWTRUE : OP_NEWFALSE);
}

static void put_none(struct cca_writer *writer)
{
    begin_value(pickle_of(writer));
    put_op(pickle_of(writer), OP_NONE);
}

static bool shared_begin(struct cca_writer *writer, size_t id)
{
    struct pickle *pickle = pickle_of(writer);

    if (pickle->shared == NULL || id >= pickle->shared_count || pickle->shared[id] == 0) {
        pickle->shared_depth++;
        return true;
    }
    begin_value(pickle);
    memo_get(pickle, pickle->shared[id] - 1);
    return false;
}

static void shared_end(struct cca_writer *writer, size_t id)
{
    struct pickle *pickle = pickle_of(writer);

    if (pickle->shared != NULL && id < pickle->shared_count) {
        pickle->shared[id] = memo_put(pickle);
    }
    pickle->shared_depth--;
}

static const struct cca_writer_ops pickle_ops = {
    .dict_begin = dict_begin,
    .dict_end = dict_end,
    .list_begin = list_begin,
    .list_end = list_end,
    .tuple_begin = tuple_begin,
    .tuple_end = tuple_end,
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

void cca_write_pickle(struct cca_model *model, struct cca_sink *sink)
{
    size_t shared_count = cca_walk_shared_count(model);
    struct pickle pickle = {
        .writer = {&pickle_ops},
        .sink = sink,
        .next_long = SHORT_INDICES,
        .shared = cca_model_array(model, shared_count, sizeof(uint32_t)),
        .shared_count = shared_count,
    };

    cca_idmap_init(&pickle.texts, &model->arena);
    put_op_bytes(&pickle, OP_PROTO, 2, 1);
    cca_walk_model(model, &pickle.writer);
    put_op(&pickle, OP_STOP);
    flush_stage(&pickle);
}
