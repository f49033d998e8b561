/* SPDX-License-Identifier: MIT */
#include "violation.h"

#include "config.h"
#include "context.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_PRINTED 100

static uint64_t count;

static void print_party(const char *role, const struct sim_party *party)
{
    Dl_info info = {0};
    const char *object = "?";
    char line[512];

    if (party->caller != NULL && dladdr(party->caller, &info) != 0 && info.dli_fname != NULL) {
        const char *slash = strrchr(info.dli_fname, '/');
        object = slash != NULL ? slash + 1 : info.dli_fname;
    }
    int length = snprintf(
        line, sizeof(line),
        "simcuda: violation:   %s %s, stream %llu, %s 0x%llx..0x%llx, from %s+0x%lx %s\n", role,
        party->name, party->stream_id, party->is_write ? "writes" : "reads",
        (unsigned long long)party->start, (unsigned long long)party->end, object,
        (unsigned long)((const char *)party->caller - (const char *)info.dli_fbase),
        info.dli_sname != NULL ? info.dli_sname : "");
    if (length > (int)sizeof(line) - 1) {
        length = (int)sizeof(line) - 1;
    }
    if (write(STDERR_FILENO, line, (size_t)length) < 0) {
        return;
    }
}

void sim_violation(struct CUctx_st *context, const char *what, const struct sim_party *party,
                   const struct sim_party *other)
{
    count++;
    if (sim_config.violations == SIM_VIOLATION_IGNORE) {
        return;
    }
    if (context == NULL) {
        context = sim_context_current();
    }
    if (context != NULL && context->sticky == CUDA_SUCCESS) {
        context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (count > MAX_PRINTED) {
        return;
    }
    dprintf(STDERR_FILENO, "simcuda: violation: %s\n", what);
    print_party("by", party);
    if (other != NULL) {
        print_party("with", other);
    }
    if (sim_config.has_backtrace) {
        void *frames[32];
        backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    }
}

uint64_t sim_violation_count(void)
{
    return count;
}

void sim_violation_reset(void)
{
    count = 0;
}
