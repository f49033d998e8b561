/* SPDX-License-Identifier: MIT */
/* File and function names are bytes; JSON and pickle want UTF-8. */
#ifndef CCA_SNAPSHOT_UTF8_H
#define CCA_SNAPSHOT_UTF8_H

#include <stddef.h>

/* U+FFFD, written for each byte that is not part of a valid sequence. */
#define CCA_UTF8_REPLACEMENT "\xef\xbf\xbd"
enum { CCA_UTF8_REPLACEMENT_BYTES = 3 };

/* Bytes of the valid sequence at `text` (1 to 4), or 0 when there is none. `left` is at least 1. */
size_t cca_utf8_sequence(const char *text, size_t left);

/* Bytes of the text once every bad byte is replaced. */
size_t cca_utf8_clean_bytes(const char *text, size_t len);

#endif
