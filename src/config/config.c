/* SPDX-License-Identifier: MIT */
#include "config/config.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/compiler.h"
#include "base/format.h"
#include "base/log.h"
#include "config/conf.h"
#include "config/parse.h"

enum kind {
    KIND_BOOL,
    KIND_SIZE,
    KIND_UINT,
    KIND_RATIO,
    KIND_ENUM,
    KIND_FLAGS,
    KIND_TEXT,
    KIND_SIGNAL
};

/* One row of options.def. min and max are of KIND_SIZE and KIND_UINT, words of KIND_ENUM and
 * KIND_FLAGS. */
struct option {
    enum kind kind;
    const char *name;
    size_t offset;
    uint64_t min, max;
    const char *words;
};

/* clang-format off */
static const struct option options[] = {
#define AT(field) offsetof(struct cca_config, field)
#define BOOL(field, name, def, help)           {KIND_BOOL, #name, AT(field), 0, 0, NULL},
#define SIZE(field, name, def, min, max, help) {KIND_SIZE, #name, AT(field), min, max, NULL},
#define UINT(field, name, def, min, max, help) {KIND_UINT, #name, AT(field), min, max, NULL},
#define RATIO(field, name, def, help)          {KIND_RATIO, #name, AT(field), 0, 0, NULL},
#define ENUM(field, name, def, words, help)    {KIND_ENUM, #name, AT(field), 0, 0, words},
#define FLAGS(field, name, def, words, help)   {KIND_FLAGS, #name, AT(field), 0, 0, words},
#define TEXT(field, name, def, help)           {KIND_TEXT, #name, AT(field), 0, 0, NULL},
#define SIGNAL(field, name, def, help)         {KIND_SIGNAL, #name, AT(field), 0, 0, NULL},
#include "config/options.def"
#undef AT
#undef BOOL
#undef SIZE
#undef UINT
#undef RATIO
#undef ENUM
#undef FLAGS
#undef TEXT
#undef SIGNAL
};

static const struct cca_config defaults = {
#define BOOL(field, name, def, help)           .field = (def),
#define SIZE(field, name, def, min, max, help) .field = (def),
#define UINT(field, name, def, min, max, help) .field = (def),
#define RATIO(field, name, def, help)          .field = (def),
#define ENUM(field, name, def, words, help)    .field = (def),
#define FLAGS(field, name, def, words, help)   .field = (def),
#define TEXT(field, name, def, help)           .field = def,
#define SIGNAL(field, name, def, help)         .field = (def),
#include "config/options.def"
#undef BOOL
#undef SIZE
#undef UINT
#undef RATIO
#undef ENUM
#undef FLAGS
#undef TEXT
#undef SIGNAL
};
/* clang-format on */

/* Announced variables. A name that has a row is found there first. */
static const char *const announced[] = {
    "CCA_PINNED",
    "CCA_RECORD_PINNED",
};

enum { INTERVAL_MAX_S = 86400 };

/* Room for a name, and for the remarks of a complaint. */
enum { NAME_MAX_BYTES = 64, REMARK_MAX_BYTES = CCA_CONFIG_TEXT_MAX + 128 };

struct reader {
    struct cca_config *config;
    cca_config_complaint_fn complain;
    void *user;
};

static const void *field_of(const struct cca_config *config, const struct option *option)
{
    return (const char *)config + option->offset;
}

