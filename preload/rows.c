/* SPDX-License-Identifier: MIT */
#include "preload/rows.h"

#include "preload/hook.h"

/* 11.2 becomes 11020. */
#define VERSION(since) ((int)((since)*10 + 0.5) / 10 * 1000 + (int)((since)*10 + 0.5) % 10 * 10)

const struct cca_row_info cca_rows[CCA_ROW_HOOKS] = {
#define ROW(name_, door_, action_, since_, is_per_thread_, params, args) \
    [CCA_ROW_##name_] = {.name = #name_,                                 \
                         .door = CCA_DOOR_##door_,                       \
                         .action = CCA_ACTION_##action_,                 \
                         .since = VERSION(since_),                       \
                         .is_per_thread = is_per_thread_,                \
                         .wrapper = (void *)(name_##_fn)name_},
#include "preload/hooks.def"
};

const char *cca_row_name(enum cca_row row)
{
    switch (row) {
    case CCA_ROW_cudaGetDevice: return "cudaGetDevice";
    case CCA_ROW_cudaRuntimeGetVersion: return "cudaRuntimeGetVersion";
    default: return cca_rows[row].name;
    }
}
