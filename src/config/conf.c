/* SPDX-License-Identifier: MIT */
#include "config/conf.h"

#include <errno.h>
#include <string.h>

#include "base/format.h"
#include "config/parse.h"

enum { REMARK_BYTES = 160 };

/* What came of an item. */
enum outcome {
    TAKEN,
    LATER,   /* not in this version */
    FOREIGN, /* a backend that is not ours */
    UNKNOWN, /* no such key */
    BAD,     /* not a value of this kind */
    RANGE    /* outside of what the key says */
};

static enum outcome outcome_of(int rc)
{
    return rc == 0 ? TAKEN : rc == -ERANGE ? RANGE : BAD;
}

/* Exactly as PyTorch writes them. */
static enum outcome read_bool(const char *value, bool *value_out)
{
    bool is_true = strcmp(value, "True") == 0;
    if (!is_true && strcmp(value, "False") != 0) {
        return BAD;
    }
    *value_out = is_true;
    return TAKEN;
}

/* A number of MiB; what does not fit is unlimited. */
static enum outcome read_mib(const char *value, size_t least_bytes, size_t *bytes_out)
{
    uint64_t mib = 0;
    int rc = cca_parse_uint(value, &mib);
    if (rc == -EINVAL) {
        return BAD;
    }
    size_t bytes = rc != 0 || mib > CCA_NO_LIMIT >> 20 ? CCA_NO_LIMIT : (size_t)mib << 20;
    if (bytes < least_bytes) {
        return RANGE;
    }
    *bytes_out = bytes;
    return TAKEN;
}

static enum outcome set_large_segment(struct cca_config *config, const char *value)
{
    size_t bytes = 0;
    enum outcome outcome = read_mib(value, CCA_LARGE_SEGMENT_MIN, &bytes);
    if (outcome == TAKEN && bytes > CCA_LARGE_SEGMENT_MAX) {
        return RANGE;
    }
    config->large_segment_size = outcome == TAKEN ? bytes : config->large_segment_size;
    return outcome;
}

static enum outcome set_max_split(struct cca_config *config, const char *value)
{
    return read_mib(value, config->large_segment_size, &config->max_split_size);
}

static enum outcome set_non_split_rounding(struct cca_config *config, const char *value)
{
    return read_mib(value, config->large_segment_size, &config->max_non_split_rounding);
}

static enum outcome set_divisions(struct cca_config *config, const char *value)
{
    int off = 0;
    /* The word is ours, not of this grammar. */
    int rc = cca_parse_enum(value, "off", &off) == 0
                 ? -EINVAL
                 : cca_divisions_parse(value, &config->divisions);
    if (rc == 0) {
        struct cca_text text;
        cca_text_init(&text, config->roundup_power2_divisions, CCA_CONFIG_TEXT_MAX);
        cca_text_str(&text, value);
    }
    return outcome_of(rc);
}

static enum outcome set_collection(struct cca_config *config, const char *value)
{
    double threshold = 0;
    int rc = cca_parse_ratio(value, &threshold);
    if (rc == 0 && !(threshold > 0 && threshold < 1)) {
        rc = -ERANGE;
    }
    config->garbage_collection_threshold = rc == 0 ? threshold
                                                   : config->garbage_collection_threshold;
    return outcome_of(rc);
}

static enum outcome set_fraction(struct cca_config *config, const char *value)
{
    double fraction = 0;
    int rc = cca_parse_ratio(value, &fraction);
    if (rc == 0 && fraction > 1) {
        rc = -ERANGE;
    }
    config->memory_fraction = rc == 0 ? fraction : config->memory_fraction;
    return outcome_of(rc);
}

static enum outcome set_oom_reject(struct cca_config *config, const char *value)
{
    return read_bool(value, &config->oom_reject);
}

static enum outcome set_capture_reuse(struct cca_config *config, const char *value)
{
    return read_bool(value, &config->graph_capture_reuse);
}

static enum outcome set_expandable(struct cca_config *config, const char *value)
{
    return read_bool(value, &config->expandable_segments);
}

/* The lock is never held during a driver allocation. */
static enum outcome accept_bool(struct cca_config *config, const char *value)
{
    bool ignored;
    (void)config;
    return read_bool(value, &ignored);
}

static enum outcome later(struct cca_config *config, const char *value)
{
    (void)config, (void)value;
    return LATER;
}

static enum outcome set_backend(struct cca_config *config, const char *value)
{
    (void)config;
    return strcmp(value, "native") == 0            ? TAKEN
           : strcmp(value, "cudaMallocAsync") == 0 ? FOREIGN
                                                   : BAD;
}

