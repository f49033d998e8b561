/* SPDX-License-Identifier: MIT */
#include "preload/valve.h"

#include <stdatomic.h>
#include <stdint.h>

#include "preload/hook.h"
#include "process/process.h"

/* What came first, before any context: a row + 1, or a reason. */
static _Atomic int early_row;
static _Atomic(const char *) early_reason;

/* The allocator is asked for again after a note: one that was made in between has perhaps replayed
 * already. */
void cca_valve_stop(enum cca_row row)
{
    if (cca_process_allocator() == NULL) {
        int none = 0;
        (void)atomic_compare_exchange_strong(&early_row, &none, (int)row + 1);
    }
    if (cca_process_allocator() != NULL) {
        cca_process_stop_caching(cca_row_name(row));
    }
}

void cca_valve_stop_because(const char *reason)
{
    if (cca_process_allocator() == NULL) {
        const char *none = NULL;
        (void)atomic_compare_exchange_strong(&early_reason, &none, reason);
    }
    if (cca_process_allocator() != NULL) {
        cca_process_stop_caching_because(reason);
    }
}

void cca_valve_replay(void)
{
    int row = atomic_load(&early_row);
    const char *reason = atomic_load(&early_reason);
    if (CCA_UNLIKELY(row != 0)) {
        cca_process_stop_caching(cca_row_name((enum cca_row)(row - 1)));
    }
    if (CCA_UNLIKELY(reason != NULL)) {
        cca_process_stop_caching_because(reason);
    }
}

static void close_valve(enum cca_row row)
{
    if (cca_hook_enter(row)) {
        cca_valve_stop(row);
        cca_hook_count(row, CCA_COVERAGE_PASSED);
        cca_hook_leave();
    }
}

/* The hooks of all VALVE rows. */
#define ARGS(...)                  __VA_ARGS__
#define FORWARD_RUNTIME(name, ...) CCA_FORWARD_RUNTIME(name, CCA_CALLER(), __VA_ARGS__)
#define FORWARD_DRIVER(name, ...)  CCA_FORWARD_DRIVER(name, __VA_ARGS__)
#define DEFINE_VALVE(name, door, is_per_thread, params, args) \
    int name params                                           \
    {                                                         \
        close_valve(CCA_ROW_##name);                          \
        return FORWARD_##door(name, ARGS args);               \
    }
#define DEFINE_SERVE(name, door, is_per_thread, params, args)
#define DEFINE_STATE(name, door, is_per_thread, params, args)
#define DEFINE_CAPTURE(name, door, is_per_thread, params, args)
#define DEFINE_LOOKUP(name, door, is_per_thread, params, args)
#define DEFINE_RETRY(name, door, is_per_thread, params, args)
#define DEFINE_TRACK(name, door, is_per_thread, params, args)
#define DEFINE_UNTRACK(name, door, is_per_thread, params, args)
#define ROW(name, door, action, since, is_per_thread, params, args) \
    DEFINE_##action(name, door, is_per_thread, params, args)
#include "preload/hooks.def"
