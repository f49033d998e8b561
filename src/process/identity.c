/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/format.h"
#include "config/parse.h"
#include "process/state.h"

static void take_program(struct cca_identity *identity)
{
    ssize_t len = readlink("/proc/self/exe", identity->program, sizeof(identity->program) - 1);

    if (len > 0) {
        identity->program[len] = '\0';
    } else {
        cca_format(identity->program, sizeof(identity->program), "%s",
                   program_invocation_short_name);
    }
}

/* Read at load: the program may change its environment while a snapshot is made. */
static int read_rank(void)
{
    static const char *const names[] = {"RANK",     "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "MV2_COMM_WORLD_RANK",  "SLURM_PROCID"};

    for (size_t i = 0; i < CCA_ARRAY_LEN(names); i++) {
        const char *text = getenv(names[i]);
        uint64_t rank;

        if (text != NULL && cca_parse_uint(text, &rank) == 0 && rank <= INT32_MAX) {
            return (int)rank;
        }
    }
    return -1;
}

void cca_identity_renew(struct cca_identity *identity)
{
    identity->pid = getpid();
    identity->start_ns = cca_clock_ns();
    identity->start_time_us = cca_clock_wall_us(identity->start_ns);
}

void cca_identity_take(struct cca_identity *identity)
{
    const char *tmp_directory = getenv("TMPDIR");
    int saved_errno = errno;

    cca_identity_renew(identity);
    if (getcwd(identity->directory, sizeof(identity->directory)) == NULL ||
        identity->directory[0] != '/') {
        identity->directory[0] = '\0';
    }
    cca_format(identity->tmp_directory, sizeof(identity->tmp_directory), "%s",
               tmp_directory != NULL ? tmp_directory : "");
    take_program(identity);
    identity->rank = read_rank();
    errno = saved_errno;
}

void cca_identity_read_command_line(struct cca_identity *identity)
{
    int saved_errno = errno;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size_t len = 0;

    while (fd >= 0 && len < sizeof(identity->command_line) - 1) {
        ssize_t n = read(fd, identity->command_line + len,
                         sizeof(identity->command_line) - 1 - len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        len += (size_t)n;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (len > 0 && identity->command_line[len - 1] != '\0') {
        identity->command_line[len++] = '\0';
    }
    identity->command_line_bytes = len;
    errno = saved_errno;
}
