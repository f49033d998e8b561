/* SPDX-License-Identifier: MIT */
#include "config/parse.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/format.h"
#include "config/config.h"

/* A piece of text, not ended by NUL. */
struct piece {
    const char *at;
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static struct piece trim(const char *at, size_t len)
{
    while (len > 0 && is_blank(at[0])) {
        at++;
        len--;
    }
    while (len > 0 && is_blank(at[len - 1])) {
        len--;
    }
    return (struct piece){at, len};
}

static struct piece trim_text(const char *text)
{
    return trim(text, strlen(text));
}

static struct piece skip(struct piece piece, size_t len)
{
    return (struct piece){piece.at + len, piece.len - len};
}

static bool same_word(struct piece a, struct piece b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.at[i]) != lower(b.at[i])) {
            return false;
        }
    }
    return true;
}

static bool is_word(struct piece piece, const char *word)
{
    return same_word(piece, (struct piece){word, strlen(word)});
}

static bool has_prefix(struct piece piece, const char *prefix)
{
    size_t len = strlen(prefix);

    return piece.len >= len && is_word((struct piece){piece.at, len}, prefix);
}

/* Reads the digits in front; `*rest_out` is what follows them. */
static int read_digits(struct piece piece, uint64_t *value_out, struct piece *rest_out)
{
    uint64_t value = 0;
    bool fits = true;
    size_t i;

    for (i = 0; i < piece.len && is_digit(piece.at[i]); i++) {
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(piece.at[i] - '0'), &value);
    }
    if (i == 0) {
        return -EINVAL;
    }
    *rest_out = skip(piece, i);
    *value_out = value;
    return fits ? 0 : -ERANGE;
}

int cca_parse_bool(const char *text, bool *value_out)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};
    struct piece piece = trim_text(text);

    for (size_t i = 0; i < CCA_ARRAY_LEN(yes); i++) {
        if (is_word(piece, yes[i]) || is_word(piece, no[i])) {
            *value_out = is_word(piece, yes[i]);
            return 0;
        }
    }
    return -EINVAL;
}

/* The power of two of a suffix, or -1. */
static int suffix_shift(struct piece suffix)
{
    static const char letters[] = "kmgt";
    const char *letter;

    if (suffix.len == 0) {
        return 0;
    }
    letter = strchr(letters, lower(suffix.at[0]));
    if (letter == NULL || *letter == '\0' || (suffix.len > 1 && !is_word(skip(suffix, 1), "iB"))) {
        return -1;
    }
    return 10 * (int)(letter - letters + 1);
}

int cca_parse_size(const char *text, size_t *bytes_out)
{
    struct piece piece = trim_text(text), suffix;
    uint64_t value;
    int rc, shift;

    if (is_word(piece, "unlimited") || is_word(piece, "none")) {
        *bytes_out = CCA_NO_LIMIT;
        return 0;
    }
    rc = read_digits(piece, &value, &suffix);
    if (rc == -EINVAL) {
        return rc;
    }
    shift = suffix_shift(suffix);
    if (shift < 0) {
        return -EINVAL;
    }
    if (rc != 0 || value > SIZE_MAX >> shift) {
        return -ERANGE;
    }
    *bytes_out = (size_t)value << shift;
    return 0;
}

int cca_parse_uint(const char *text, uint64_t *value_out)
{
    struct piece rest;
    uint64_t value;
    int rc = read_digits(trim_text(text), &value, &rest);

    if (rc == -EINVAL || rest.len != 0) {
        return -EINVAL;
    }
    if (rc == 0) {
        *value_out = value;
    }
    return rc;
}

