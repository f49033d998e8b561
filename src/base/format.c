/* SPDX-License-Identifier: MIT */
#include "base/format.h"

#include <string.h>
#include <sys/types.h>

#include "base/compiler.h"

void cca_text_init(struct cca_text *text, char *buf, size_t cap)
{
    *text = (struct cca_text){.buf = buf, .cap = cap};
    buf[0] = '\0';
}

void cca_text_bytes(struct cca_text *text, const char *bytes, size_t len)
{
    size_t room = text->cap - 1 - text->len;

    if (len > room) {
        len = room;
        text->truncated = true;
    }
    memcpy(text->buf + text->len, bytes, len);
    text->len += len;
    text->buf[text->len] = '\0';
}

void cca_text_str(struct cca_text *text, const char *str)
{
    if (str == NULL) {
        str = "(null)";
    }
    cca_text_bytes(text, str, strlen(str));
}

void cca_text_char(struct cca_text *text, char c)
{
    cca_text_bytes(text, &c, 1);
}

static void put_digits(struct cca_text *text, uint64_t value, unsigned base, unsigned min_digits)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0 || sizeof(digits) - at < min_digits);
    cca_text_bytes(text, digits + at, sizeof(digits) - at);
}

void cca_text_u64(struct cca_text *text, uint64_t value)
{
    put_digits(text, value, 10, 1);
}

void cca_text_i64(struct cca_text *text, int64_t value)
{
    if (value < 0) {
        cca_text_char(text, '-');
    }
    put_digits(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, 1);
}

void cca_text_hex(struct cca_text *text, uint64_t value)
{
    cca_text_str(text, "0x");
    put_digits(text, value, 16, 1);
}

/* Digits beyond what a double holds come out as zeros. */
static void put_huge(struct cca_text *text, double value)
{
    unsigned zeros = 0;

    while (value >= 1e18) {
        value /= 10;
        zeros++;
    }
    cca_text_u64(text, (uint64_t)value);
    while (zeros-- > 0) {
        cca_text_char(text, '0');
    }
}

void cca_text_double(struct cca_text *text, double value, unsigned decimals)
{
    uint64_t scale = 1;
    uint64_t whole, fraction;

    if (value != value) {
        cca_text_str(text, "nan");
        return;
    }
    if (__builtin_signbit(value)) {
        cca_text_char(text, '-');
        value = -value;
    }
    if (value > 1.7976931348623157e308) {
        cca_text_str(text, "inf");
        return;
    }
    for (unsigned i = 0; i < decimals && i < 9; i++) {
        scale *= 10;
    }
    if (value >= 1e18) {
        put_huge(text, value);
        fraction = 0;
    } else {
        whole = (uint64_t)value;
        fraction = (uint64_t)((value - (double)whole) * (double)scale + 0.5);
        if (fraction >= scale) {
            whole++;
            fraction = 0;
        }
        cca_text_u64(text, whole);
    }
    if (scale > 1) {
        cca_text_char(text, '.');
        put_digits(text, fraction, 10, decimals < 9 ? decimals : 9);
    }
}

void cca_text_size(struct cca_text *text, uint64_t bytes)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    unsigned unit = 0;
    uint64_t whole = bytes, hundredths = 0;

    while (unit + 1 < CCA_ARRAY_LEN(units) && whole >= 1024) {
        uint64_t one = UINT64_C(1) << (10 * ++unit);

        /* Rounding may carry into the next unit: 1048575 bytes are 1.00 MiB. */
        hundredths = (bytes % one * 100 + one / 2) / one;
        whole = bytes / one + hundredths / 100;
        hundredths %= 100;
    }
    cca_text_u64(text, whole);
    if (unit > 0) {
        cca_text_char(text, '.');
        put_digits(text, hundredths, 10, 2);
    }
    cca_text_str(text, units[unit]);
}

enum length { LENGTH_INT, LENGTH_LONG, LENGTH_LONG_LONG, LENGTH_SIZE };

static enum length read_length(const char **fmt)
{
    enum length length = LENGTH_INT;

    if (**fmt == 'z') {
        ++*fmt;
        return LENGTH_SIZE;
    }
    while (**fmt == 'l' && length < LENGTH_LONG_LONG) {
        ++*fmt;
        length++;
    }
    return length;
}

/* A struct, since va_list may be an array, which a pointer parameter cannot name portably. */
struct arguments {
    va_list list;
};

static uint64_t next_unsigned(struct arguments *args, enum length length)
{
    switch (length) {
    case LENGTH_LONG: return va_arg(args->list, unsigned long);
    case LENGTH_LONG_LONG: return va_arg(args->list, unsigned long long);
    case LENGTH_SIZE: return va_arg(args->list, size_t);
    case LENGTH_INT: break;
    }
    return va_arg(args->list, unsigned);
}

static int64_t next_signed(struct arguments *args, enum length length)
{
    switch (length) {
    case LENGTH_LONG: return va_arg(args->list, long);
    case LENGTH_LONG_LONG: return va_arg(args->list, long long);
    case LENGTH_SIZE: return va_arg(args->list, ssize_t);
    case LENGTH_INT: break;
    }
    return va_arg(args->list, int);
}

/* `*fmt` stands behind the '%'; false for a conversion that is not ours. */
static bool put_conversion(struct cca_text *text, const char **fmt, struct arguments *args)
{
    enum length length = read_length(fmt);

    switch (*(*fmt)++) {
    case 'd':
    case 'i': cca_text_i64(text, next_signed(args, length)); return true;
    case 'u': cca_text_u64(text, next_unsigned(args, length)); return true;
    case 'x': put_digits(text, next_unsigned(args, length), 16, 1); return true;
    case 's': cca_text_str(text, va_arg(args->list, const char *)); return true;
    case 'c': cca_text_char(text, (char)va_arg(args->list, int)); return true;
    case 'p': cca_text_hex(text, (uintptr_t)va_arg(args->list, void *)); return true;
    case '%': cca_text_char(text, '%'); return true;
    default: return false;
    }
}

size_t cca_format_v(char *buf, size_t cap, const char *fmt, va_list list)
{
    struct cca_text text;
    struct arguments args;

    cca_text_init(&text, buf, cap);
    va_copy(args.list, list);
    while (*fmt != '\0') {
        const char *mark = strchr(fmt, '%');
        const char *conversion;

        if (mark == NULL) {
            cca_text_str(&text, fmt);
            break;
        }
        conversion = mark + 1;
        cca_text_bytes(&text, fmt, (size_t)(mark - fmt));
        if (!put_conversion(&text, &conversion, &args)) {
            /* The type of the argument is not known: the rest can only be shown as it is. */
            cca_text_str(&text, mark);
            break;
        }
        fmt = conversion;
    }
    va_end(args.list);
    return text.len;
}

size_t cca_format(char *buf, size_t cap, const char *fmt, ...)
{
    va_list args;
    size_t len;

    va_start(args, fmt);
    len = cca_format_v(buf, cap, fmt, args);
    va_end(args);
    return len;
}
