/* SPDX-License-Identifier: MIT */
/* The history in the public interface; include/cca/cca_history.h says what each function returns.
 */
#include <errno.h>
#include <string.h>

#include "alloc/recording.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/reentry.h"
#include "config/parse.h"
#include "process/api.h"
#include "process/dump.h"
#include "snapshot/capture.h"
#include "snapshot/file.h"
#include "snapshot/symbolize.h"
#include "snapshot/write_json.h"
#include "snapshot/write_pickle.h"
#include "snapshot/write_text.h"

enum { CLAIM_WAIT_MS = 5000 };

/* Address space for naming one stack. */
#define TRACEBACK_RESERVE ((size_t)64 << 20)

static CCA_THREAD_LOCAL uint32_t thread_metadata;

uint32_t cca_process_metadata(void)
{
    return thread_metadata;
}

/* Inside the guard; -ENODEV before the first context. */
static int enter(struct cca_allocator **allocator_out)
{
    *allocator_out = cca_process_allocator();
    if (*allocator_out == NULL) {
        return -ENODEV;
    }
    return cca_reentry_enter() ? 0 : -EBUSY;
}

/* NULL: nothing was ever kept there. */
static struct cca_texts *texts_of(struct cca_process *process)
{
    return atomic_load_explicit(&process->has_texts, memory_order_acquire) ? &process->texts : NULL;
}

static uint32_t intern(const char *text)
{
    struct cca_process *process = cca_process_state();

    return text != NULL && cca_process_make_texts() ? cca_texts_intern(&process->texts, text) : 0;
}

/* The position of a word, -EINVAL when there is none; `usual` for NULL. */
static int word_of(const char *word, const char *words, int usual)
{
    int value = usual;

    return word == NULL || cca_parse_enum(word, words, &value) == 0 ? value : -EINVAL;
}

static int set_history(struct cca_allocator *allocator, const struct cca_history_options *options)
{
    static const char skippable[] = "alloc|free_requested|free_completed|segment_alloc|"
                                    "segment_free|segment_map|segment_unmap|snapshot|oom|annotate";
    struct cca_process *process = cca_process_state();
    int history = word_of(options->enabled, "off|state|all", CCA_HISTORY_OFF);
    int context = word_of(options->context, "none|state|alloc|all", CCA_CONTEXT_NONE);
    struct cca_recording recording = {.ring_entries = 1};
    char bad[8] = "";
    int rc;

    if (history < 0 || context < 0 ||
        (options->skip_actions != NULL &&
         (cca_parse_flags(options->skip_actions, skippable, &recording.skips, bad, sizeof(bad)) !=
              0 ||
          bad[0] != '\0' || cca_config_usable_skips(recording.skips) != recording.skips))) {
        return -EINVAL;
    }
    if (history == CCA_HISTORY_OFF) {
        recording.ring_entries = 0;
        context = CCA_CONTEXT_NONE;
    } else if (history == CCA_HISTORY_ALL) {
        recording.ring_entries = options->max_entries != 0 ? (size_t)options->max_entries
                                                           : (size_t)process->config.max_entries;
    }
    rc = cca_allocator_set_recording(allocator, &recording, context >= CCA_CONTEXT_ALLOC,
                                     options->clear_history != 0);
    atomic_store_explicit(&process->context_level, context, memory_order_relaxed);
    return rc;
}

int cca_api_record_memory_history(const struct cca_history_options *options)
{
    struct cca_history_options given = {0};
    struct cca_allocator *allocator;
    int saved_errno = errno, rc;

    if (options == NULL || options->struct_bytes < sizeof(options->struct_bytes)) {
        return -EINVAL;
    }
    memcpy(&given, options,
           options->struct_bytes < sizeof(given) ? options->struct_bytes : sizeof(given));
    if (given.max_entries > SIZE_MAX / sizeof(struct cca_trace_entry) / 2) {
        return -EINVAL;
    }
    rc = enter(&allocator);
    if (rc == 0) {
        rc = set_history(allocator, &given);
        cca_reentry_leave();
    }
    errno = saved_errno;
    return rc;
}

int cca_api_mark(const char *text)
{
    struct cca_process *process = cca_process_state();
    struct cca_allocator *allocator;
    uint64_t now_ns = cca_clock_ns();
    int rc = enter(&allocator);

    if (rc == 0) {
        cca_allocator_mark(allocator, cca_process_thread(), intern(text), now_ns);
        atomic_store_explicit(&process->mark_ns, now_ns, memory_order_relaxed);
        cca_reentry_leave();
    }
    return rc;
}

int cca_api_set_user_metadata(const char *text)
{
    if (!cca_process_is_active()) {
        return -ENOSYS;
    }
    if (!cca_reentry_enter()) {
        return -EBUSY;
    }
    thread_metadata = intern(text);
    cca_reentry_leave();
    return thread_metadata == 0 && text != NULL && text[0] != '\0' ? -ENOSPC : 0;
}

