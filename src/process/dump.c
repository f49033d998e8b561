/* SPDX-License-Identifier: MIT */
#include "process/dump.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/reentry.h"
#include "base/sysmem.h"
#include "cca/cca_version.h"
#include "observe/modules.h"
#include "observe/unwind.h"
#include "snapshot/capture.h"
#include "snapshot/file.h"
#include "process/progress.h"
#include "snapshot/model.h"
#include "snapshot/size.h"
#include "snapshot/symbolize.h"
#include "snapshot/write_json.h"
#include "snapshot/write_pickle.h"
#include "snapshot/write_text.h"

struct cca_dump_job {
    struct cca_model model;
    struct cca_dump_result result;
};

static const struct {
    unsigned flag;
    const char *suffix;
    cca_dump_write_fn write;
    uint64_t (*size)(const struct cca_model *model);
} formats[] = {
    {CCA_FORMAT_PICKLE, ".pickle", cca_write_pickle, cca_size_of_pickle},
    {CCA_FORMAT_JSON, ".json", cca_write_json, cca_size_of_json},
    {CCA_FORMAT_TEXT, ".txt", cca_write_text, cca_size_of_text},
};

bool cca_dump_claim(struct cca_process *process, unsigned wait_ms)
{
    for (unsigned waited = 0;
         atomic_exchange_explicit(&process->dumps.is_busy, true, memory_order_acquire); waited++) {
        if (waited == wait_ms) {
            return false;
        }
        cca_clock_sleep_us(1000);
    }
    return true;
}

void cca_dump_release(struct cca_process *process)
{
    atomic_store_explicit(&process->dumps.is_busy, false, memory_order_release);
}

static int fill_command_line(struct cca_model *model, const struct cca_identity *identity)
{
    const char *at = identity->command_line, *end = at + identity->command_line_bytes;
    size_t count = 0;
    const char **list;

    for (const char *it = at; it < end; it += strlen(it) + 1) {
        count++;
    }
    list = cca_model_array(model, count, sizeof(*list));
    if (list == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1) {
        list[i] = at;
    }
    model->command_line = list;
    model->command_line_count = count;
    return 0;
}

static int fill_hooks(struct cca_model *model, const struct cca_process *process)
{
    size_t count = (size_t)process->coverage_name_count;
    struct cca_model_hook *hooks = cca_model_array(model, count, sizeof(*hooks));

    if (hooks == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < process->coverage_name_count; i++) {
        hooks[i] = (struct cca_model_hook){
            .api = process->coverage_names[i].api,
            .door = process->coverage_names[i].door,
            .seen = cca_process_coverage(process, i, CCA_COVERAGE_SEEN),
            .served = cca_process_coverage(process, i, CCA_COVERAGE_SERVED),
            .passed = cca_process_coverage(process, i, CCA_COVERAGE_PASSED),
            .missed = cca_process_coverage(process, i, CCA_COVERAGE_MISSED),
        };
    }
    model->hooks = hooks;
    model->hook_count = count;
    return 0;
}

static void fill_messages(struct cca_model *model)
{
    size_t count = 0;

    while (cca_log_kept((int)count) != NULL) {
        count++;
    }
    model->messages = cca_model_array(model, count, sizeof(*model->messages));
    model->message_count = model->messages != NULL ? count : 0;
    for (size_t i = 0; i < model->message_count; i++) {
        model->messages[i] = cca_log_kept((int)i);
    }
}

static void fill_estimate(struct cca_model *model, struct cca_estimate *estimate)
{
    model->has_estimate = estimate != NULL;
    for (size_t i = 0; estimate != NULL && i < model->device_count; i++) {
        struct cca_estimate_figures figures;

        cca_estimate_read(estimate, model->devices[i].ordinal, &figures);
        model->devices[i].estimate = (struct cca_model_estimate){
            .allocs = figures.allocs,
            .frees = figures.frees,
            .alloc_ns = figures.alloc_ns,
            .free_ns = figures.free_ns,
            .hits = figures.hits,
            .driver_allocs = figures.driver_allocs,
            .driver_frees = figures.driver_frees,
            .reserved_peak = figures.reserved_peak,
        };
    }
}

