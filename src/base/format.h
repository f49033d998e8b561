/* SPDX-License-Identifier: MIT */
/* Bounded text building without locale, heap or stdio. A text never overflows: what does not fit is
 * cut, `truncated` says so, and the buffer always ends in NUL. */
#ifndef CCA_BASE_FORMAT_H
#define CCA_BASE_FORMAT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct cca_text {
    char *buf;
    size_t cap; /* bytes of buf, at least 1 */
    size_t len; /* without the NUL */
    bool truncated;
};

void cca_text_init(struct cca_text *text, char *buf, size_t cap);
void cca_text_str(struct cca_text *text, const char *str); /* NULL prints "(null)" */
void cca_text_bytes(struct cca_text *text, const char *bytes, size_t len);
void cca_text_char(struct cca_text *text, char c);
void cca_text_u64(struct cca_text *text, uint64_t value);
void cca_text_i64(struct cca_text *text, int64_t value);
void cca_text_hex(struct cca_text *text, uint64_t value);                     /* 0x1f */
void cca_text_double(struct cca_text *text, double value, unsigned decimals); /* decimals <= 9 */
/* "17 B", "1.50 KiB", "20.00 MiB", "3.25 GiB": two decimals from KiB on. */
void cca_text_size(struct cca_text *text, uint64_t bytes);

/* The few conversions our messages need: %s %c %d %i %u %ld %lu %lld %llu %zu %x %lx %llx %p %%
 * with no width or precision. Returns the length that was written. */
size_t cca_format(char *buf, size_t cap, const char *fmt, ...) CCA_PRINTF(3, 4);
size_t cca_format_v(char *buf, size_t cap, const char *fmt, va_list args) CCA_PRINTF(3, 0);

#endif