const char *cca_api_get_user_metadata(void)
{
    return cca_texts_get(texts_of(cca_process_state()), thread_metadata);
}

CCA_NOINLINE int cca_api_annotate(const void *ptr, const char *text)
{
    struct cca_request request = {.key = CCA_KEY_READY};
    struct cca_allocator *allocator;
    int saved_errno = errno, rc;

    if (text == NULL || text[0] == '\0') {
        return -EINVAL;
    }
    rc = enter(&allocator);
    if (rc == 0) {
        cca_process_describe(&request, false, 1);
        request.metadata = intern(text);
        rc = cca_allocator_annotate(allocator, (uint64_t)(uintptr_t)ptr, &request);
        cca_reentry_leave();
    }
    errno = saved_errno;
    return rc;
}

int cca_api_annotation(int device, const char *name, int is_end)
{
    struct cca_process *process = cca_process_state();
    struct cca_annotation entry = {.time_ns = cca_clock_ns(), .is_end = is_end != 0};
    struct cca_allocator *allocator;
    int rc;

    if (name == NULL || device < 0 || device >= CCA_DEVICES_MAX) {
        return -EINVAL;
    }
    rc = enter(&allocator);
    if (rc != 0) {
        return rc;
    }
    if (cca_allocator_recording(allocator).ring_entries > 0) {
        entry.device = (int16_t)device;
        entry.text = intern(name);
        rc = cca_annotations_add(&process->annotations, &entry);
    }
    cca_reentry_leave();
    return rc;
}

/* A model with nothing but one stack, named. */
static int name_stack(struct cca_model *model, uint32_t stack)
{
    struct cca_process *process = cca_process_state();
    int rc = cca_model_init(model, TRACEBACK_RESERVE);

    if (rc != 0) {
        return rc;
    }
    model->segments = cca_model_array(model, 1, sizeof(*model->segments));
    if (model->segments != NULL) {
        model->segment_count = 1;
        model->segments[0].stack = stack;
        rc = cca_dump_name_model(process, model);
    } else {
        rc = -ENOMEM;
    }
    if (rc != 0) {
        cca_model_fini(model);
    }
    return rc;
}

int cca_api_allocation_traceback(const void *ptr, cca_frame_fn fn, void *user)
{
    struct cca_allocator *allocator;
    struct cca_model model;
    uint32_t stack_id = 0;
    int saved_errno = errno, rc, count = 0;

    if (fn == NULL) {
        return -EINVAL;
    }
    rc = enter(&allocator);
    if (rc != 0) {
        return rc;
    }
    rc = cca_allocator_stack_of(allocator, (uint64_t)(uintptr_t)ptr, &stack_id);
    if (rc == 0 && stack_id != 0) {
        rc = name_stack(&model, stack_id);
    }
    if (rc == 0 && stack_id != 0) {
        const struct cca_model_stack *stack = cca_model_stack_of(&model, model.segments[0].stack);

        for (size_t i = 0; stack != NULL && i < stack->count; i++, count++) {
            const struct cca_model_frame *frame =
                &model.frames[model.stack_frames[stack->first + i]];

            fn(user, frame->address, frame->name, frame->filename, frame->line);
        }
        cca_model_fini(&model);
    }
    cca_reentry_leave();
    errno = saved_errno;
    return rc != 0 ? rc : count;
}

static int write_to_fd(struct cca_process *process, int fd, int format)
{
    static const cca_dump_write_fn writers[] = {cca_write_pickle, cca_write_json, cca_write_text};
    struct cca_dump_job *job = cca_dump_copy(process, "api", CCA_CAPTURE_LOCK_MS);
    struct cca_sink *sink;
    int rc = -ENOMEM;

    if (job == NULL) {
        return rc;
    }
    cca_dump_name(process, job);
    sink = cca_model_array(cca_dump_model(job), 1, sizeof(*sink));
    if (sink != NULL) {
        cca_sink_init_fd(sink, fd);
        writers[format](cca_dump_model(job), sink);
        rc = cca_sink_finish(sink);
    }
    cca_dump_discard(job);
    return rc;
}

int cca_api_snapshot_to_fd(int fd, const char *format)
{
    struct cca_process *process = cca_process_state();
    int which = word_of(format, "pickle|json|text", 0);
    struct cca_allocator *allocator;
    int saved_errno = errno, rc;

    if (which < 0 || fd < 0) {
        return -EINVAL;
    }
    rc = enter(&allocator);
    if (rc != 0) {
        return rc;
    }
    rc = -EBUSY;
    if (cca_dump_claim(process, CLAIM_WAIT_MS)) {
        rc = write_to_fd(process, fd, which);
        cca_dump_release(process);
    }
    cca_reentry_leave();
    errno = saved_errno;
    return rc;
}
