/* SPDX-License-Identifier: MIT */
/* Typed parsers of option text: pure functions. All return 0, or -EINVAL (not of this form) or
 * -ERANGE (does not fit the type), and write only on success. Surrounding blanks are ignored. */
#ifndef CCA_CONFIG_PARSE_H
#define CCA_CONFIG_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* 1/0, true/false, yes/no, on/off, any case. */
int cca_parse_bool(const char *text, bool *value_out) CCA_MUST_CHECK;
/* Digits with an optional suffix K M G T, KiB MiB GiB TiB, KB.. are refused; powers of two. "unlimited"
 * and "none" are CCA_NO_LIMIT. */
int cca_parse_size(const char *text, size_t *bytes_out) CCA_MUST_CHECK;
int cca_parse_uint(const char *text, uint64_t *value_out) CCA_MUST_CHECK;
/* A plain decimal number such as 0.8; no locale. */
int cca_parse_ratio(const char *text, double *value_out) CCA_MUST_CHECK;
/* Position of the word in "a|b|c". */
int cca_parse_enum(const char *text, const char *words, int *position_out) CCA_MUST_CHECK;
/* Comma list of words as a bit mask. Unknown words are skipped and copied (the first one) into
 * `bad`; the known ones count. */
int cca_parse_flags(const char *text, const char *words, unsigned *mask_out, char *bad,
                    size_t bad_cap) CCA_MUST_CHECK;
/* USR1, SIGUSR1, RTMIN+2, RTMAX-3, 10, none (= 0). */
int cca_parse_signal(const char *text, int *signal_out) CCA_MUST_CHECK;

#endif
