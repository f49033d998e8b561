/* SPDX-License-Identifier: MIT */
/* Messages to the user: one line each, "cca: ...", through one write(2), capped in number. Written
 * to stderr only while descriptor 2 is still the file it was when cca_log_init ran (programs close
 * and reuse descriptors); before that nothing is. errno is preserved. Thread-safe, no lock, no
 * malloc; not for signal handlers. */
#ifndef CCA_BASE_LOG_H
#define CCA_BASE_LOG_H

#include <stdbool.h>

#include "base/compiler.h"

enum cca_log_level { CCA_LOG_ERROR, CCA_LOG_WARN, CCA_LOG_INFO, CCA_LOG_DEBUG };

/* Remembers which file descriptor 2 is (device and inode). Call once, before any message. */
void cca_log_init(void);

/* Messages above `level` are dropped. Default: CCA_LOG_WARN. */
void cca_log_set_level(enum cca_log_level level);

/* Messages go to the end of this file from now on, opened for each of them and never kept open;
 * NULL: to stderr. An absolute path, copied; one that is too long or cannot be opened for writing
 * leaves them on stderr, and false is returned. Call before there are other threads. */
bool cca_log_set_file(const char *path);

/* One line; a newline and the prefix are added. After 100 messages one last line says that further
 * ones are dropped. Conversions as cca_format. */
void cca_log(enum cca_log_level level, const char *fmt, ...) CCA_PRINTF(2, 3);

/* The same, and kept for snapshots whatever the level. Errors and warnings are kept in any case:
 * the first 64 of a process, each cut after 255 bytes. */
void cca_log_and_keep(enum cca_log_level level, const char *fmt, ...) CCA_PRINTF(2, 3);

/* The message at `index` of those that were kept, without the prefix, for the life of the process;
 * NULL behind the last one. */
const char *cca_log_kept(int index);

/* The same as cca_log, at most once for each `said` (a static int that starts at 0). */
void cca_log_once(int *said, enum cca_log_level level, const char *fmt, ...) CCA_PRINTF(3, 4);

/* Writes prepared text of several lines, not counted and not prefixed (the exit summary). */
void cca_log_text(const char *text);

/* Whether descriptor 2 is still the file seen by cca_log_init. */
bool cca_log_stderr_is_ours(void);

#endif
