/* SPDX-License-Identifier: MIT */
/* The public header in a program without the library; C11 and C++17. Exit status: the number of
 * the first answer that is not as documented. */
#include "cca/cca.h"

#include <errno.h>
#include <stdint.h>

int main(void)
{
    int64_t value = 7;

    errno = ENOTTY;
    if (cca_loaded() != 0 || cca_version() != NULL) {
        return 1;
    }
    if (cca_memory_allocated(0) != 0 || cca_max_memory_allocated(0) != 0) {
        return 2;
    }
    if (cca_memory_reserved(0) != 0 || cca_max_memory_reserved(0) != 0) {
        return 3;
    }
    if (cca_stat_value(0, "num_ooms", &value) != -ENOSYS || value != 7) {
        return 4;
    }
    if (cca_reset_peak_memory_stats(0) != -ENOSYS ||
        cca_reset_accumulated_memory_stats(0) != -ENOSYS) {
        return 5;
    }
    if (cca_empty_cache() != -ENOSYS || cca_dump_snapshot(NULL) != -ENOSYS) {
        return 6;
    }
    return errno == ENOTTY ? 0 : 7;
}
