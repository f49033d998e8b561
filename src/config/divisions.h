/* SPDX-License-Identifier: MIT */
/* How finely sizes between powers of two are told apart, and the text form of it. */
#ifndef CCA_CONFIG_DIVISIONS_H
#define CCA_CONFIG_DIVISIONS_H

#include <stdint.h>

#include "base/compiler.h"

enum { CCA_DIVISION_CLASSES = 16, CCA_DIVISIONS_MAX = 32768 };

/* Steps per power of two when rounding, for sizes from 2^i MiB on; 0 and 1: off. Class 0 holds the
 * sizes below 1 MiB as well, the last class all that lie above. */
struct cca_divisions {
    uint16_t of[CCA_DIVISION_CLASSES];
};

/* "4": all classes. "256:1,512:2,>:8", in brackets or not: by class start in MiB; the first class
 * named fills all below it too, `>` all after the last one named; others are off. "off": all.
 * Divisions are powers of two, in a list also 0. -EINVAL, or -ERANGE for what is not a power of two
 * or too large; written only on success. */
int cca_divisions_parse(const char *text, struct cca_divisions *divisions_out) CCA_MUST_CHECK;

#endif
