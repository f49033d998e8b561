/* SPDX-License-Identifier: MIT */
#include "device/cuda_table.h"

#include <errno.h>
#include <string.h>

/* Function pointers travel as data pointers in dlsym, too; copying the bits is the portable form.
 */
static bool fetch(void *field, cca_cuda_look_up_fn look_up, void *user, const char *name)
{
    void *found = look_up(user, name);
    memcpy(field, &found, sizeof(found));
    return found != NULL;
}

int cca_cuda_table_fill(struct cca_cuda_table *table_out, cca_cuda_look_up_fn look_up, void *user,
                        const char **missing_out)
{
    struct cca_cuda_table table = {0};
#define REQUIRED(field, name, params)                \
    if (!fetch(&table.field, look_up, user, name)) { \
        *missing_out = name;                         \
        return -ENOENT;                              \
    }
#define OPTIONAL(field, name, params) (void)fetch(&table.field, look_up, user, name);
#include "device/cuda_symbols.def"
#undef REQUIRED
#undef OPTIONAL
    if (table.driver_get_version(&table.driver_version) != CUDA_SUCCESS) {
        *missing_out = "cuDriverGetVersion";
        return -ENOENT;
    }
    *table_out = table;
    return 0;
}

bool cca_cuda_table_has_context_events(const struct cca_cuda_table *table)
{
    return table->ctx_record_event != NULL && table->driver_version >= 12050;
}

bool cca_cuda_table_has_stream_ids(const struct cca_cuda_table *table)
{
    return table->stream_get_id != NULL && table->stream_get_id_ptsz != NULL &&
           table->stream_get_ctx != NULL && table->stream_is_capturing != NULL &&
           table->stream_is_capturing_ptsz != NULL && table->driver_version >= 12000;
}
