/* SPDX-License-Identifier: MIT */
/* Words in memory by which streams tell each other things, and the order that comes of it: what is
 * behind a wait comes after what is before the write that ended it.
 *
 * The write is found when the wait is enqueued, among those that may end it; if several may, only
 * what is before each of them is ordered. If none may yet, the first one to come will be it, or
 * whoever has written the word by the time the wait is over: the host, a copy, a kernel. */
#ifndef SIM_WORD_H
#define SIM_WORD_H

#include "engine.h"

/* Is the word as a wait wants it? flags: CU_STREAM_WAIT_VALUE_*. */
bool sim_word_satisfies(uint64_t word, uint64_t wanted, unsigned bytes, unsigned flags);
/* The operation was enqueued and writes op->value; not has_barrier: it may come before what it
 * stands behind. */
void sim_word_write(struct sim_op *op, bool has_barrier);
/* The writing operation has run: the host may have read it, if the word lies where it can. */
void sim_word_is_written(struct sim_op *op);
/* The operation was enqueued and waits for op->value. The caller holds it. */
void sim_word_wait(struct sim_op *op);
/* The waiting operation runs. */
void sim_word_wait_is_over(struct sim_op *op);
/* The waiting operation ends without having run, or after. */
void sim_word_wait_drop(struct sim_op *op);
/* The memory ends, and what was written there. */
void sim_words_forget(uint64_t start, uint64_t end);

#endif
