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

/* A driver may export a name that it does not support; then its own resolver does not know it.
 * Names with the suffix of the per-thread variants are asked for as such. */
static bool is_denied(const struct cca_cuda_table *table, const char *name)
{
    static const char suffix[] = "_ptsz";
    enum { FLAG_LEGACY = 1, FLAG_PER_THREAD = 2, STATUS_NOT_FOUND = 1 };
    char base[64];
    size_t length = strlen(name), suffix_length = sizeof(suffix) - 1;
    bool is_per_thread = length > suffix_length &&
                         strcmp(name + length - suffix_length, suffix) == 0;
    length -= is_per_thread ? suffix_length : 0;
    /* Nor does it know the versions of a name: it gives the one of the version it is asked for. */
    if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v') {
        length -= 3;
    }
    if (table->get_proc_address == NULL || length >= sizeof(base)) {
        return false;
    }
    memcpy(base, name, length);
    base[length] = '\0';
    void *found = NULL;
    int status = 0;
    (void)table->get_proc_address(base, &found, table->driver_version,
                                  is_per_thread ? FLAG_PER_THREAD : FLAG_LEGACY, &status);
    return found == NULL && status == STATUS_NOT_FOUND;
}

static void drop_denied(struct cca_cuda_table *table)
{
    const struct cca_cuda_table all = *table;
#define REQUIRED(field, name, params)
#define OPTIONAL(field, name, params) \
    if (is_denied(&all, name)) {      \
        table->field = NULL;          \
    }
#include "device/cuda_symbols.def"
#undef REQUIRED
#undef OPTIONAL
    table->get_proc_address = all.get_proc_address; /* does not know itself by that name */
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
    drop_denied(&table);
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