static const struct key {
    const char *name;
    enum outcome (*set)(struct cca_config *config, const char *value);
    const char *range; /* completes "out of range" */
} keys[] = {
    /* The first one is the measure of others. */
    {"large_segment_size_mb", set_large_segment, "11 to 1048576"},
    {"max_split_size_mb", set_max_split, "at least the large segment size"},
    {"max_non_split_rounding_mb", set_non_split_rounding, "at least the large segment size"},
    {"roundup_power2_divisions", set_divisions, "powers of two up to 32768"},
    {"garbage_collection_threshold", set_collection, "above 0, below 1"},
    {"per_process_memory_fraction", set_fraction, "0 to 1"},
    {"throw_on_cudamalloc_oom", set_oom_reject, NULL},
    {"release_lock_on_cudamalloc", accept_bool, NULL},
    {"backend", set_backend, NULL},
    {"graph_capture_record_stream_reuse", set_capture_reuse, NULL},
    {"expandable_segments", set_expandable, NULL},
    {"expandable_segments_reserve", later, NULL},
    {"expandable_segments_reserve_by_class", later, NULL},
};

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < CCA_ARRAY_LEN(keys); i++) {
        if (strcmp(keys[i].name, name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

static enum outcome set(struct cca_config *config, const char *name, const char *value,
                        const struct key **key_out)
{
    static const char pinned[] = "pinned_";
    const struct key *key = find_key(name);
    *key_out = key;
    if (key == NULL) {
        return strncmp(name, pinned, sizeof(pinned) - 1) == 0 ? LATER : UNKNOWN;
    }
    return key->set(config, value);
}

static void remark_on(enum outcome outcome, const struct key *key, char *remark, size_t bytes)
{
    struct cca_text text;
    cca_text_init(&text, remark, bytes);
    switch (outcome) {
    case LATER: cca_text_str(&text, "not in this version, ignored"); break;
    case FOREIGN: cca_text_str(&text, "refused, the backend is native"); break;
    case UNKNOWN: cca_text_str(&text, "unknown, ignored"); break;
    case RANGE:
        cca_text_str(&text, "out of range (");
        cca_text_str(&text, key->range == NULL ? "" : key->range);
        cca_text_str(&text, "), ignored");
        break;
    default: cca_text_str(&text, "not understood, ignored"); break;
    }
}

/* Without white space, so that pieces can be compared. `out` has room for all of the text. */
static void squeeze(const char *text, char *out)
{
    for (; *text != '\0'; text++) {
        if (*text != ' ' && (*text < '\t' || *text > '\r')) {
            *out++ = *text;
        }
    }
    *out = '\0';
}

/* Length of the first item: up to a comma outside of brackets. */
static size_t item_len(const char *text)
{
    size_t len = 0;
    int depth = 0;
    for (; text[len] != '\0' && (text[len] != ',' || depth > 0); len++) {
        depth += text[len] == '[' ? 1 : text[len] == ']' && depth > 0 ? -1 : 0;
    }
    return len;
}

struct reader {
    struct cca_config *config;
    cca_config_complaint_fn complain;
    void *user;
    int result;
};

/* One item, ended by NUL. Only items of the large segment size, or only the others. */
static void read_item(struct reader *reader, char *item, bool want_large_segment)
{
    char *colon = strchr(item, ':'), remark[REMARK_BYTES];
    const struct key *key = NULL;
    enum outcome outcome = BAD;
    if (colon != NULL) {
        *colon = '\0';
        if ((find_key(item) == &keys[0]) != want_large_segment) {
            *colon = ':';
            return;
        }
        outcome = set(reader->config, item, colon + 1, &key);
        *colon = ':';
    } else if (want_large_segment) {
        return;
    }
    if (outcome == TAKEN) {
        return;
    }
    if (outcome != LATER) {
        reader->result = -EINVAL;
    }
    remark_on(outcome, key, remark, sizeof(remark));
    if (reader->complain != NULL) {
        reader->complain(reader->user, "CCA_CONF", item, remark);
    }
}

static void read_items(struct reader *reader, char *text, bool want_large_segment)
{
    while (*text != '\0') {
        size_t len = item_len(text);
        char end = text[len];
        text[len] = '\0';
        if (len > 0) {
            read_item(reader, text, want_large_segment);
        }
        text[len] = end;
        text += end == '\0' ? len : len + 1;
    }
}

int cca_conf_apply(struct cca_config *config, const char *text, cca_config_complaint_fn complain,
                   void *user)
{
    struct reader reader = {config, complain, user, 0};
    char squeezed[CCA_CONFIG_TEXT_MAX];
    if (strlen(text) >= sizeof(squeezed)) {
        return -E2BIG;
    }
    squeeze(text, squeezed);
    config->max_split_size = CCA_NO_LIMIT;
    config->max_non_split_rounding = 0;
    config->garbage_collection_threshold = 0;
    config->divisions = (struct cca_divisions){{0}};
    struct cca_text off;
    cca_text_init(&off, config->roundup_power2_divisions, CCA_CONFIG_TEXT_MAX);
    cca_text_str(&off, "off");
    read_items(&reader, squeezed, true);
    read_items(&reader, squeezed, false);
    return reader.result;
}

int cca_conf_change(struct cca_config *config, const char *text, cca_config_complaint_fn complain,
                    void *user)
{
    struct cca_config next = *config;
    int rc = cca_conf_apply(&next, text, complain, user);
    if (rc == 0) {
        memcpy(next.conf, text, strlen(text) + 1); /* it fits, or it would have been refused */
        *config = next;
    }
    return rc;
}
