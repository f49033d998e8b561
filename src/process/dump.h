/* SPDX-License-Identifier: MIT */
/* Making one snapshot: copy the model, name its stacks, write every format, let go. Runs on the
 * dump thread, on the exiting thread, or on the program's own thread when it asks; never under a
 * heap lock, and by one thread at a time: whoever holds the claim. */
#ifndef CCA_PROCESS_DUMP_H
#define CCA_PROCESS_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "process/state.h"

/* Waits at most `wait_ms` for the claim. */
bool cca_dump_claim(struct cca_process *process, unsigned wait_ms) CCA_MUST_CHECK;
void cca_dump_release(struct cca_process *process);

/* Copies the state as it is now; needs no claim. `cause` is a literal. NULL when there is no memory
 * or nothing to copy. */
struct cca_dump_job *cca_dump_copy(struct cca_process *process, const char *cause,
                                   unsigned lock_ms) CCA_MUST_CHECK;

/* Names the stacks of the copy; without memory for that, they are left out. */
void cca_dump_name(struct cca_process *process, struct cca_dump_job *job);
/* The same for a model; -ENOMEM. */
int cca_dump_name_model(struct cca_process *process, struct cca_model *model);
struct cca_model *cca_dump_model(struct cca_dump_job *job);

/* Writes the files of a named copy. The claim is held. `pattern` as CCA_DUMP_FILE; NULL: as the
 * settings say. 0 when every format was written, else the first error, which has been logged. */
int cca_dump_write_files(struct cca_process *process, struct cca_dump_job *job,
                         const char *pattern);

/* All of that, and frees the copy. */
int cca_dump_finish(struct cca_process *process, struct cca_dump_job *job, const char *pattern);

/* Both: 0, -ENOMEM, or as cca_dump_finish. */
int cca_dump_write(struct cca_process *process, const char *cause, const char *pattern);

/* The same; a heap whose lock cannot be had in `lock_ms` is left out. */
int cca_dump_write_within(struct cca_process *process, const char *cause, const char *pattern,
                          unsigned lock_ms);

/* The same of one private pool, by its id: see cca_model_keep_pool. */
int cca_dump_write_pool(struct cca_process *process, const char *cause, const char *pattern,
                        int device, const uint64_t id[2]);

/* Frees a copy that is not written; NULL accepted. */
void cca_dump_discard(struct cca_dump_job *job);

/* Takes the out-of-memory copy that waits, if any, tells of it and writes it. The claim is held. */
void cca_dump_finish_pending(struct cca_process *process);

#endif
