/* SPDX-License-Identifier: MIT */
#include "units.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* length is that of a free run at its first and at its last unit, and 0 everywhere else. next and
 * previous hold for the first unit of a run: the other runs of its length, in any chunk. */
struct sim_unit_chunk {
    uint16_t length[SIM_CHUNK_UNITS];
    unsigned next[SIM_CHUNK_UNITS];
    unsigned previous[SIM_CHUNK_UNITS];
};

static uint16_t *length_at(struct sim_units *units, unsigned unit)
{
    return &units->chunks[unit / SIM_CHUNK_UNITS]->length[unit % SIM_CHUNK_UNITS];
}

static unsigned *next_at(struct sim_units *units, unsigned unit)
{
    return &units->chunks[unit / SIM_CHUNK_UNITS]->next[unit % SIM_CHUNK_UNITS];
}

static unsigned *previous_at(struct sim_units *units, unsigned unit)
{
    return &units->chunks[unit / SIM_CHUNK_UNITS]->previous[unit % SIM_CHUNK_UNITS];
}

static void push(struct sim_units *units, unsigned first, unsigned count)
{
    unsigned row = count - 1;
    unsigned head = units->heads[row];

    *length_at(units, first) = (uint16_t)count;
    *length_at(units, first + count - 1) = (uint16_t)count;
    *next_at(units, first) = head;
    *previous_at(units, first) = NONE;
    if (head != NONE) {
        *previous_at(units, head) = first;
    }
    units->heads[row] = first;
    units->has[row / 64] |= (uint64_t)1 << row % 64;
    units->has_any |= (uint64_t)1 << row / 64;
}

static void drop(struct sim_units *units, unsigned first, unsigned count)
{
    unsigned row = count - 1;
    unsigned next = *next_at(units, first);
    unsigned previous = *previous_at(units, first);

    *length_at(units, first) = 0;
    *length_at(units, first + count - 1) = 0;
    if (next != NONE) {
        *previous_at(units, next) = previous;
    }
    if (previous != NONE) {
        *next_at(units, previous) = next;
        return;
    }
    units->heads[row] = next;
    if (next == NONE) {
        units->has[row / 64] &= ~((uint64_t)1 << row % 64);
        if (units->has[row / 64] == 0) {
            units->has_any &= ~((uint64_t)1 << row / 64);
        }
    }
}

/* The least row with a run, not below the given one; SIM_CHUNK_UNITS: there is none. */
static unsigned find_row(const struct sim_units *units, unsigned row)
{
    unsigned word = row / 64;
    uint64_t rows = units->has[word] & (UINT64_MAX << row % 64);

    if (rows == 0) {
        uint64_t words = word == 63 ? 0 : units->has_any & (UINT64_MAX << (word + 1));
        if (words == 0) {
            return SIM_CHUNK_UNITS;
        }
        word = (unsigned)__builtin_ctzll(words);
        rows = units->has[word];
    }
    return word * 64 + (unsigned)__builtin_ctzll(rows);
}

void sim_units_init(struct sim_units *units, unsigned chunk_count)
{
    units->chunks = calloc(chunk_count, sizeof(struct sim_unit_chunk *));
    memset(units->heads, 0xff, sizeof(units->heads));
}

void sim_units_add(struct sim_units *units, unsigned chunk)
{
    if (units->chunks[chunk] == NULL) {
        units->chunks[chunk] = calloc(1, sizeof(struct sim_unit_chunk));
    }
    push(units, chunk * SIM_CHUNK_UNITS, SIM_CHUNK_UNITS);
}

bool sim_units_take(struct sim_units *units, unsigned count, unsigned *first_out)
{
    unsigned row = find_row(units, count - 1);

    if (row == SIM_CHUNK_UNITS) {
        return false;
    }
    unsigned first = units->heads[row];
    drop(units, first, row + 1);
    if (row + 1 > count) {
        push(units, first + count, row + 1 - count);
    }
    *first_out = first;
    return true;
}

bool sim_units_give(struct sim_units *units, unsigned first, unsigned count)
{
    unsigned start = first / SIM_CHUNK_UNITS * SIM_CHUNK_UNITS;
    unsigned end = first + count;
    unsigned before = first > start ? *length_at(units, first - 1) : 0;
    unsigned after = end < start + SIM_CHUNK_UNITS ? *length_at(units, end) : 0;

    if (before != 0) {
        drop(units, first - before, before);
    }
    if (after != 0) {
        drop(units, end, after);
    }
    count += before + after;
    if (count == SIM_CHUNK_UNITS) {
        return true;
    }
    push(units, first - before, count);
    return false;
}
