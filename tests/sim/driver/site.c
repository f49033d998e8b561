/* SPDX-License-Identifier: MIT */
#include "site.h"

#include "call.h"
#include "config.h"
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

static _Thread_local int thread_id;

struct walk {
    struct sim_site *site;
    bool is_outside;
};

/* The driver's own frames are those before the caller. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    const void *address = (const void *)_Unwind_GetIP(context);

    walk->is_outside |= address == walk->site->caller;
    if (!walk->is_outside) {
        return _URC_NO_REASON;
    }
    if (address == NULL || walk->site->frame_count == SIM_SITE_FRAMES) {
        return _URC_END_OF_STACK;
    }
    walk->site->frames[walk->site->frame_count++] = address;
    return _URC_NO_REASON;
}

void sim_site_take(struct sim_site *site)
{
    struct walk walk = {.site = site};

    *site = (struct sim_site){.caller = sim_call_caller()};
    if (!sim_config.is_recording) {
        return;
    }
    if (thread_id == 0) {
        thread_id = (int)syscall(SYS_gettid);
    }
    site->thread = thread_id;
    site->time_ns = sim_now_ns();
    if (site->caller != NULL) {
        _Unwind_Backtrace(take_frame, &walk);
    }
}

void sim_site_describe(const void *address, char *text, unsigned room)
{
    Dl_info info = {0};
    const char *object = "?";

    if (address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL) {
        const char *slash = strrchr(info.dli_fname, '/');
        object = slash != NULL ? slash + 1 : info.dli_fname;
    }
    snprintf(text, room, "%s+0x%lx%s%s", object,
             (unsigned long)((const char *)address - (const char *)info.dli_fbase),
             info.dli_sname != NULL ? " " : "", info.dli_sname != NULL ? info.dli_sname : "");
}
