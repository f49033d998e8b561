/* SPDX-License-Identifier: MIT */
#include "snapshot/utf8.h"

#include <stdint.h>

size_t cca_utf8_sequence(const char *text, size_t left)
{
    const unsigned char *byte = (const unsigned char *)text;
    uint32_t least, code;
    size_t bytes;

    if (byte[0] < 0x80) {
        return 1;
    }
    if (byte[0] >= 0xc2 && byte[0] <= 0xdf) {
        bytes = 2;
        least = 0x80;
        code = byte[0] & 0x1f;
    } else if ((byte[0] & 0xf0) == 0xe0) {
        bytes = 3;
        least = 0x800;
        code = byte[0] & 0x0f;
    } else if (byte[0] >= 0xf0 && byte[0] <= 0xf4) {
        bytes = 4;
        least = 0x10000;
        code = byte[0] & 0x07;
    } else {
        return 0;
    }
    if (bytes > left) {
        return 0;
    }
    for (size_t i = 1; i < bytes; i++) {
        if ((byte[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (byte[i] & 0x3f);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    return bytes;
}

size_t cca_utf8_clean_bytes(const char *text, size_t len)
{
    size_t total = 0;

    for (size_t at = 0; at < len;) {
        size_t bytes = cca_utf8_sequence(text + at, len - at);

        total += bytes > 0 ? bytes : CCA_UTF8_REPLACEMENT_BYTES;
        at += bytes > 0 ? bytes : 1;
    }
    return total;
}
