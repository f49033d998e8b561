/* SPDX-License-Identifier: MIT */
/* The public header in a program that is not linked with the library; C11 and C++17. Argument:
 * whether the library is `present` in the process or `absent`. Exit status: the number of the first
 * answer that is not as documented. */
#include "cca/cca.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static int check(int is_present)
{
    const int error = is_present ? -ENODEV : -ENOSYS;
    int64_t value = 7;

    if (cca_loaded() != is_present || (cca_version() != NULL) != is_present) {
        return 1;
    }
    if (is_present && strcmp(cca_version(), CCA_VERSION_STRING) != 0) {
        return 2;
    }
    if (cca_memory_allocated(0) != 0 || cca_max_memory_allocated(0) != 0) {
        return 3;
    }
    if (cca_memory_reserved(0) != 0 || cca_max_memory_reserved(0) != 0) {
        return 4;
    }
    if (cca_stat_value(0, "num_ooms", &value) != error || value != 7) {
        return 5;
    }
    if (cca_reset_peak_memory_stats(0) != error || cca_reset_accumulated_memory_stats(0) != error) {
        return 6;
    }
    return cca_empty_cache() != error || cca_dump_snapshot(NULL) != error ? 7 : 0;
}

int main(int argc, char **argv)
{
    int rc;

    if (argc != 2) {
        return 64;
    }
    errno = ENOTTY;
    rc = check(strcmp(argv[1], "present") == 0);
    return rc == 0 && errno != ENOTTY ? 8 : rc;
}
