/* SPDX-License-Identifier: MIT */
#include "snapshot/lines.h"

#include <errno.h>

#ifdef CCA_HAVE_BACKTRACE

#include <backtrace.h>

#include "base/loader_gate.h"

struct place {
    const char *filename;
    int line;
};

static void ignore_error(void *user, const char *message, int error)
{
    (void)user, (void)message, (void)error;
}

/* Called for each function that is inlined there, the one that holds them last: the frame bears the
 * name of that one. */
static int take_place(void *user, uintptr_t pc, const char *filename, int line,
                      const char *function)
{
    struct place *place = user;

    (void)pc, (void)function;
    if (filename != NULL && line > 0) {
        *place = (struct place){filename, line};
    }
    return 0;
}

static uint64_t number_modules(const struct cca_modules *modules)
{
    uint64_t number = modules->count;

    for (size_t i = 0; i < modules->count; i++) {
        number = (number ^ modules->list[i].start) * UINT64_C(0x100000001b3);
    }
    return number;
}

static struct backtrace_state *state_for(struct cca_lines *lines, const struct cca_model *model)
{
    uint64_t modules = number_modules(&model->modules);

    if (lines->state == NULL || lines->modules != modules) {
        lines->state = backtrace_create_state(NULL, 0, ignore_error, NULL);
        lines->modules = modules;
    }
    return lines->state;
}

bool cca_lines_find(struct cca_lines *lines, struct cca_model *model)
{
    struct backtrace_state *state = state_for(lines, model);
    int saved_errno = errno;

    for (size_t i = 0; state != NULL && i < model->frame_count; i++) {
        struct cca_model_frame *frame = &model->frames[i];
        struct place place = {0};

        if (frame->life >= 0 && model->places.lives[frame->life].module.is_unloaded) {
            continue; /* something else may be there */
        }
        /* The first call reads all modules; a fork waits for no longer than one look-up. */
        if (!cca_loader_gate_enter_late()) {
            break;
        }
        (void)backtrace_pcinfo(state, frame->address - 1, take_place, ignore_error, &place);
        cca_loader_gate_leave();
        if (place.line > 0) {
            frame->filename = cca_model_text(model, place.filename);
            frame->line = place.line;
        }
    }
    errno = saved_errno;
    return true;
}

bool cca_can_find_lines(void)
{
    return true;
}

#else

bool cca_lines_find(struct cca_lines *lines, struct cca_model *model)
{
    (void)lines, (void)model;
    return false;
}

bool cca_can_find_lines(void)
{
    return false;
}

#endif