int cca_parse_ratio(const char *text, double *value_out)
{
    /* Both numbers stay exact in a double, so that the quotient is the nearest one to the text. */
    const uint64_t digits_max = UINT64_C(100000000000000);
    struct piece piece = trim_text(text);
    uint64_t digits = 0, scale = 1;
    bool has_digits = false, has_point = false;

    for (size_t i = 0; i < piece.len; i++) {
        if (piece.at[i] == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (!is_digit(piece.at[i])) {
            return -EINVAL;
        }
        has_digits = true;
        if (digits < digits_max && scale < digits_max) {
            digits = digits * 10 + (uint64_t)(piece.at[i] - '0');
            scale *= has_point ? 10 : 1;
        } else if (!has_point) {
            return -ERANGE;
        }
    }
    if (!has_digits) {
        return -EINVAL;
    }
    *value_out = (double)digits / (double)scale;
    return 0;
}

/* Position of `word` in "a|b|c", or -1. */
static int word_position(struct piece word, const char *words)
{
    for (int position = 0;; position++) {
        size_t len = strcspn(words, "|");

        if (same_word(word, (struct piece){words, len})) {
            return position;
        }
        if (words[len] == '\0') {
            return -1;
        }
        words += len + 1;
    }
}

int cca_parse_enum(const char *text, const char *words, int *position_out)
{
    int position = word_position(trim_text(text), words);

    if (position < 0) {
        return -EINVAL;
    }
    *position_out = position;
    return 0;
}

static void note_bad_word(struct piece word, char *bad, size_t bad_cap)
{
    struct cca_text text;

    if (bad != NULL && bad_cap > 0 && bad[0] == '\0') {
        cca_text_init(&text, bad, bad_cap);
        cca_text_bytes(&text, word.at, word.len);
    }
}

int cca_parse_flags(const char *text, const char *words, unsigned *mask_out, char *bad,
                    size_t bad_cap)
{
    unsigned mask = 0;
    bool has_good = false, has_bad = false;

    if (bad != NULL && bad_cap > 0) {
        bad[0] = '\0';
    }
    for (;;) {
        size_t len = strcspn(text, ",");
        struct piece word = trim(text, len);
        int position = word_position(word, words);

        if (position >= 0) {
            mask |= 1u << position;
            has_good = true;
        } else if (is_word(word, "none")) {
            has_good = true;
        } else if (word.len > 0) {
            note_bad_word(word, bad, bad_cap);
            has_bad = true;
        }
        if (text[len] == '\0') {
            break;
        }
        text += len + 1;
    }
    if (has_bad && !has_good) {
        return -EINVAL;
    }
    *mask_out = mask;
    return 0;
}

/* The first name of a number is the one that is printed. KILL and STOP are missing: they cannot be
 * handled. */
static const struct {
    const char *name;
    int number;
} signals[] = {
    {"HUP", SIGHUP},       {"INT", SIGINT},   {"QUIT", SIGQUIT},   {"ILL", SIGILL},
    {"TRAP", SIGTRAP},     {"ABRT", SIGABRT}, {"IOT", SIGIOT},     {"BUS", SIGBUS},
    {"FPE", SIGFPE},       {"USR1", SIGUSR1}, {"SEGV", SIGSEGV},   {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE},     {"ALRM", SIGALRM}, {"TERM", SIGTERM},   {"STKFLT", SIGSTKFLT},
    {"CHLD", SIGCHLD},     {"CONT", SIGCONT}, {"TSTP", SIGTSTP},   {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU},     {"URG", SIGURG},   {"XCPU", SIGXCPU},   {"XFSZ", SIGXFSZ},
    {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH}, {"IO", SIGIO},
    {"POLL", SIGPOLL},     {"PWR", SIGPWR},   {"SYS", SIGSYS},
};

static bool can_be_handled(int number)
{
    for (size_t i = 0; i < CCA_ARRAY_LEN(signals); i++) {
        if (signals[i].number == number) {
            return true;
        }
    }
    return number >= SIGRTMIN && number <= SIGRTMAX;
}

/* "RTMIN", "RTMIN+2", "RTMAX-3" without SIG; `sign` is the only one that leads into the range. */
static int parse_realtime(struct piece offset_text, int base, char sign, int *signal_out)
{
    struct piece rest = {"", 0};
    uint64_t offset = 0;
    int rc = 0;

    if (offset_text.len > 0) {
        if (offset_text.at[0] != sign) {
            return -EINVAL;
        }
        rc = read_digits(skip(offset_text, 1), &offset, &rest);
    }
    if (rc == -EINVAL || rest.len != 0) {
        return -EINVAL;
    }
    if (rc != 0 || offset > (uint64_t)(SIGRTMAX - SIGRTMIN)) {
        return -ERANGE;
    }
    *signal_out = sign == '+' ? base + (int)offset : base - (int)offset;
    return 0;
}

int cca_parse_signal(const char *text, int *signal_out)
{
    struct piece piece = trim_text(text);
    uint64_t number;

    if (is_word(piece, "none")) {
        *signal_out = 0;
        return 0;
    }
    if (piece.len > 0 && is_digit(piece.at[0])) {
        int rc = cca_parse_uint(text, &number);

        if (rc != 0) {
            return rc;
        }
        if (number > INT32_MAX || !can_be_handled((int)number)) {
            return -ERANGE;
        }
        *signal_out = (int)number;
        return 0;
    }
    if (has_prefix(piece, "SIG")) {
        piece = skip(piece, 3);
    }
    for (size_t i = 0; i < CCA_ARRAY_LEN(signals); i++) {
        if (is_word(piece, signals[i].name)) {
            *signal_out = signals[i].number;
            return 0;
        }
    }
    if (has_prefix(piece, "RTMIN")) {
        return parse_realtime(skip(piece, 5), SIGRTMIN, '+', signal_out);
    }
    if (has_prefix(piece, "RTMAX")) {
        return parse_realtime(skip(piece, 5), SIGRTMAX, '-', signal_out);
    }
    return -EINVAL;
}

void cca_text_signal(struct cca_text *text, int number)
{
    if (number == 0) {
        cca_text_str(text, "none");
        return;
    }
    for (size_t i = 0; i < CCA_ARRAY_LEN(signals); i++) {
        if (signals[i].number == number) {
            cca_text_str(text, signals[i].name);
            return;
        }
    }
    if (number >= SIGRTMIN && number <= SIGRTMAX) {
        bool is_low = number - SIGRTMIN <= SIGRTMAX - number;

        cca_text_str(text, is_low ? "RTMIN+" : "RTMAX-");
        cca_text_i64(text, is_low ? number - SIGRTMIN : SIGRTMAX - number);
        return;
    }
    cca_text_i64(text, number);
}
