/* SPDX-License-Identifier: MIT */
#include "observe/pool_table.h"

#include "base/sysmem.h"

#define TABLE_BYTES (((size_t)CCA_POOLS_MAX + 1) * sizeof(struct cca_pool_row))

static bool is_same(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

/* The row of the id, else a fresh one, else that of a pool that is gone. */
static unsigned choose(const struct cca_pool_table *table, const uint64_t id[2])
{
    unsigned gone = 0;
    for (unsigned i = 1; i <= table->last; i++) {
        if (is_same(table->rows[i].id, id)) {
            return i;
        }
        gone = gone == 0 && !table->rows[i].is_live ? i : gone;
    }
    return table->last < CCA_POOLS_MAX ? table->last + 1 : gone;
}

uint16_t cca_pool_table_add(struct cca_pool_table *table, const uint64_t id[2])
{
    if (table->rows == NULL) {
        table->rows = cca_sysmem_reserve(TABLE_BYTES);
        if (table->rows == NULL) {
            return 0;
        }
    }
    unsigned number = choose(table, id);
    if (number == 0) {
        return 0;
    }
    struct cca_pool_row *row = &table->rows[number];
    if (!is_same(row->id, id)) {
        *row = (struct cca_pool_row){.id = {id[0], id[1]}};
    }
    row->is_live = true;
    table->last = number > table->last ? number : table->last;
    return (uint16_t)number;
}

void cca_pool_table_drop(struct cca_pool_table *table, uint16_t number)
{
    if (number != 0) {
        table->rows[number].is_live = false;
    }
}

void cca_pool_table_apply(struct cca_pool_table *table, const struct cca_event *event)
{
    if (event->pool != 0 && event->pool <= table->last) {
        cca_pool_stats_apply(&table->rows[event->pool].stats, event);
    }
}

void cca_pool_table_reset_peak(struct cca_pool_table *table)
{
    for (unsigned i = 1; i <= table->last; i++) {
        cca_pool_stats_reset_peak(&table->rows[i].stats);
    }
}

void cca_pool_table_reset_accumulated(struct cca_pool_table *table)
{
    for (unsigned i = 1; i <= table->last; i++) {
        cca_pool_stats_reset_accumulated(&table->rows[i].stats);
    }
}

const struct cca_pool_row *cca_pool_table_row(const struct cca_pool_table *table, uint16_t number)
{
    return number == 0 || number > table->last ? NULL : &table->rows[number];
}

struct cca_pool_rows cca_pool_table_rows(const struct cca_pool_table *table)
{
    if (table->last == 0) {
        return (struct cca_pool_rows){NULL, 0};
    }
    return (struct cca_pool_rows){&table->rows[1], table->last};
}

void cca_pool_table_fini(struct cca_pool_table *table)
{
    cca_sysmem_unmap(table->rows, TABLE_BYTES);
    *table = (struct cca_pool_table){0};
}