/* Names are copied into the model: rows may change while it is written. */
static void fill_unmanaged(struct cca_model *model, struct cca_unmanaged *unmanaged)
{
    struct cca_unmanaged_row *rows = cca_model_array(model, CCA_UNMANAGED_ROWS_MAX, sizeof(*rows));
    size_t count = rows != NULL ? cca_unmanaged_read(unmanaged, rows, CCA_UNMANAGED_ROWS_MAX) : 0;

    model->unmanaged = cca_model_array(model, count, sizeof(*model->unmanaged));
    model->unmanaged_count = model->unmanaged != NULL ? count : 0;
    for (size_t i = 0; i < model->unmanaged_count; i++) {
        model->unmanaged[i] = (struct cca_model_unmanaged){
            .device = rows[i].device,
            .api = rows[i].api,
            .library = rows[i].library,
            .bytes = rows[i].bytes,
            .count = rows[i].count,
        };
    }
}

static int fill_annotations(struct cca_model *model, struct cca_process *process)
{
    size_t most = cca_annotations_count(&process->annotations);
    struct cca_annotation *copies = cca_model_array(model, most, sizeof(*copies));

    model->annotations = cca_model_array(model, most, sizeof(*model->annotations));
    if (copies == NULL || model->annotations == NULL) {
        return -ENOMEM;
    }
    model->annotation_count = cca_annotations_copy(&process->annotations, copies, most);
    for (size_t i = 0; i < model->annotation_count; i++) {
        model->annotations[i] = (struct cca_model_annotation){
            .time_ns = copies[i].time_ns,
            .device = copies[i].device,
            .is_end = copies[i].is_end,
            .name = cca_texts_get(model->texts, copies[i].text),
        };
    }
    return 0;
}

/* What the process knows and the allocator does not. */
static int fill_process(struct cca_model *model, struct cca_process *process, const char *cause)
{
    const struct cca_identity *identity = &process->identity;
    struct utsname system;
    int rc;

    model->version = CCA_VERSION_STRING;
    model->host = cca_model_text(model, uname(&system) == 0 ? system.nodename : NULL);
    model->program = identity->program;
    model->pid = (int)identity->pid;
    model->rank = identity->rank;
    model->start_time_us = identity->start_time_us;
    model->cause = cause;
    model->driver_version = process->driver_version;
    model->runtime_version = process->runtime_version;
    fill_estimate(model, atomic_load(&process->estimate));
    fill_messages(model);
    fill_unmanaged(model, &cca_process_state()->unmanaged);
    model->unwinder = cca_unwind_name();
    model->mark_ns = atomic_load_explicit(&process->mark_ns, memory_order_relaxed);
    model->texts = atomic_load_explicit(&process->has_texts, memory_order_acquire) ? &process->texts
                                                                                   : NULL;
    rc = fill_annotations(model, process);
    if (rc != 0) {
        return rc;
    }
    rc = process->config.dump_args ? fill_command_line(model, identity) : 0;
    return rc == 0 ? fill_hooks(model, process) : rc;
}

struct cca_dump_job *cca_dump_copy(struct cca_process *process, const char *cause, unsigned lock_ms)
{
    const struct cca_capture_options options = {.lock_ms = lock_ms,
                                                .last_entries = process->config.dump_last};
    struct cca_allocator *allocator = cca_process_allocator();
    struct cca_dump_job *job = allocator != NULL ? cca_sysmem_map(sizeof(*job)) : NULL;

    if (job == NULL) {
        return NULL;
    }
    if (cca_capture_model(&job->model, allocator, &process->config, &options) != 0) {
        cca_sysmem_unmap(job, sizeof(*job));
        return NULL;
    }
    if (fill_process(&job->model, process, cause) != 0) {
        cca_dump_discard(job);
        return NULL;
    }
    return job;
}

void cca_dump_discard(struct cca_dump_job *job)
{
    if (job != NULL) {
        cca_model_fini(&job->model);
        cca_sysmem_unmap(job, sizeof(*job));
    }
}

/* The walk of the loader's list is done here and not by the symbolizer, so that a fork waits for
 * that walk alone; see fork.c. */
int cca_dump_name_model(struct cca_process *process, struct cca_model *model)
{
    int rc;

    cca_exported_mark(&process->exported, model);
    cca_lock_take(&process->dumps.lock);
    rc = cca_modules_list(&model->modules, &model->arena);
    cca_lock_drop(&process->dumps.lock);
    if (rc != 0) {
        return rc;
    }
    bool has_stacks = atomic_load_explicit(&process->has_stacks, memory_order_acquire);
    if (has_stacks) {
        cca_process_look_for_unloads(process); /* some may have gone by a call that was not seen */
    }
    rc = cca_symbolize_model(model, &process->stacks, has_stacks ? &process->modules : NULL,
                             process->config.symbolize != CCA_SYMBOLIZE_NONE);
    if (rc == 0 && process->config.symbolize == CCA_SYMBOLIZE_LINES &&
        cca_lines_find(&process->lines, model)) {
        model->symbolized = "lines";
    }
    return rc;
}

