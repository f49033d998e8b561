/* SPDX-License-Identifier: MIT */
#include "base/check.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/format.h"
#include "base/log.h"

void cca_check_failed(const char *cond, const char *file, int line)
{
    char buf[512];
    size_t len = cca_format(buf, sizeof(buf), "cca: %s:%d: check failed: %s\n", file, line, cond);

    /* Not through the log: the last words must come out whatever became of descriptor 2. */
    if (write(STDERR_FILENO, buf, len) < 0) {
        abort();
    }
    abort();
}

void cca_expect_failed(int *said, const char *cond, const char *file, int line)
{
    cca_log_once(said, CCA_LOG_ERROR, "%s:%d: expected: %s", file, line, cond);
}
