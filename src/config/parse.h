/* SPDX-License-Identifier: MIT */
/* Typed parsers of option text: pure functions. All return 0, or -EINVAL (not of this form) or
 * -ERANGE (does not fit the type), and write only on success. Surrounding blanks are ignored, words
 * are taken in any case. */
#ifndef CCA_CONFIG_PARSE_H
#define CCA_CONFIG_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/format.h"

/* 1/0, true/false, yes/no, on/off, any case. */
int cca_parse_bool(const char *text, bool *value_out) CCA_MUST_CHECK;
/* Digits with an optional suffix K M G T, KiB MiB GiB TiB (powers of two); KB and so on are
 * refused. "unlimited" and "none" are CCA_NO_LIMIT. */
int cca_parse_size(const char *text, size_t *bytes_out) CCA_MUST_CHECK;
int cca_parse_uint(const char *text, uint64_t *value_out) CCA_MUST_CHECK;
/* A plain decimal number such as 0.8; no locale. */
int cca_parse_ratio(const char *text, double *value_out) CCA_MUST_CHECK;
/* Position of the word in "a|b|c". */
int cca_parse_enum(const char *text, const char *words, int *position_out) CCA_MUST_CHECK;
/* Comma list of words as a bit mask; empty or "none" is 0. Unknown words are skipped, the known
 * ones count, and the first unknown one is copied into `bad` ("" when there is none; `bad` may be
 * NULL). -EINVAL only when unknown words are all there is. */
int cca_parse_flags(const char *text, const char *words, unsigned *mask_out, char *bad,
                    size_t bad_cap) CCA_MUST_CHECK;
/* USR1, SIGUSR1, RTMIN+2, RTMAX-3, 10, none (= 0). What no handler can be set for is refused. */
int cca_parse_signal(const char *text, int *signal_out) CCA_MUST_CHECK;
/* The reverse: "USR1", "RTMAX-3", "none". */
void cca_text_signal(struct cca_text *text, int number);

#endif
