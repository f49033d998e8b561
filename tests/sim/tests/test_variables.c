/* SPDX-License-Identifier: MIT */
/* The variables that no other test sets. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static unsigned char payload_byte(const void *p)
{
    return *(unsigned char *)simcuda_payload((uint64_t)p);
}

static void new_memory_is_zero(void)
{
    void *p;

    OK(cudaMalloc(&p, 100));
    CHECK_EQ(payload_byte(p), 0);
}

static void new_memory_is_poisoned(void)
{
    void *p;
    void *q;

    OK(cudaMalloc(&p, 100));
    CHECK_EQ(payload_byte(p), 0xa5);
    OK(cudaMallocAsync(&q, 100, NULL));
    CHECK_EQ(payload_byte(q), 0xa5);
    OK(cudaMemset(p, 1, 100));
    OK(cudaFree(p));
    OK(cudaMalloc(&p, 100));
    CHECK_EQ(payload_byte(p), 0xa5);
}

static void large_payload_stays_out(void)
{
    char host[200];
    char *p;

    memset(host, 7, sizeof(host));
    OK(cudaMalloc((void **)&p, 200));
    OK(cudaMemcpy(p, host, 100, cudaMemcpyHostToDevice));
    CHECK_EQ(payload_byte(p), 7);
    OK(cudaMemset(p, 1, 200));
    CHECK_EQ(payload_byte(p), 7);
    memset(host, 8, sizeof(host));
    OK(cudaMemcpy(p, host, 200, cudaMemcpyHostToDevice));
    CHECK_EQ(payload_byte(p), 7);
}

/* Frees a large block, written full, and looks at what the same address shows then. */
static unsigned char left_by_a_free(void)
{
    void *p;
    void *q;

    OK(cudaMalloc(&p, 8 * MIB));
    OK(cudaMemset(p, 9, 8 * MIB));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(p));
    OK(cudaMalloc(&q, 8 * MIB));
    CHECK(p == q);
    return payload_byte(q);
}

static void pages_are_kept(void)
{
    CHECK_EQ(left_by_a_free(), 9);
}

static void pages_are_given_back(void)
{
    CHECK_EQ(left_by_a_free(), 0);
}

static void call_something(void)
{
    void *p;

    OK(cudaMalloc(&p, 100));
    CHECK_EQ(cudaFree((char *)p + 512), cudaErrorInvalidValue);
}

/* Lines of the trace of that case, with one more variable set. */
static int count_lines(const char *variable, const char *start)
{
    char path[64];
    char line[1024];
    int status;
    int count = 0;

    snprintf(path, sizeof(path), "/tmp/simcuda-trace-%d", (int)getpid());
    setenv("SIMCUDA_TRACE", path, 1);
    setenv(variable, "1", 1);
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl("/proc/self/exe", "case", "call_something", "1", (char *)NULL);
        _exit(126);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    FILE *trace = fopen(path, "r");
    CHECK(trace != NULL);
    while (fgets(line, sizeof(line), trace) != NULL) {
        count += strncmp(line, start, strlen(start)) == 0;
    }
    fclose(trace);
    unlink(path);
    return count;
}

static void a_trace_has_every_call(void)
{
    CHECK_EQ(count_lines("SIMCUDA_NOTHING", "cuMemAlloc_v2 0\n"), 1);
    CHECK_EQ(count_lines("SIMCUDA_NOTHING", "cuMemFree_v2 1\n"), 1);
}

static void a_trace_may_have_arguments(void)
{
    CHECK_EQ(count_lines("SIMCUDA_TRACE_ARGUMENTS", "cuMemAlloc_v2 0 dptr=0x"), 1);
    CHECK_EQ(count_lines("SIMCUDA_TRACE_ARGUMENTS", "cuMemFree_v2 1 dptr=0x"), 1);
    CHECK_EQ(count_lines("SIMCUDA_TRACE_ARGUMENTS", "cuDevicePrimaryCtxRetain 0 pctx=0x"), 1);
}

static const struct check_case cases[] = {
    {"new_memory_is_zero", new_memory_is_zero, NULL, 0},
    {"new_memory_is_poisoned", new_memory_is_poisoned, "SIMCUDA_FILL=poison", 0},
    {"large_payload_stays_out", large_payload_stays_out, "SIMCUDA_PAYLOAD_MAX=150", 0},
    {"pages_are_kept", pages_are_kept, NULL, 0},
    {"pages_are_given_back", pages_are_given_back, "SIMCUDA_KEEP=4M", 0},
    {"call_something", call_something, NULL, 0},
    {"a_trace_has_every_call", a_trace_has_every_call, NULL, 0},
    {"a_trace_may_have_arguments", a_trace_may_have_arguments, NULL, 0},
};

CHECK_MAIN(cases)
