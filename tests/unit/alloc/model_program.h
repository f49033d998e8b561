/* SPDX-License-Identifier: MIT */
/* A program that does everything a program can do to the allocator, against the account of model.h.
 * What it does next is drawn: from an input while it lasts, else at random. It fails the test, or
 * ends the process, where memory has two unordered users or the books do not hold. */
#ifndef CCA_TEST_MODEL_PROGRAM_H
#define CCA_TEST_MODEL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void model_program_start(uint64_t seed, const uint8_t *input, size_t input_bytes);

/* Whether there is input left. */
bool model_program_step(void);

/* Everything is over and freed: nothing may be left. */
void model_program_finish(void);

#endif
