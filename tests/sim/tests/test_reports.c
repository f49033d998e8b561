/* SPDX-License-Identifier: MIT */
/* What the report of a violation says: what is wrong, both parties with stream, bytes and stack,
 * and what happened between. A case runs the wrong program as a process and reads its stderr. */
#include "check.h"
#include "sim.h"
#include "sim_kernels.h"

#include <cuda.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 4096

static cudaStream_t first;
static cudaStream_t second;
static char *p;

static void start(void)
{
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&p, BYTES));
}

/* Names that the stacks show; nothing may be left of them by the optimiser. */
#ifdef __clang__
#define SHOWN __attribute__((noinline, visibility("default")))
#else
#define SHOWN __attribute__((noinline, noclone, visibility("default")))
#endif
SHOWN void the_earlier_party(void (*act)(void));
SHOWN void the_later_party(void (*act)(void));

void the_earlier_party(void (*act)(void))
{
    act();
    __asm__ volatile("");
}

void the_later_party(void (*act)(void))
{
    act();
    __asm__ volatile("");
}

static void fill_first(void)
{
    OK(sim_fill(p, BYTES, 1, first));
}

static void fill_second(void)
{
    CHECK_EQ(sim_fill(p + 8, 16, 2, second), cudaErrorIllegalAddress);
}

static void free_it(void)
{
    OK(cudaFree(p));
}

static void take_in_first(void)
{
    OK(cudaMallocAsync((void **)&p, BYTES, first));
}

static void free_in_second(void)
{
    CHECK_EQ(cudaFreeAsync(p, second), cudaErrorIllegalAddress);
}

static void free_while_captured(void)
{
    CHECK_EQ(cudaFree(p), cudaErrorIllegalAddress);
}

static void do_overlap(void)
{
    start();
    the_earlier_party(fill_first);
    the_later_party(fill_second);
}

static void do_dead(void)
{
    start();
    the_earlier_party(free_it);
    the_later_party(fill_second);
}

static void do_before_allocation(void)
{
    start();
    the_earlier_party(take_in_first);
    the_later_party(fill_second);
}

static void do_wrong_stream_free(void)
{
    start();
    take_in_first();
    OK(cudaStreamSynchronize(first));
    the_earlier_party(fill_first);
    the_later_party(free_in_second);
}

static void do_free_of_captured(void)
{
    cudaGraph_t graph;

    start();
    OK(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
    the_earlier_party(fill_first);
    the_later_party(free_while_captured);
    cudaStreamEndCapture(first, &graph);
}

/* Runs a case as a process; its stderr, and that it ended with the status of violations. */
static char *report_of(const char *name)
{
    static char text[1 << 16];
    size_t length = 0;
    ssize_t got;
    int ends[2];
    int status;

    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execl("/proc/self/exe", "case", name, "1", (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 97);
    return text;
}

/* The lines must come in this order, each holding the text. */
static void expect(const char *text, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        const char *found = strstr(text, *lines);
        if (found == NULL) {
            printf("# missing: %s\n# in: %s\n", *lines, text);
        }
        CHECK(found != NULL);
        text = found + strlen(*lines);
    }
}

static void an_overlap_names_both(void)
{
    static const char *const lines[] = {"simcuda: violation: unordered overlap\n",
                                        "  by sim_fill, stream ",
                                        ", writes 0x",
                                        "#0 ",
                                        "the_later_party",
                                        "  with sim_fill, stream ",
                                        ", writes 0x",
                                        "#0 ",
                                        "the_earlier_party",
                                        "  time line\n",
                                        "+0.000 ms host: cuMemAlloc_v2 creates 0x",
                                        ": sim_fill writes 0x",
                                        ": sim_fill writes 0x",
                                        NULL};

    expect(report_of("do_overlap"), lines);
}

static void dead_memory_names_its_end(void)
{
    static const char *const lines[] = {"simcuda: violation: memory is not live\n",
                                        "  by sim_fill, stream ",
                                        "the_later_party",
                                        "  with cuMemFree_v2, host, ",
                                        "the_earlier_party",
                                        "  time line\n",
                                        "host: cuMemAlloc_v2 creates 0x",
                                        "host: cuMemFree_v2 ends 0x",
                                        NULL};

    expect(report_of("do_dead"), lines);
}

static void use_before_the_allocation_is_told(void)
{
    static const char *const lines[] = {
        "simcuda: violation: used in a stream that is not ordered after the allocation\n",
        "  by sim_fill, stream ",
        "the_later_party",
        "  with cuMemAllocAsync, stream ",
        "the_earlier_party",
        "  time line\n",
        ": cuMemAllocAsync creates 0x",
        NULL};

    expect(report_of("do_before_allocation"), lines);
}

static void a_free_in_the_wrong_stream_is_told(void)
{
    static const char *const lines[] = {
        "simcuda: violation: freed in a stream that is not ordered after the use\n",
        "  by cuMemFreeAsync, stream ",
        "the_later_party",
        "  with sim_fill, stream ",
        "the_earlier_party",
        "  time line\n",
        ": cuMemAllocAsync creates 0x",
        "cuStreamSynchronize has waited",
        ": sim_fill writes 0x",
        ": cuMemFreeAsync ends 0x",
        NULL};

    expect(report_of("do_wrong_stream_free"), lines);
}

static void a_free_of_captured_memory_is_told(void)
{
    static const char *const lines[] = {
        "simcuda: violation: freed while a capture that goes on uses it\n",
        "  by cuMemFree_v2, host, ",
        "the_later_party",
        "  with sim_fill, stream ",
        "the_earlier_party",
        NULL};

    expect(report_of("do_free_of_captured"), lines);
}

static void without_a_record_only_the_callers_are_told(void)
{
    const char *text = report_of("do_overlap");
    static const char *const lines[] = {"simcuda: violation: unordered overlap\n",
                                        "  by sim_fill, stream ", "  with sim_fill, stream ", NULL};

    expect(text, lines);
    CHECK(strstr(text, "time line") == NULL);
    CHECK(strstr(text, "#0") == NULL);
}

static const struct check_case cases[] = {
    {"do_overlap", do_overlap, NULL, 97},
    {"do_dead", do_dead, NULL, 97},
    {"do_before_allocation", do_before_allocation, NULL, 97},
    {"do_wrong_stream_free", do_wrong_stream_free, NULL, 97},
    {"do_free_of_captured", do_free_of_captured, NULL, 97},
    {"an_overlap_names_both", an_overlap_names_both, NULL, 0},
    {"dead_memory_names_its_end", dead_memory_names_its_end, NULL, 0},
    {"use_before_the_allocation_is_told", use_before_the_allocation_is_told, NULL, 0},
    {"a_free_in_the_wrong_stream_is_told", a_free_in_the_wrong_stream_is_told, NULL, 0},
    {"a_free_of_captured_memory_is_told", a_free_of_captured_memory_is_told, NULL, 0},
    {"without_a_record_only_the_callers_are_told", without_a_record_only_the_callers_are_told,
     "SIMCUDA_RECORD=off", 0},
};

CHECK_MAIN(cases)
