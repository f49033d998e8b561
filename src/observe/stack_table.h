/* SPDX-License-Identifier: MIT */
/* Call stacks, each distinct one stored once and named by a 32-bit id. Insert-only and lock-free:
 * ids stay valid for the life of the table. Thread-safe; no malloc. */
#ifndef CCA_OBSERVE_STACK_TABLE_H
#define CCA_OBSERVE_STACK_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct cca_stack_table {
    _Atomic uint64_t *slots; /* hash tag << 32 | id; 0 = empty */
    size_t slot_count;       /* a power of two */
    uint64_t *words;         /* records: header (hash, depth), then the addresses */
    size_t word_capacity;
    _Atomic uint64_t words_used;
    _Atomic uint64_t stacks;  /* distinct ones stored */
    _Atomic uint64_t refused; /* table or arena full, or no memory */
};

/* Reserves address space only: `slot_count` slots and `arena_bytes` of records. -ENOMEM. */
int cca_stack_table_init(struct cca_stack_table *table, size_t slot_count,
                         size_t arena_bytes) CCA_MUST_CHECK;

/* The id of the stack (innermost first), or 0 when depth is 0 or the table is full. Ids ascend in
 * the order in which stacks were first seen. */
uint32_t cca_stack_table_intern(struct cca_stack_table *table, const uintptr_t *pcs, int depth);

/* The same, but 0 when the stack is not there yet. */
uint32_t cca_stack_table_find(const struct cca_stack_table *table, const uintptr_t *pcs, int depth);

/* Ids from now on are at least this. */
uint32_t cca_stack_table_next(const struct cca_stack_table *table);

/* Stacks with a call from [start, end) are found no more: from now on the same addresses make a
 * stack of its own. Their ids stay valid. Beside other threads' calls. */
void cca_stack_table_retire(struct cca_stack_table *table, uintptr_t start, uintptr_t end);

/* Calls `each` for every stored return address of a call from [start, end), once for each stack it
 * is in. */
void cca_stack_table_each(const struct cca_stack_table *table, uintptr_t start, uintptr_t end,
                          void (*each)(void *user, uintptr_t pc), void *user);

/* The addresses of a stack, or NULL for id 0; `depth_out` is 0 then. */
const uintptr_t *cca_stack_table_get(const struct cca_stack_table *table, uint32_t id,
                                     int *depth_out);
void cca_stack_table_fini(struct cca_stack_table *table);

#endif
