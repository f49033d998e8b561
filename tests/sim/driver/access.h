/* SPDX-License-Identifier: MIT */
/* Who touched which bytes, and the judgement on it: memory must be live, and two operations that
 * share bytes, one of them writing, must be ordered by clock.h. The judgement falls when the later
 * one is enqueued, so it does not depend on when either runs. */
#ifndef SIM_ACCESS_H
#define SIM_ACCESS_H

#include "block.h"
#include "engine.h"
#include "violation.h"

/* Adds the bytes to the operation's ranges; host memory too. Memory of a device that is not live is
 * a violation and breaks the operation. */
void sim_op_reach(struct sim_op *op, uint64_t address, size_t size_bytes, bool is_write);
void sim_op_reach_rows(struct sim_op *op, uint64_t address, size_t size_bytes, size_t pitch_bytes,
                       size_t rows, bool is_write);
void sim_op_add_range(struct sim_op *op, struct sim_range range);
/* The operation as a party to a report, by all rows of one of its ranges. */
struct sim_party sim_op_party(const struct sim_op *op, const struct sim_range *range);
/* The address is only known to be used somehow. */
void sim_op_mention(struct sim_op *op, uint64_t address);
/* A word that streams tell each other things by: it must live, but nothing that happens to it
 * counts as a use, since such words are there to be used at once. */
void sim_op_word(struct sim_op *op, uint64_t address, size_t size_bytes);
/* The operation ends the block's life or begins it: all of its bytes. */
void sim_op_own(struct sim_op *op, struct sim_block *block, bool is_birth);

/* Judges op, which has its number but is not yet in its queue's clock, and remembers its ranges. */
void sim_access_check(struct sim_op *op);
/* At run: did every block live until now? */
bool sim_access_is_live(struct sim_op *op);
/* The same, without a report. */
bool sim_access_has_died(const struct sim_op *op);
/* The memory changes hands after everything on it is over. Anything not known to be over is a
 * violation when is_checked. */
void sim_access_forget(struct sim_block *block, bool is_checked);
void sim_access_forget_bytes(uint64_t start, uint64_t end);
/* What has written to the bytes, as far as it is remembered, is in the clock from now on. */
void sim_access_join_writers(uint64_t start, uint64_t end, struct sim_clock *clock);

#endif
