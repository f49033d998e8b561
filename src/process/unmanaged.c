/* SPDX-License-Identifier: MIT */
#include "process/unmanaged.h"

#include <string.h>

#include "base/format.h"

enum { KIND_SHIFT = 60 };

struct record {
    uint32_t row;
    uint64_t bytes;
};

static uint64_t key_of(enum cca_unmanaged_kind kind, uint64_t address)
{
    return ((uint64_t)kind + 1) << KIND_SHIFT | (address & (((uint64_t)1 << KIND_SHIFT) - 1));
}

void cca_unmanaged_init(struct cca_unmanaged *unmanaged)
{
    cca_lock_init(&unmanaged->lock, CCA_RANK_MODULES);
    cca_ptrmap_init(&unmanaged->live);
    cca_pool_init(&unmanaged->records, sizeof(struct record));
    unmanaged->row_count = 0;
    unmanaged->left_out = 0;
}

/* Under the lock. */
static struct cca_unmanaged_row *row_of(struct cca_unmanaged *unmanaged, int device,
                                        const char *api, const char *library)
{
    for (size_t i = 0; i < unmanaged->row_count; i++) {
        struct cca_unmanaged_row *row = &unmanaged->rows[i];

        if (row->device == device && strcmp(row->api, api) == 0 &&
            strncmp(row->library, library, sizeof(row->library) - 1) == 0) {
            return row;
        }
    }
    if (unmanaged->row_count == CCA_UNMANAGED_ROWS_MAX) {
        return NULL;
    }
    struct cca_unmanaged_row *row = &unmanaged->rows[unmanaged->row_count++];
    *row = (struct cca_unmanaged_row){.device = device, .api = api};
    cca_format(row->library, sizeof(row->library), "%s", library);
    return row;
}

void cca_unmanaged_remove(struct cca_unmanaged *unmanaged, enum cca_unmanaged_kind kind,
                          uint64_t address)
{
    struct record *record = cca_ptrmap_remove(&unmanaged->live, key_of(kind, address));

    if (record == NULL) {
        return;
    }
    cca_lock_take(&unmanaged->lock);
    unmanaged->rows[record->row].bytes -= record->bytes;
    unmanaged->rows[record->row].count--;
    cca_pool_give(&unmanaged->records, record);
    cca_lock_drop(&unmanaged->lock);
}

/* Under the lock; NULL when there is no room. */
static struct record *make_record(struct cca_unmanaged *unmanaged, int device, const char *api,
                                  const char *library, uint64_t bytes)
{
    struct cca_unmanaged_row *row = row_of(unmanaged, device, api, library);
    struct record *record = row != NULL ? cca_pool_take(&unmanaged->records) : NULL;

    if (record == NULL) {
        unmanaged->left_out++;
        return NULL;
    }
    *record = (struct record){.row = (uint32_t)(row - unmanaged->rows), .bytes = bytes};
    row->bytes += bytes;
    row->count++;
    return record;
}

void cca_unmanaged_add(struct cca_unmanaged *unmanaged, enum cca_unmanaged_kind kind,
                       uint64_t address, int device, const char *api, const char *library,
                       uint64_t bytes)
{
    struct record *record;

    cca_unmanaged_remove(unmanaged, kind, address);
    cca_lock_take(&unmanaged->lock);
    record = make_record(unmanaged, device, api, library, bytes);
    cca_lock_drop(&unmanaged->lock);
    if (record == NULL || cca_ptrmap_insert(&unmanaged->live, key_of(kind, address), record) == 0) {
        return;
    }
    cca_lock_take(&unmanaged->lock);
    unmanaged->rows[record->row].bytes -= bytes;
    unmanaged->rows[record->row].count--;
    unmanaged->left_out++;
    cca_pool_give(&unmanaged->records, record);
    cca_lock_drop(&unmanaged->lock);
}

size_t cca_unmanaged_read(struct cca_unmanaged *unmanaged, struct cca_unmanaged_row *rows_out,
                          size_t max)
{
    size_t count = 0;

    cca_lock_take(&unmanaged->lock);
    for (size_t i = 0; i < unmanaged->row_count && count < max; i++) {
        if (unmanaged->rows[i].count > 0) {
            rows_out[count++] = unmanaged->rows[i];
        }
    }
    cca_lock_drop(&unmanaged->lock);
    return count;
}
