/* SPDX-License-Identifier: MIT */
#include "process/progress.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"

/* Browsers give up on larger ones. */
#define HUGE_BYTES (UINT64_C(512) << 20)
#define PAUSE_NS   UINT64_C(2000000000)

void cca_progress_begin(struct cca_progress *progress, uint64_t expected_bytes)
{
    char size_buf[32];
    struct cca_text size;

    cca_text_init(&size, size_buf, sizeof(size_buf));
    cca_text_size(&size, expected_bytes);
    *progress = (struct cca_progress){expected_bytes, cca_clock_ns() + PAUSE_NS};
    if (expected_bytes >= HUGE_BYTES) {
        cca_log(CCA_LOG_WARN,
                "a snapshot of about %s is written, more than viewers open: "
                "CCA_DUMP_LAST keeps the last so many events",
                size_buf);
    } else {
        cca_log(CCA_LOG_INFO, "a snapshot of about %s is written", size_buf);
    }
}

void cca_progress_tell(void *user, uint64_t written_bytes)
{
    struct cca_progress *progress = user;
    uint64_t now_ns = cca_clock_ns();

    if (now_ns < progress->next_ns || written_bytes >= progress->expected_bytes) {
        return;
    }
    progress->next_ns = now_ns + PAUSE_NS;
    cca_log(CCA_LOG_INFO, "about %d %% of the snapshot are written",
            (int)(100 * written_bytes / progress->expected_bytes));
}
