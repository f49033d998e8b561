/* SPDX-License-Identifier: MIT */
/* What a hook adds to each call: who called, and that it was called. */
#include <errno.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/format.h"
#include "base/log.h"
#include "observe/unwind.h"
#include "process/state.h"

enum { DEPTH_MAX = 128, ROW_BYTES = 192 };

static CCA_THREAD_LOCAL uint32_t thread_id;

void cca_process_forget_thread(void)
{
    thread_id = 0;
}

uint32_t cca_process_thread(void)
{
    if (CCA_UNLIKELY(thread_id == 0)) {
        thread_id = (uint32_t)gettid();
    }
    return thread_id;
}

static bool wants_stack(struct cca_process *process, bool is_free)
{
    int level = atomic_load_explicit(&process->context_level, memory_order_relaxed);

    return is_free ? level == CCA_CONTEXT_ALL : level != CCA_CONTEXT_NONE;
}

/* How many frames lie further in than the one that `caller` returns to. */
static int frames_before(const uintptr_t *pcs, int depth, const void *caller)
{
    for (int i = 0; caller != NULL && i < depth; i++) {
        if (pcs[i] == (uintptr_t)caller) {
            return i;
        }
    }
    return 0;
}

/* The id of the stack. False: the unwinder walked wrong, and is another one from here on. */
static bool store_stack(struct cca_process *process, const uintptr_t *pcs, int depth,
                        uint32_t *id_out)
{
    *id_out = cca_stack_table_find(&process->stacks, pcs, depth);
    if (CCA_LIKELY(*id_out != 0 || depth <= 0)) {
        return true;
    }
    if (cca_module_log_note(&process->modules, &process->stacks, pcs, depth)) {
        cca_unwind_distrust();
        return false;
    }
    *id_out = cca_stack_table_intern(&process->stacks, pcs, depth);
    return true;
}

/* In the frame of whoever calls it: the unwinder counts frames. */
static inline __attribute__((always_inline)) void
describe(struct cca_request *request, bool is_free, const void *caller, int skip)
{
    struct cca_process *process = cca_process_state();
    uintptr_t pcs[DEPTH_MAX];
    int max, depth, before = 0;

    request->thread = cca_process_thread();
    request->metadata = cca_process_metadata();
    request->stack = 0;
    if (!wants_stack(process, is_free) ||
        !atomic_load_explicit(&process->has_stacks, memory_order_acquire)) {
        return;
    }
    max = process->config.stack_depth < DEPTH_MAX ? (int)process->config.stack_depth : DEPTH_MAX;
    for (int tries = 0; tries < 2; tries++) {
        depth = cca_unwind_capture(pcs, max, skip + 1);
        if (CCA_UNLIKELY(
                cca_module_log_is_stale(&process->modules, &process->stacks, pcs, depth))) {
            cca_unwind_distrust();
            continue;
        }
        before = frames_before(pcs, depth, caller);
        if (CCA_LIKELY(store_stack(process, pcs + before, depth - before, &request->stack))) {
            return;
        }
    }
}

CCA_NOINLINE void cca_process_describe(struct cca_request *request, bool is_free, int skip)
{
    describe(request, is_free, NULL, skip);
}

CCA_NOINLINE void cca_process_describe_from(struct cca_request *request, bool is_free,
                                            const void *caller, int skip)
{
    describe(request, is_free, caller, skip);
}

void cca_process_count(int row, enum cca_coverage what)
{
    struct cca_process *process = cca_process_state();
    uint32_t stripe = cca_process_thread() % CCA_COVERAGE_STRIPES;

    if (row >= 0 && row < CCA_COVERAGE_ROWS_MAX) {
        atomic_fetch_add_explicit(&process->coverage[stripe][row].counts[what], 1,
                                  memory_order_relaxed);
    }
}

uint64_t cca_process_coverage(const struct cca_process *process, int row, enum cca_coverage what)
{
    uint64_t sum = 0;

    for (int i = 0; i < CCA_COVERAGE_STRIPES; i++) {
        sum += atomic_load_explicit(&process->coverage[i][row].counts[what], memory_order_relaxed);
    }
    return sum;
}

void cca_process_name_coverage(const struct cca_coverage_name *names, int count)
{
    struct cca_process *process = cca_process_state();

    process->coverage_names = names;
    process->coverage_name_count = count < CCA_COVERAGE_ROWS_MAX ? count : CCA_COVERAGE_ROWS_MAX;
}

bool cca_process_has_seen_calls(void)
{
    const struct cca_process *process = cca_process_state();

    for (int row = 0; row < process->coverage_name_count; row++) {
        if (cca_process_coverage(process, row, CCA_COVERAGE_SEEN) != 0) {
            return true;
        }
    }
    return false;
}

static const char *row_text(const struct cca_process *process, int row, char *buf, size_t size)
{
    static const char *const kinds[CCA_COVERAGE_KINDS] = {" seen, ", " served, ", " passed, ",
                                                          " missed"};
    struct cca_text text;
    uint64_t sum = 0;

    cca_text_init(&text, buf, size);
    cca_text_str(&text, process->coverage_names[row].api);
    cca_text_str(&text, " (");
    cca_text_str(&text, process->coverage_names[row].door);
    cca_text_str(&text, " door): ");
    for (int kind = 0; kind < CCA_COVERAGE_KINDS; kind++) {
        uint64_t count = cca_process_coverage(process, row, (enum cca_coverage)kind);
        cca_text_u64(&text, count);
        cca_text_str(&text, kinds[kind]);
        sum += count;
    }
    return sum != 0 ? buf : NULL;
}

void cca_process_log_coverage(void)
{
    const struct cca_process *process = cca_process_state();
    char buf[ROW_BYTES];

    for (int row = 0; row < process->coverage_name_count; row++) {
        const char *text = row_text(process, row, buf, sizeof(buf));
        if (text != NULL) {
            cca_log(CCA_LOG_INFO, "%s", text);
        }
    }
}
