/* SPDX-License-Identifier: MIT */
/* Where the loader enters. Almost nothing happens here: the library is in every child process of
 * the program, most of which never use CUDA. Nothing is taken down at the end either, since
 * destructors of other objects still free memory through the hooks. */
#include "preload/ending.h"
#include "preload/loader.h"
#include "preload/lookup.h"
#include "preload/place.h"
#include "preload/rows.h"
#include "preload/unseen.h"
#include "process/process.h"

_Static_assert((int)CCA_ROW_HOOKS <= (int)CCA_COVERAGE_ROWS_MAX, "every row has its counts");

static const struct cca_coverage_name names[CCA_ROW_HOOKS] = {
#define NAME_OF_RUNTIME "runtime"
#define NAME_OF_DRIVER  "driver"
#define ROW(name, door, action, since, is_per_thread, params, args) \
    [CCA_ROW_##name] = {#name, NAME_OF_##door},
#include "preload/hooks.def"
};

__attribute__((constructor)) static void load(void)
{
    cca_loader_start();
    cca_process_set_place(cca_place);
    cca_process_load();
    cca_ending_load();
    if (!cca_process_is_active()) {
        cca_lookup_turn_off();
    }
    cca_process_name_coverage(names, CCA_ROW_HOOKS);
}

__attribute__((destructor)) static void unload(void)
{
    cca_unseen_report();
    cca_process_unload();
}
