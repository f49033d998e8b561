/* SPDX-License-Identifier: MIT */
/* The driver door, stream captures: followed from before they begin until they have ended, so that
 * nothing of ours disturbs them. */
#include "preload/captures.h"
#include "preload/context.h"
#include "preload/hook.h"

struct beginning {
    bool is_ours;    /* this call is followed */
    bool is_counted; /* the allocator was told */
};

static struct beginning before_begin(enum cca_row row)
{
    struct beginning beginning = {0};
    if (cca_hook_enter(row)) {
        beginning.is_ours = true;
        beginning.is_counted = cca_captures_before();
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
    return beginning;
}

static int after_begin(struct beginning beginning, void *stream, bool is_per_thread, int result)
{
    if (beginning.is_ours && cca_hook_enter_again()) {
        cca_captures_began(stream, is_per_thread, beginning.is_counted, result == CCA_CUDA_SUCCESS);
        cca_hook_leave();
    }
    return result;
}

/* A call that fails may have ended the capture, an invalidated one, or not. */
static int after_end(enum cca_row row, void *stream, bool is_per_thread, int result)
{
    if (!cca_hook_enter(row)) {
        return result;
    }
    cca_hook_count(row, CCA_COVERAGE_PASSED);
    if (cca_captures_any() &&
        (result == CCA_CUDA_SUCCESS || !cca_context_still_captures(stream, is_per_thread))) {
        cca_captures_ended(stream, is_per_thread);
    }
    cca_hook_leave();
    return result;
}

/* The hooks of all CAPTURE rows. */
#define ARGS(...) __VA_ARGS__
#define DEFINE_CAPTURE(name, is_per_thread, params, args)                                          \
    int name params                                                                                \
    {                                                                                              \
        struct beginning beginning = before_begin(CCA_ROW_##name);                                 \
        return after_begin(beginning, stream, is_per_thread, CCA_FORWARD_DRIVER(name, ARGS args)); \
    }
#define DEFINE_SERVE(name, is_per_thread, params, args)
#define DEFINE_STATE(name, is_per_thread, params, args)
#define DEFINE_LOOKUP(name, is_per_thread, params, args)
#define DEFINE_VALVE(name, is_per_thread, params, args)
#define DEFINE_RETRY(name, is_per_thread, params, args)
#define DEFINE_TRACK(name, is_per_thread, params, args)
#define DEFINE_UNTRACK(name, is_per_thread, params, args)
#define ROW(name, door, action, since, is_per_thread, params, args) \
    DEFINE_##action(name, is_per_thread, params, args)
#include "preload/hooks.def"

int cuStreamEndCapture(void *stream, void **graph)
{
    int result = CCA_FORWARD_DRIVER(cuStreamEndCapture, stream, graph);
    return after_end(CCA_ROW_cuStreamEndCapture, stream, false, result);
}

int cuStreamEndCapture_ptsz(void *stream, void **graph)
{
    int result = CCA_FORWARD_DRIVER(cuStreamEndCapture_ptsz, stream, graph);
    return after_end(CCA_ROW_cuStreamEndCapture_ptsz, stream, true, result);
}