static const struct option *find_option(const char *name)
{
    for (size_t i = 0; i < CCA_ARRAY_LEN(options); i++) {
        if (strcmp(options[i].name, name) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

static bool is_announced(const char *name)
{
    static const char family[] = "CCA_PINNED_";

    for (size_t i = 0; i < CCA_ARRAY_LEN(announced); i++) {
        if (strcmp(announced[i], name) == 0) {
            return true;
        }
    }
    return strncmp(name, family, sizeof(family) - 1) == 0;
}

static void put_size(struct cca_text *text, uint64_t bytes)
{
    if (bytes == CCA_NO_LIMIT) {
        cca_text_str(text, "unlimited");
    } else {
        cca_text_u64(text, bytes);
    }
}

/* Up to nine decimals, without zeros at the end. */
static void put_ratio(struct cca_text *text, double value)
{
    cca_text_double(text, value, 9);
    while (text->len > 0 && text->buf[text->len - 1] == '0') {
        text->buf[--text->len] = '\0';
    }
    if (text->len > 0 && text->buf[text->len - 1] == '.') {
        text->buf[--text->len] = '\0';
    }
}

/* The words of "a|b|c" whose bit is set in `mask`, with commas. */
static void put_words(struct cca_text *text, const char *words, unsigned mask)
{
    bool is_first = true;

    if (mask == 0) {
        cca_text_str(text, "none");
    }
    for (unsigned bit = 1; mask != 0; bit <<= 1) {
        size_t len = strcspn(words, "|");

        if ((mask & bit) != 0) {
            cca_text_str(text, is_first ? "" : ",");
            cca_text_bytes(text, words, len);
            is_first = false;
        }
        if (words[len] == '\0') {
            break;
        }
        words += len + 1;
    }
}

static void put_value(struct cca_text *text, const struct cca_config *config,
                      const struct option *option)
{
    const void *field = field_of(config, option);

    switch (option->kind) {
    case KIND_BOOL: cca_text_char(text, *(const bool *)field ? '1' : '0'); break;
    case KIND_SIZE: put_size(text, *(const size_t *)field); break;
    case KIND_UINT: cca_text_u64(text, *(const uint64_t *)field); break;
    case KIND_RATIO: put_ratio(text, *(const double *)field); break;
    case KIND_ENUM: put_words(text, option->words, 1u << *(const int *)field); break;
    case KIND_FLAGS:
        put_words(text, option->words, *(const unsigned *)field);
        if (field == &config->dump_on && (config->dump_on & CCA_DUMP_ON_INTERVAL) != 0) {
            cca_text_char(text, ':'); /* the last word */
            cca_text_u64(text, config->dump_interval_s);
        }
        break;
    case KIND_TEXT: cca_text_str(text, field); break;
    case KIND_SIGNAL: cca_text_signal(text, *(const int *)field); break;
    }
}

static void put_range(struct cca_text *text, const struct option *option)
{
    if (option->kind == KIND_SIZE) {
        cca_text_str(text, " (");
        put_size(text, option->min);
        cca_text_str(text, " to ");
        put_size(text, option->max);
        cca_text_char(text, ')');
    } else if (option->kind == KIND_UINT) {
        cca_text_str(text, " (");
        cca_text_u64(text, option->min);
        cca_text_str(text, " to ");
        cca_text_u64(text, option->max);
        cca_text_char(text, ')');
    } else if (option->kind == KIND_RATIO) {
        cca_text_str(text, " (above 0, at most 1)");
    }
}

static int set_size(size_t *field, const struct option *option, const char *value)
{
    size_t parsed = 0;
    int rc = cca_parse_size(value, &parsed);

    if (rc == 0 && (parsed < option->min || parsed > option->max)) {
        rc = -ERANGE;
    }
    if (rc == 0) {
        *field = parsed;
    }
    return rc;
}

static int set_uint(uint64_t *field, const struct option *option, const char *value)
{
    uint64_t parsed = 0;
    int rc = cca_parse_uint(value, &parsed);

    if (rc == 0 && (parsed < option->min || parsed > option->max)) {
        rc = -ERANGE;
    }
    if (rc == 0) {
        *field = parsed;
    }
    return rc;
}

static int set_ratio(double *field, const struct option *option, const char *value)
{
    const double *usual = field_of(&defaults, option);
    double parsed = 0;
    int rc = cca_parse_ratio(value, &parsed);

    if (rc == 0 && !(parsed > 0 && parsed <= 1) && parsed != *usual) {
        rc = -ERANGE;
    }
    if (rc == 0) {
        *field = parsed;
    }
    return rc;
}

static int set_text(struct cca_config *config, const struct option *option, const char *value)
{
    size_t len = strlen(value);
    int rc = 0;

    if (len >= CCA_CONFIG_TEXT_MAX) {
        return -E2BIG;
    }
    if (option->offset == offsetof(struct cca_config, roundup_power2_divisions)) {
        rc = cca_divisions_parse(value, &config->divisions);
    }
    if (rc == 0) {
        memcpy((char *)config + option->offset, value, len + 1);
    }
    return rc;
}

/* "interval:SECONDS" becomes the word "interval" and a number. */
static int set_dump_on(struct cca_config *config, const struct option *option, const char *value,
                       char *bad, size_t bad_cap)
{
    static const char word[] = "interval:";
    char plain_buf[CCA_CONFIG_TEXT_MAX], digits[24] = "";
    struct cca_text plain;
    const char *found = strstr(value, word);
    uint64_t seconds = config->dump_interval_s;
    unsigned mask;
    int rc;

    cca_text_init(&plain, plain_buf, sizeof(plain_buf));
    if (found != NULL) {
        const char *start = found + sizeof(word) - 1;
        size_t len = strcspn(start, ", \t");

        cca_text_bytes(&plain, value, (size_t)(start - 1 - value));
        cca_text_str(&plain, start + len);
        if (len < sizeof(digits)) {
            memcpy(digits, start, len);
        }
        if (cca_parse_uint(digits, &seconds) != 0) {
            return -EINVAL;
        }
        if (seconds == 0 || seconds > INTERVAL_MAX_S) {
            return -ERANGE;
        }
    } else {
        cca_text_str(&plain, value);
    }
    if (plain.truncated) {
        return -E2BIG;
    }
    rc = cca_parse_flags(plain_buf, option->words, &mask, bad, bad_cap);
    if (rc == 0 && (mask & CCA_DUMP_ON_INTERVAL) != 0 && seconds == 0) {
        return -EINVAL;
    }
    if (rc == 0) {
        config->dump_on = mask;
        config->dump_interval_s = seconds;
    }
    return rc;
}

/* 0 or the error of the parser; the field is unchanged on errors. `bad` gets the first unknown word
 * of a list. */
static int set_value(struct cca_config *config, const struct option *option, const char *value,
                     char *bad, size_t bad_cap)
{
    void *field = (char *)config + option->offset;

    switch (option->kind) {
    case KIND_BOOL: return cca_parse_bool(value, field);
    case KIND_SIZE: return set_size(field, option, value);
    case KIND_UINT: return set_uint(field, option, value);
    case KIND_RATIO: return set_ratio(field, option, value);
    case KIND_ENUM: return cca_parse_enum(value, option->words, field);
    case KIND_FLAGS:
        return option->offset == offsetof(struct cca_config, dump_on)
                   ? set_dump_on(config, option, value, bad, bad_cap)
                   : cca_parse_flags(value, option->words, field, bad, bad_cap);
    case KIND_TEXT: return set_text(config, option, value);
    case KIND_SIGNAL: return cca_parse_signal(value, field);
    }
    return -EINVAL;
}

static void read_option(const struct reader *reader, const struct option *option, const char *value)
{
    char bad[NAME_MAX_BYTES] = "", remark_buf[REMARK_MAX_BYTES];
    struct cca_text remark;
    int rc = set_value(reader->config, option, value, bad, sizeof(bad));

    if (rc == 0 && bad[0] == '\0') {
        return;
    }
    cca_text_init(&remark, remark_buf, sizeof(remark_buf));
    if (bad[0] != '\0') {
        cca_text_str(&remark, "unknown word ");
        cca_text_str(&remark, bad);
    } else if (rc == -ERANGE) {
        cca_text_str(&remark, "out of range");
        put_range(&remark, option);
    } else {
        cca_text_str(&remark, rc == -E2BIG ? "too long" : "not understood");
    }
    if (option->kind == KIND_TEXT && *(const char *)field_of(reader->config, option) == '\0') {
        cca_text_str(&remark, ", ignored");
    } else {
        cca_text_str(&remark, ", using ");
        put_value(&remark, reader->config, option);
    }
    reader->complain(reader->user, option->name, value, remark_buf);
}

/* As getenv: of several entries with one name the first counts. */
static bool is_repeated(const char *const *environment, const char *const *entry, size_t name_len)
{
    for (; environment != entry; environment++) {
        if (strncmp(*environment, *entry, name_len + 1) == 0) {
            return true;
        }
    }
    return false;
}

static void read_entry(const struct reader *reader, const char *name, const char *value)
{
    const struct option *option = find_option(name);
    bool empty_is_a_value = option != NULL &&
                            option->offset == offsetof(struct cca_config, dump_on);

    if (value[0] == '\0' && !empty_is_a_value) {
        return;
    }
    if (option != NULL && option->offset == offsetof(struct cca_config, conf)) {
        return; /* read before all others */
    }
    if (option != NULL) {
        read_option(reader, option, value);
    } else if (is_announced(name)) {
        reader->complain(reader->user, name, value, "not in this version, ignored");
    } else {
        reader->complain(reader->user, name, value, "unknown, ignored");
    }
}

/* Sizes that are measured by another variable's, which may come later in the environment. */
static void check_against_large_segment(const struct reader *reader, size_t *field, size_t usual,
                                        const char *name)
{
    char value_buf[32], remark_buf[REMARK_MAX_BYTES];
    struct cca_text value, remark;

    if (*field == usual || *field >= reader->config->large_segment_size) {
        return;
    }
    cca_text_init(&value, value_buf, sizeof(value_buf));
    put_size(&value, *field);
    cca_text_init(&remark, remark_buf, sizeof(remark_buf));
    cca_text_str(&remark, "below the large segment size, using ");
    put_size(&remark, usual);
    *field = usual;
    reader->complain(reader->user, name, value_buf, remark_buf);
}

static void apply_implications(const struct reader *reader)
{
    struct cca_config *config = reader->config;

    check_against_large_segment(reader, &config->max_split_size, CCA_NO_LIMIT,
                                "CCA_MAX_SPLIT_SIZE");
    check_against_large_segment(reader, &config->max_non_split_rounding, 0,
                                "CCA_MAX_NON_SPLIT_ROUNDING");
    if (config->free_sync == CCA_FREE_NATIVE && config->mode == CCA_MODE_CACHE) {
        config->mode = CCA_MODE_COUNT;
    }
    if (config->disable) {
        config->mode = CCA_MODE_OFF;
    }
    if (cca_config_usable_skips(config->skip_actions) != config->skip_actions) {
        config->skip_actions = cca_config_usable_skips(config->skip_actions);
        reader->complain(reader->user, "CCA_SKIP_ACTIONS", "alloc,...",
                         "allocations, frees and segments are left out together or not at all, "
                         "since viewers replay them; they are kept");
    }
    if (config->dump_format == 0) {
        config->dump_format = defaults.dump_format;
        reader->complain(reader->user, "CCA_DUMP_FORMAT", "none",
                         "a snapshot has a format, CCA_DUMP_ON=none turns it off; using pickle");
    }
}

/* Before all others, so that they win over it. */
static void read_conf(const struct reader *reader, const char *const *environment)
{
    static const char start[] = "CCA_CONF=";

    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, start, sizeof(start) - 1) != 0) {
            continue;
        }
        const char *value = *environment + sizeof(start) - 1;
        if (value[0] != '\0') {
            read_option(reader, find_option("CCA_CONF"), value);
        }
        if (reader->config->conf[0] != '\0') {
            (void)!cca_conf_apply(reader->config, value, reader->complain, reader->user);
        }
        return;
    }
}

