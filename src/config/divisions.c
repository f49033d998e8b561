/* SPDX-License-Identifier: MIT */
#include "config/divisions.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "config/parse.h"

enum { ITEM_BYTES = 64 };

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static void fill(struct cca_divisions *divisions, unsigned from, unsigned to, uint64_t value)
{
    for (unsigned i = from; i < to; i++) {
        divisions->of[i] = (uint16_t)value;
    }
}

static int read_divisions(const char *text, bool zero_is_good, uint64_t *value_out)
{
    int rc = cca_parse_uint(text, value_out);

    if (rc != 0) {
        return rc;
    }
    if (*value_out > CCA_DIVISIONS_MAX ||
        (!is_power_of_two(*value_out) && !(zero_is_good && *value_out == 0))) {
        return -ERANGE;
    }
    return 0;
}

/* One "class:divisions" of a list. `*next` is the class after the last one named, -1 when none has
 * been. */
static int read_item(struct cca_divisions *divisions, char *item, int *next)
{
    char *colon = strchr(item, ':');
    uint64_t value = 0, start_mib = 0;
    int rc, class;

    if (colon == NULL) {
        return -EINVAL;
    }
    *colon = '\0';
    rc = read_divisions(colon + 1, true, &value);
    if (rc != 0) {
        return rc;
    }
    if (strcmp(item, ">") == 0) {
        fill(divisions, *next < 0 ? 0 : (unsigned)*next, CCA_DIVISION_CLASSES, value);
        return 0;
    }
    rc = cca_parse_uint(item, &start_mib);
    if (rc != 0 || !is_power_of_two(start_mib)) {
        return rc != 0 ? rc : -ERANGE;
    }
    class = __builtin_ctzll(start_mib);
    class = class < CCA_DIVISION_CLASSES ? class : CCA_DIVISION_CLASSES - 1;
    fill(divisions, *next < 0 ? 0 : (unsigned)class, (unsigned)class + 1, value);
    *next = class + 1;
    return 0;
}

static int read_list(struct cca_divisions *divisions, const char *text, size_t len)
{
    int next = -1;

    for (size_t at = 0; at <= len;) {
        const char *comma = memchr(text + at, ',', len - at);
        size_t item_len = comma == NULL ? len - at : (size_t)(comma - text) - at;
        char item[ITEM_BYTES];
        size_t kept = 0;

        for (size_t i = 0; i < item_len; i++) {
            char c = text[at + i];
            if (c == ' ' || (c >= '\t' && c <= '\r')) {
                continue;
            }
            if (kept + 1 == sizeof(item)) {
                return -EINVAL;
            }
            item[kept++] = c;
        }
        item[kept] = '\0';
        int rc = read_item(divisions, item, &next);
        if (rc != 0) {
            return rc;
        }
        at += item_len + 1;
    }
    return 0;
}

int cca_divisions_parse(const char *text, struct cca_divisions *divisions_out)
{
    struct cca_divisions divisions = {{0}};
    size_t len = strlen(text);
    int off = 0, rc = 0;
    uint64_t value = 0;

    while (len > 0 && (text[0] == ' ' || text[0] == '\t')) {
        text++;
        len--;
    }
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t')) {
        len--;
    }
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        rc = read_list(&divisions, text + 1, len - 2);
    } else if (memchr(text, ':', len) != NULL) {
        rc = read_list(&divisions, text, len);
    } else if (cca_parse_enum(text, "off", &off) != 0) {
        rc = read_divisions(text, false, &value);
        fill(&divisions, 0, CCA_DIVISION_CLASSES, value);
    }
    if (rc == 0) {
        *divisions_out = divisions;
    }
    return rc;
}
