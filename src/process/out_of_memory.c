/* SPDX-License-Identifier: MIT */
/* A request failed for want of memory: the state is copied by the thread that asked, and told of
 * and written by the dump thread, for which the other waits a moment, so that the report is there
 * before the program acts on its error. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "process/dump.h"
#include "process/oom.h"
#include "snapshot/capture.h"

/* A failure is reported at most once in this time. */
#define INTERVAL_NS UINT64_C(10000000000)

enum { REPORT_WAIT_MS = 60, LOCK_MS = 20 };

/* Of the request that failed last on this thread. */
static CCA_THREAD_LOCAL struct cca_oom_info last_info;

void cca_oom_note(void *user, const struct cca_oom_info *info)
{
    (void)user;
    last_info = *info;
}

static bool is_due(struct cca_process *process)
{
    struct cca_dumps *dumps = &process->dumps;
    uint64_t now_ns = cca_clock_ns();
    uint64_t last_ns = atomic_load_explicit(&dumps->last_oom_ns, memory_order_relaxed);

    if ((last_ns == 0 || now_ns - last_ns >= INTERVAL_NS) &&
        atomic_compare_exchange_strong(&dumps->last_oom_ns, &last_ns, now_ns)) {
        return true;
    }
    atomic_fetch_add_explicit(&dumps->quiet_ooms, 1, memory_order_relaxed);
    return false;
}

/* What the copied state does not say: the request, and what the driver said. */
static void describe(struct cca_process *process, struct cca_model *model, int ordinal,
                     uint64_t bytes)
{
    model->oom = (struct cca_model_oom){.device = ordinal, .requested_bytes = bytes};
    if (last_info.total_bytes != 0 && last_info.ordinal == ordinal) {
        bool is_limited = last_info.limit_bytes != 0 &&
                          last_info.limit_bytes < last_info.total_bytes;

        model->oom.segment_bytes = last_info.is_rejection ? 0 : last_info.bytes;
        model->oom.limit_bytes = is_limited ? last_info.limit_bytes : 0;
        for (size_t i = 0; i < model->device_count; i++) {
            struct cca_model_device *device = &model->devices[i];

            if (device->ordinal == ordinal && !last_info.is_rejection) {
                device->total_bytes = last_info.total_bytes;
                device->free_bytes = last_info.free_bytes;
                device->free_time_ns = cca_clock_ns();
            }
        }
    }
    cca_oom_examine(model, &process->config);
}

static void tell(struct cca_process *process, struct cca_model *model)
{
    uint64_t quiet = atomic_exchange_explicit(&process->dumps.quiet_ooms, 0, memory_order_relaxed);

    cca_oom_print(model, quiet);
}

/* Hands the copy over, and waits for the report. */
static void hand_over(struct cca_process *process, struct cca_dump_job *job)
{
    struct cca_dumps *dumps = &process->dumps;
    unsigned done = atomic_load_explicit(&dumps->ooms_done, memory_order_acquire);

    cca_dump_discard(atomic_exchange_explicit(&dumps->pending, job, memory_order_acq_rel));
    (void)cca_dump_thread_ask(process, CCA_WANT_OOM);
    for (int i = 0; i < REPORT_WAIT_MS * 4 &&
                    atomic_load_explicit(&dumps->ooms_done, memory_order_acquire) == done;
         i++) {
        cca_clock_sleep_us(250);
    }
}

void cca_dump_finish_pending(struct cca_process *process)
{
    struct cca_dump_job *job = atomic_exchange_explicit(&process->dumps.pending, NULL,
                                                        memory_order_acq_rel);

    if (job == NULL) {
        return;
    }
    cca_dump_name(process, job);
    tell(process, cca_dump_model(job));
    atomic_fetch_add_explicit(&process->dumps.ooms_done, 1, memory_order_release);
    if ((process->config.dump_on & CCA_DUMP_ON_OOM) != 0) {
        (void)cca_dump_write_files(process, job, NULL);
    }
    cca_dump_discard(job);
}

void cca_process_out_of_memory(struct cca_heap *heap, const struct cca_request *request)
{
    struct cca_process *process = cca_process_state();
    struct cca_dumps *dumps = &process->dumps;
    struct cca_dump_job *job;
    int saved_errno = errno;

    if (!cca_process_is_active() ||
        atomic_load_explicit(&dumps->is_stopping, memory_order_acquire) || !is_due(process)) {
        return;
    }
    job = cca_dump_copy(process, "oom", LOCK_MS);
    if (job != NULL) {
        describe(process, cca_dump_model(job), cca_allocator_ordinal(heap), request->bytes);
        if (atomic_load_explicit(&dumps->has_thread, memory_order_acquire)) {
            hand_over(process, job);
        } else {
            tell(process, cca_dump_model(job));
            cca_dump_discard(job);
        }
    }
    last_info = (struct cca_oom_info){0};
    errno = saved_errno;
}