static void report_file(const struct cca_dump_result *result, int rc)
{
    char reason[128];

    if (rc != 0) {
        cca_log(CCA_LOG_WARN, "no snapshot %s: %s", result->path,
                strerror_r(-rc, reason, sizeof(reason)));
    } else if (result->is_elsewhere) {
        cca_log(CCA_LOG_WARN, "the folder of the snapshot is not writable: it is %s", result->path);
    } else {
        cca_log(CCA_LOG_INFO, "snapshot %s", result->path);
    }
}

int cca_dump_write_files(struct cca_process *process, struct cca_dump_job *job, const char *pattern)
{
    struct cca_dumps *dumps = &process->dumps;
    struct cca_progress progress;
    struct cca_dump_request request = {
        .pattern = pattern != NULL ? pattern : process->config.dump_file,
        .directory = process->identity.directory,
        .tmp_directory = process->identity.tmp_directory[0] != '\0'
                             ? process->identity.tmp_directory
                             : NULL,
        .sequence = dumps->sequence++,
        .tell = cca_progress_tell,
        .user = &progress,
    };
    int first_error = 0;

    for (size_t i = 0; i < CCA_ARRAY_LEN(formats); i++) {
        int rc;

        if ((process->config.dump_format & formats[i].flag) == 0) {
            continue;
        }
        request.suffix = formats[i].suffix;
        request.write = formats[i].write;
        cca_progress_begin(&progress, formats[i].size(&job->model));
        rc = cca_dump_file_write(&job->model, &request, &job->result);
        report_file(&job->result, rc);
        if (rc == 0) {
            memcpy(dumps->last_path, job->result.path, sizeof(dumps->last_path));
        } else if (first_error == 0) {
            first_error = rc;
        }
    }
    return first_error;
}

struct cca_model *cca_dump_model(struct cca_dump_job *job)
{
    return &job->model;
}

void cca_dump_name(struct cca_process *process, struct cca_dump_job *job)
{
    /* Without names it is still a snapshot. */
    if (cca_dump_name_model(process, &job->model) != 0) {
        cca_log(CCA_LOG_WARN, "the snapshot has no call stacks: not enough memory");
    }
}

int cca_dump_finish(struct cca_process *process, struct cca_dump_job *job, const char *pattern)
{
    int rc;

    cca_dump_name(process, job);
    rc = cca_dump_write_files(process, job, pattern);
    cca_dump_discard(job);
    return rc;
}

int cca_dump_write(struct cca_process *process, const char *cause, const char *pattern)
{
    return cca_dump_write_within(process, cause, pattern, CCA_CAPTURE_LOCK_MS);
}

/* What the devices themselves say, just after the copy. Not while a program ends, when its driver
 * may be gone, and not in calls of the program, which make no CUDA calls. */
static void ask_devices(struct cca_model *model, unsigned wait_ms)
{
    struct cca_allocator *allocator = cca_process_allocator();

    for (size_t i = 0; allocator != NULL && i < model->device_count; i++) {
        struct cca_model_device *device = &model->devices[i];
        size_t free_bytes = 0, total_bytes = 0;

        if (!device->is_partial && cca_allocator_device_memory(allocator, device->ordinal, wait_ms,
                                                               &free_bytes, &total_bytes) == 0) {
            device->free_bytes = free_bytes;
            device->total_bytes = total_bytes;
            device->free_time_ns = cca_clock_ns();
        }
    }
}

int cca_dump_write_within(struct cca_process *process, const char *cause, const char *pattern,
                          unsigned lock_ms)
{
    struct cca_dump_job *job = cca_dump_copy(process, cause, lock_ms);

    if (job == NULL) {
        cca_log(CCA_LOG_WARN, "no snapshot: not enough memory to copy the state");
        return -ENOMEM;
    }
    if (strcmp(cause, "abort") != 0 && strcmp(cause, "api") != 0) {
        ask_devices(&job->model, lock_ms);
    }
    return cca_dump_finish(process, job, pattern);
}

int cca_dump_write_pool(struct cca_process *process, const char *cause, const char *pattern,
                        int device, const uint64_t id[2])
{
    struct cca_dump_job *job = cca_dump_copy(process, cause, CCA_CAPTURE_LOCK_MS);

    if (job == NULL) {
        cca_log(CCA_LOG_WARN, "no snapshot: not enough memory to copy the state");
        return -ENOMEM;
    }
    cca_model_keep_pool(&job->model, device, id);
    return cca_dump_finish(process, job, pattern);
}
