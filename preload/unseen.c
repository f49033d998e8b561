/* SPDX-License-Identifier: MIT */
#include "preload/unseen.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "preload/loader.h"
#include "preload/lookup.h"
#include "preload/original.h"
#include "process/process.h"

enum { DEVICES_MAX = 16, DEINITIALIZED = 4 };

typedef int (*get_state_fn)(int device, unsigned *flags, int *is_active);
typedef int (*get_current_fn)(void **context);

static _Atomic bool has_look_ups;

void cca_unseen_note_look_up(void)
{
    if (!atomic_load_explicit(&has_look_ups, memory_order_relaxed)) {
        atomic_store_explicit(&has_look_ups, true, memory_order_relaxed);
    }
}

/* One that was never initialized says so; one that has shut down says that, too. */
static bool has_contexts(void *driver)
{
    void *state = cca_lookup_real(driver, "cuDevicePrimaryCtxGetState");
    void *current = cca_lookup_real(driver, "cuCtxGetCurrent");
    get_state_fn get_state = NULL;
    get_current_fn get_current = NULL;
    void *context = NULL;
    if (state == NULL || current == NULL) {
        return false;
    }
    memcpy(&get_state, &state, sizeof(get_state));
    memcpy(&get_current, &current, sizeof(get_current));
    int result = get_current(&context);
    bool is_used = result == DEINITIALIZED || (result == 0 && context != NULL);
    for (int device = 0; result == 0 && !is_used && device < DEVICES_MAX; device++) {
        unsigned flags = 0;
        int is_active = 0;
        result = get_state(device, &flags, &is_active);
        is_used = result == 0 && is_active != 0;
    }
    return is_used;
}

void cca_unseen_report(void)
{
    struct cca_loader_object object;
    if (!cca_process_is_active() || atomic_load(&has_look_ups) || cca_process_has_seen_calls() ||
        !cca_loader_object_named("libcuda.so", 0, &object)) {
        return;
    }
    void *driver = cca_original_driver_handle(false);
    if (driver != NULL && has_contexts(driver)) {
        cca_log(CCA_LOG_WARN,
                "the program used CUDA, but no memory call of it came by this library: it was "
                "perhaps loaded with RTLD_DEEPBIND, or another library in front hooks dlsym");
    }
}
