/* SPDX-License-Identifier: MIT */
/* Hand-built models and their documents, for the tests of the snapshot layer. */
#ifndef CCA_TEST_SNAPSHOT_FIXTURE_H
#define CCA_TEST_SNAPSHOT_FIXTURE_H

#include "snapshot/file.h"
#include "snapshot/model.h"

#define FIXTURE_RESERVE ((size_t)1 << 30)

/* One device, one segment with a live, a pending and a free block, an event of several kinds, two
 * stacks of which one holds bytes that are not UTF-8. */
void fixture_small(struct cca_model *model);

/* No device at all. */
void fixture_empty(struct cca_model *model);

/* What a viewer may stumble over: 3,000 blocks in one segment, a block of 6 GiB, names that are not
 * UTF-8, an address above 2^47, and a second device that was never used. */
void fixture_viewer(struct cca_model *model);

/* So many events and blocks with stacks of 22 frames, four fifths of them common to all. */
void fixture_big(struct cca_model *model, size_t events, size_t blocks, size_t stacks);

/* A folder of its own for the files of the running test, made anew; removed with its files. */
const char *fixture_folder(void);
void fixture_remove_folder(void);

/* Writes the model to a file of that name in the folder; returns its bytes. */
uint64_t fixture_write(struct cca_model *model, cca_dump_write_fn write, const char *name);

/* The whole file, zero-terminated, to be freed. */
char *fixture_read(const char *name);

/* Writes both formats and lets Python check them; `expressions` (NULL at the end) must hold for the
 * document `s`. Fails the test otherwise. */
void fixture_check(struct cca_model *model, const char *const *expressions);

#endif