static void ignore_complaint(void *user, const char *name, const char *value, const char *used)
{
    (void)user, (void)name, (void)value, (void)used;
}

unsigned cca_config_usable_skips(unsigned skip_actions)
{
    bool is_whole = (skip_actions & CCA_SKIP_REPLAY) == CCA_SKIP_REPLAY;

    return is_whole ? skip_actions : skip_actions & ~(unsigned)CCA_SKIP_REPLAY;
}

void cca_config_init(struct cca_config *config)
{
    *config = defaults;
}

void cca_config_read(struct cca_config *config, const char *const *environment,
                     cca_config_complaint_fn complain, void *user)
{
    struct reader reader = {config, complain != NULL ? complain : ignore_complaint, user};

    read_conf(&reader, environment);
    for (const char *const *entry = environment; *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');
        char name_buf[NAME_MAX_BYTES];
        struct cca_text name;

        if (strncmp(*entry, "CCA_", 4) != 0 || equals == NULL ||
            is_repeated(environment, entry, (size_t)(equals - *entry))) {
            continue;
        }
        cca_text_init(&name, name_buf, sizeof(name_buf));
        cca_text_bytes(&name, *entry, (size_t)(equals - *entry));
        read_entry(&reader, name_buf, equals + 1);
    }
    apply_implications(&reader);
}

void cca_config_each(const struct cca_config *config, cca_config_value_fn each, void *user)
{
    for (size_t i = 0; i < CCA_ARRAY_LEN(options); i++) {
        char value_buf[CCA_CONFIG_TEXT_MAX];
        struct cca_text value;

        cca_text_init(&value, value_buf, sizeof(value_buf));
        put_value(&value, config, &options[i]);
        each(user, options[i].name, value_buf);
    }
}
